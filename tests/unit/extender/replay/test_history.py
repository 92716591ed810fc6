"""What a history says of recordings that begin in the middle, and of pods that come in any order."""

import itertools
from pathlib import Path

import pytest
from builders import pod
from msgspec.structs import replace
from recorded_world import GPU, MIB, NODE, RecordedWorld, head, starts

from extender.record import lines
from extender.record.folder import PATTERN, RecordingFolder
from extender.record.reading import Recording
from extender.record.recorder import PlannerRecorder
from extender.replay.check import check_recording
from extender.replay.history import history_of
from extender.replay.loop import Replay
from extender.replay.workloads import History
from muster.api.kubernetes.core import PODS
from muster.api.kubernetes.meta import format_time
from muster.api.volcano.scheduling import POD_GROUPS, PodGroup, PodGroupSpec

POD, GROUP = PODS.full_name, POD_GROUPS.full_name
START_S = 1_800_000_000.0


def test_a_recording_that_begins_in_the_middle_goes_on_from_there(tmp_path: Path) -> None:
    """When the ring has dropped the beginning, gangs that run run for the rest of their time, and waits begin there."""
    world = RecordedWorld(1)
    world.gang("first", 0, 300)
    world.gang("second", 1, 300)
    world.gang("third", 600, 60)
    world.record(tmp_path, flush_each=True)
    for file in sorted(tmp_path.glob(PATTERN)):
        if next(iter(Recording(file))).at < world.start_s + 100:
            file.unlink()
    history = history_of(Recording(tmp_path))
    assert 100 <= history.since_s - world.start_s < 300
    loop = Replay(history, None, lambda _, item: item).run()
    assert starts(loop, world.start_s) == {"first": None, "second": 300.0, "third": 600.0}
    assert [each.workload.ran_before for each in loop.all] == [True, False, False]
    assert [each.ended_s for each in loop.all] == [world.start_s + at for at in (300, 600, 660)]
    assert check_recording(Recording(tmp_path)).differences == []


class Feed:
    """A recording that is told object by object, at times that the test says."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.now = START_S
        self._versions = itertools.count(1)
        ring = RecordingFolder(folder, most_bytes=MIB, most_age_s=1e9, wall_s=lambda: self.now)
        self.recorder = PlannerRecorder(ring, head(planner=False), wall_s=lambda: self.now)
        self.recorder.record(lines.SnapshotLine())

    def group(self, at: float, name: str, members: int) -> None:
        """A PodGroup that comes."""
        self.now = START_S + at
        meta = replace(RecordedWorld().world.meta(name), creation_timestamp=format_time(self.now))
        self.recorder.saw(GROUP, PodGroup(metadata=meta, spec=PodGroupSpec(min_member=members)))

    def pod(
        self, at: float, name: str, group: str, *, node: str = "", phase: str = "Pending", bound: float | None = None
    ) -> None:
        """A pod of a gang, without a slot, or a change of it; `bound` is what its condition says, in whole seconds."""
        self.now = START_S + at
        when = format_time(START_S + (bound or 0.0))
        scheduled = {"type": "PodScheduled", "status": "True", "lastTransitionTime": when}
        made = pod(
            name,
            uid=name,
            version=str(next(self._versions)),
            labels={"muster.dev/gang": group},
            node=node,
            phase=phase,
            requests={"cpu": 1, GPU: 8},
            status={"conditions": [scheduled] * (bound is not None)},
        )
        self.recorder.saw(POD, made)

    def gone(self, at: float, name: str) -> None:
        """A pod that goes."""
        self.now = START_S + at
        self.recorder.gone(POD, f"ns/{name}")

    def history(self) -> History:
        """What the recording says."""
        self.recorder.stop()
        return history_of(Recording(self.folder))


def test_pods_may_come_before_their_pod_group(tmp_path: Path) -> None:
    """They are members all the same, and no pods of somebody else."""
    feed = Feed(tmp_path)
    feed.pod(1, "p-0", "gang")
    feed.group(2, "gang", 2)
    feed.pod(3, "p-1", "gang")
    for at, phase in ((10, "Running"), (70, "Succeeded")):
        for name in ("p-0", "p-1"):
            feed.pod(at, name, "gang", node="node-0", phase=phase)
    history = feed.history()
    (workload,) = history.workloads
    assert workload.started_s == START_S + 10
    assert [member.runs_s for member in workload.members.values()] == [60.0, 60.0]
    assert (history.changes, history.before) == ([], [])


def test_a_successor_takes_the_place_of_a_pod_that_went(tmp_path: Path) -> None:
    """A pod that is made anew under another name is the same member, whose last life counts."""
    feed = Feed(tmp_path)
    feed.group(0, "gang", 1)
    feed.pod(1, "p-a", "gang", node="node-0", phase="Running")
    feed.gone(50, "p-a")
    feed.pod(51, "p-b", "gang")
    feed.pod(60, "p-b", "gang", node="node-1", phase="Running")
    feed.pod(260, "p-b", "gang", node="node-1", phase="Succeeded")
    (workload,) = feed.history().workloads
    assert [member.runs_s for member in workload.members.values()] == [200.0]
    assert workload.started_s == START_S + 1


@pytest.mark.parametrize(("bound", "ran_s"), [(10.9, 60.0), (4.0, 66.75)])
def test_a_run_is_measured_by_what_was_seen_unless_it_is_old(tmp_path: Path, bound: float, ran_s: float) -> None:
    """Conditions tell whole seconds, rounded down; of a pod that was bound unseen they know more."""
    feed = Feed(tmp_path)
    feed.group(0, "gang", 1)
    feed.pod(1, "p-0", "gang")
    feed.pod(10.75, "p-0", "gang", node="node-0", phase="Running", bound=int(bound))
    feed.pod(70.75, "p-0", "gang", node="node-0", phase="Succeeded", bound=int(bound))
    (workload,) = feed.history().workloads
    assert [member.runs_s for member in workload.members.values()] == [ran_s]


def test_gangs_without_a_template_play_with_their_pods(tmp_path: Path) -> None:
    """The pods of a gang come to the replay as they came, and are placed."""
    feed = Feed(tmp_path)
    world = RecordedWorld().world
    feed.recorder.saw(NODE, world.node("node-0"))
    queues = "queues.scheduling.volcano.sh"
    feed.recorder.saw(queues, world.state.told[queues]["default"])
    for gang, at in (("one", 5), ("two", 6)):
        feed.group(at, gang, 1)
        feed.pod(at, f"{gang}-pod", gang)
    for gang, since, until in (("one", 8, 108), ("two", 109, 159)):
        feed.pod(since, f"{gang}-pod", gang, node="node-0", phase="Running")
        feed.pod(until, f"{gang}-pod", gang, node="node-0", phase="Succeeded")
    feed.gone(400, "two-pod")
    loop = Replay(feed.history(), None, lambda _, item: item).run()
    assert starts(loop, START_S) == {"one": 5.0, "two": 105.0}
    assert [each.ended_s for each in loop.all] == [START_S + 105, START_S + 155]
