"""What is written comes back: round trips, the ring, files that end anywhere, and changes that come too fast."""

import gzip
import itertools
from pathlib import Path

import msgspec
import pytest
from extender_world import World
from msgspec.structs import replace
from recorded_world import MIB, NODE, RecordedWorld, head

from extender.record import lines, recorder
from extender.record.folder import PATTERN, FolderError, RecordingFolder
from extender.record.hook import RecordingHook
from extender.record.reading import Recording, RecordingError, status_of
from extender.record.recorder import PlannerRecorder
from extender.replay.replayedworld import ReplayedWorld
from muster.api.kubernetes.core import PODS, Node, NodeStatus, Pod
from muster.api.kubernetes.meta import ObjectMeta
from muster.api.muster.node_faults import DEFAULT_RULES

POD = PODS.full_name


def node(name: str, cpu: int = 8) -> Node:
    """A node with so many CPUs."""
    return Node(metadata=ObjectMeta(name=name, uid=name), status=NodeStatus(allocatable={"cpu": cpu, "pods": 110}))


def recording_of(folder: Path, *, most_bytes: int = MIB) -> tuple[PlannerRecorder, RecordingFolder]:
    """A recorder into a folder, whose clock goes on by a millisecond with each look."""
    clock = itertools.count(1_800_000_000.0, 0.001)
    ring = RecordingFolder(folder, most_bytes=most_bytes, most_age_s=1e9, wall_s=lambda: next(clock))
    return PlannerRecorder(ring, head(), wall_s=lambda: next(clock)), ring


def begun(folder: Path, *names: str, most_bytes: int = MIB) -> PlannerRecorder:
    """A recorder that has written its first lines, with these nodes."""
    writing, _ = recording_of(folder, most_bytes=most_bytes)
    for name in names:
        writing.saw(NODE, node(name))
    writing.record(lines.SnapshotLine())
    return writing


def cpus(folder: Path) -> dict[str, object]:
    """The CPUs of each node at the end of a recording."""
    return {key: each.status.allocatable["cpu"] for key, each in told(folder).objects[NODE].items()}


def told(folder: Path) -> ReplayedWorld:
    """The state at the end of a recording."""
    state = ReplayedWorld(head())
    for line in Recording(folder):
        state.apply_line(line)
    return state


def test_round_trip(tmp_path: Path) -> None:
    """Objects that came, changed and went are as they were at the end."""
    writing = begun(tmp_path, "a", "b")
    writing.saw(NODE, node("a", 16))
    writing.gone(NODE, "b")
    writing.stop()
    assert cpus(tmp_path) == {"a": 16}
    assert isinstance([*Recording(tmp_path)][-1], lines.EndLine)


def test_nothing_is_written_before_the_first_cycle(tmp_path: Path) -> None:
    """A replica that does not lead writes no file."""
    writing, _ = recording_of(tmp_path)
    writing.saw(NODE, node("a"))
    writing.stop()
    with pytest.raises(RecordingError, match="there is no recording in this folder"):
        Recording(tmp_path)


def test_heartbeats_are_not_written(tmp_path: Path) -> None:
    """An object that differs in its version alone is as it was; its next change is written."""
    writing, beat = begun(tmp_path, "a"), node("a")
    for version in ("5", "6", "7"):
        writing.saw(NODE, replace(beat, metadata=replace(beat.metadata, resource_version=version)))
    writing.saw(NODE, node("a", 9))
    writing.stop()
    assert sum(isinstance(line, lines.Put) for line in Recording(tmp_path)) == 1
    assert cpus(tmp_path) == {"a": 9}


def test_a_replica_that_leads_no_more_ends_its_file(tmp_path: Path) -> None:
    """Without cycles for a minute the file is ended, and the next cycle begins another."""
    now = [1_800_000_000.0]
    ring = RecordingFolder(tmp_path, most_bytes=MIB, most_age_s=1e9, wall_s=lambda: now[0])
    writing = PlannerRecorder(ring, head(), wall_s=lambda: now[0])
    for name in ("a", "b", "c"):
        writing.saw(NODE, node(name))
        if name != "b":
            writing.record(lines.SnapshotLine())
        writing.write()
        now[0] += 61
        writing.write()
    writing.stop()
    ends = [line.why for line in Recording(tmp_path) if isinstance(line, lines.EndLine)]
    assert ends == ["no further cycles: another replica leads"] * 2
    assert sorted(told(tmp_path).objects[NODE]) == ["a", "b", "c"]


def test_secrets_and_environment_are_left_out(tmp_path: Path) -> None:
    """Of a pod only what is planned by is written: no environment, command, image or foreign annotation."""
    metadata = {"name": "p", "namespace": "n", "uid": "u", "annotations": {"vendor.example/token": "hidden-1"}}
    volumes, env = [{"name": "v", "secret": {"secretName": "hidden-5"}}], [{"name": "A", "value": "hidden-4"}]
    containers = [{"name": "c", "image": "hidden-2", "command": ["hidden-3"], "env": env}]
    content = {"metadata": metadata, "spec": {"containers": containers, "volumes": volumes}}
    writing = begun(tmp_path)
    writing.saw(POD, msgspec.convert(content, Pod))
    writing.stop()
    (file,) = tmp_path.glob(PATTERN)
    assert b"hidden" not in gzip.decompress(file.read_bytes())


def test_the_ring_drops_its_oldest_files(tmp_path: Path) -> None:
    """The folder stays within its bytes, and what is left begins with all that is known."""
    writing = begun(tmp_path, "first", most_bytes=6_000)
    for number in range(3_000):
        writing.saw(NODE, node(f"node-{number % 20}", number))
        if number % 50 == 0:
            writing.write()
    writing.stop()
    assert sum(file.stat().st_size for file in tmp_path.glob(PATTERN)) <= 6_000 + 6_000 / recorder.FILES * 2
    first = next(line for line in Recording(tmp_path) if isinstance(line, lines.Head))
    assert first.number > 0, "the oldest file is still there"
    found = cpus(tmp_path)
    assert (len(found), found["node-19"]) == (21, 2_999)


def test_a_file_that_ends_anywhere_is_read_up_to_there(tmp_path: Path) -> None:
    """Of a file that is cut at any byte all whole lines come, and it is said that it is cut."""
    writing = begun(tmp_path / "whole", "a")
    for number in range(300):
        writing.saw(NODE, node("a", number))
        writing.write()
    writing.stop()
    (file,) = (tmp_path / "whole").glob(PATTERN)
    whole, content = [*Recording(file)], file.read_bytes()
    cut = tmp_path / file.name
    for size in range(1_000, len(content), 997):
        cut.write_bytes(content[:size])
        some = [*(reading := Recording(cut))]
        assert some == whole[: len(some)]
        assert "the process was killed, or still writes it" in reading.cuts[cut]


def test_changes_that_come_too_fast_leave_a_gap_and_no_lie(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """When the queue is full the latest versions count, and the recording says how many changes it lacks."""
    monkeypatch.setattr(recorder, "MOST_WAITING", 5)
    writing = begun(tmp_path, "a")
    writing.write()
    for number in range(20):
        writing.saw(NODE, node("a", number))
    writing.gone(NODE, "nobody")
    writing.stop()
    status = status_of(Recording(tmp_path))
    assert (cpus(tmp_path)["a"], status.lost) == (19, 16)
    assert "16 changes" in status.gaps[0].why


def test_a_full_disk_is_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After an error of the disk a new file begins with all that is known."""
    writing, ring = recording_of(tmp_path)
    writing.saw(NODE, node("a"))
    writing.record(lines.SnapshotLine())
    writing.write()

    def full(_: lines.AnyLine) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as broken:
        broken.setattr(ring, "write", full)
        writing.saw(NODE, node("b"))
        writing._write_batch()
    writing.saw(NODE, node("c"))
    writing.stop()
    assert sorted(told(tmp_path).objects[NODE]) == ["a", "b", "c"]
    assert status_of(Recording(tmp_path)).lost == 1


def test_what_is_no_recording_is_refused(tmp_path: Path) -> None:
    """Each thing that is no recording has a sentence that says so."""
    other = gzip.compress(b'{"format":"muster-recording/v9","is":"head"}\n')
    later = gzip.compress(lines.encoded(head()) + b'\n{"is":"miracle"}\n')
    unknown = gzip.compress(b'{"format":"muster-recording/v9","is":"miracle"}\n')
    for content, said in (
        (b"hello", "this is not a file of a recording"),
        (other, "its format is 'muster-recording/v9'; this version reads"),
        (unknown, "its format is 'muster-recording/v9'; this version reads"),
        (gzip.compress(b"hello\n"), "it is not a file of a recording"),
        (gzip.compress(b""), "it is empty"),
        (later, r"line 2 cannot be read: .*later version"),
    ):
        (tmp_path / "file").write_bytes(content)
        with pytest.raises(RecordingError, match=said):
            [*Recording(tmp_path / "file")]
    (tmp_path / "empty").mkdir()
    with pytest.raises(RecordingError, match="there is no recording in this folder"):
        Recording(tmp_path / "empty")


def test_a_folder_that_cannot_be_made_is_an_error(tmp_path: Path) -> None:
    """A recorder says at its start that it cannot write."""
    (tmp_path / "file").write_text("")
    with pytest.raises(FolderError, match="a recording cannot be written there"):
        RecordingFolder(tmp_path / "file", most_bytes=1, most_age_s=1, wall_s=lambda: 0.0)


def test_a_process_that_starts_anew_is_a_gap(tmp_path: Path) -> None:
    """What went while nobody recorded is gone afterwards, and the status tells the gap."""
    for names in (("a", "b"), ("b", "c")):
        clock = itertools.count(1_800_000_000.0 + 1_000 * len([*tmp_path.glob(PATTERN)]))
        ring = RecordingFolder(tmp_path, most_bytes=MIB, most_age_s=1e9, wall_s=lambda: next(clock))  # noqa: B023 - used at once
        writing = PlannerRecorder(ring, replace(head()), wall_s=lambda: next(clock))  # noqa: B023 - as above
        for name in names:
            writing.saw(NODE, node(name))
        writing.record(lines.SnapshotLine())
        writing.stop()
    assert sorted(told(tmp_path).objects[NODE]) == ["b", "c"]
    status = status_of(Recording(tmp_path))
    assert (status.sessions, status.versions, len(status.gaps)) == (2, [head().version], 1)


def test_a_whole_world_in_small_files(tmp_path: Path) -> None:
    """A recording in many files says the same as one in a single file."""
    for name, size in (("one", MIB), ("many", 8_000)):
        world = RecordedWorld(2)
        for number in range(12):
            world.gang(f"g{number}", number * 60, 200)
        world.record(tmp_path / name, most_bytes=size * 100 if name == "many" else size)
    one, many = (told(tmp_path / name) for name in ("one", "many"))
    assert one.objects == many.objects


def test_own_writes_are_noted_unless_their_object_is_gone(tmp_path: Path) -> None:
    """A PodGroup and a pod that were written are told as own; of one that is gone meanwhile nothing is said."""
    ring = RecordingFolder(tmp_path, most_bytes=MIB, most_age_s=1e9, wall_s=lambda: 1_800_000_000.0)
    tap = RecordingHook(PlannerRecorder(ring, head(), wall_s=lambda: 1_800_000_000.0))
    state = tap.state(1_000, lambda: None, pool="", rules=DEFAULT_RULES)
    world = World()
    key = world.gang("gang", {"worker": (1, {"cpu": 1})})
    pod, group = world.pod(key, "worker", 0, {"cpu": 1}), world.state.groups[key]
    state.on_pod_group(None, group)
    state.on_pod(None, pod)
    tap.snapshot_taken()
    state.on_pod_group_written(group)
    state.on_pod_written(pod)
    state.assume(pod.metadata.uid, "node-0")
    state.on_pod(pod, None)
    state.on_pod_group(group, None)
    state.on_pod_group_written(replace(group))
    state.on_pod_written(replace(pod))
    tap.recorder.stop()
    said = [line for line in Recording(tmp_path) if isinstance(line, lines.Put | lines.Bound)]
    kinds = [line.kind if isinstance(line, lines.Put) and line.own else line.__class__.__name__ for line in said]
    assert kinds == ["podgroups.scheduling.volcano.sh", "pods", "Bound"]
