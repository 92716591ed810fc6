"""What-ifs on tiny worlds whose answers are known by hand, and replays that are the same twice."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from recorded_world import GPU, RecordedWorld, starts

from extender.explain.report import UnknownNameError
from extender.record.reading import Recording
from extender.replay.changes import WhatIfChanges
from extender.replay.history import history_of
from extender.replay.loop import Replay
from extender.replay.report import ReplayReport, what_if
from extender.replay.workloads import History
from muster.api.volcano.scheduling import Queue
from musterctl.app import main


def report_of(folder: Path, change: WhatIfChanges, config: str | None = None) -> ReplayReport:
    """The report of a change."""
    return what_if(Recording(folder), config=config, changed=change, added=change.added)


def played(folder: Path, change: WhatIfChanges) -> tuple[Replay, History]:
    """A replay with a change."""
    history = history_of(Recording(folder))
    return Replay(history, None, change).run(change.added(history)), history


@pytest.fixture(scope="module")
def capped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two nodes, and a queue that may use one of them: its three gangs of 100 seconds run one after the other."""
    return RecordedWorld.capped(tmp_path_factory.mktemp("capped"))


def test_a_larger_quota_lets_gangs_start_earlier(capped: Path) -> None:
    """With both nodes two gangs run at a time: the second starts at once, the third when the first two end."""
    loop, history = played(capped, WhatIfChanges(edits=[f"team.capability.{GPU}=16"]))
    assert starts(loop, history.since_s) == {"a": 0.0, "b": 0.0, "c": 100.0}
    report = report_of(capped, WhatIfChanges(edits=[f"team.capability.{GPU}=16"]))
    shorter = [(each.gang, each.before_s, each.after_s) for each in report.shorter]
    assert shorter == [("ns/b", 100.0, 0.0), ("ns/c", 200.0, 100.0)]
    assert (report.longer, report.apart_s) == ([], 0.0)


def test_a_smaller_quota_lets_them_wait(capped: Path) -> None:
    """A queue that may use nothing starts none of its gangs, which wait to the end."""
    report = report_of(capped, WhatIfChanges(edits=[f"team.capability.{GPU}=4"]))
    team = next(each for each in report.changed if each.queue == "team")
    assert (team.starts, team.waiting) == (0, 3)
    assert not any(each.started for each in report.longer)


def test_more_nodes_help_only_where_quotas_allow(capped: Path) -> None:
    """Nodes that a queue may not use change nothing for it."""
    assert report_of(capped, WhatIfChanges(nodes={"node-0": 2})).shorter == []


def test_a_queue_that_does_not_come_leaves_its_room(tmp_path: Path) -> None:
    """Without the gangs of one queue those of the other start at once."""
    world = RecordedWorld(1)
    world.world.queue("left").queue("right")
    world.gang("l", 0, 500, queue="left")
    world.gang("r", 5, 50, queue="right")
    world.record(tmp_path)
    loop, history = played(tmp_path, WhatIfChanges(without=["left"]))
    assert starts(loop, history.since_s) == {"r": 5.0}


def test_another_configuration_may_decide_otherwise(tmp_path: Path) -> None:
    """Without the action that enqueues, nothing starts."""
    world = RecordedWorld(1)
    world.gang("a", 0, 50)
    world.record(tmp_path)
    report = report_of(tmp_path, WhatIfChanges(), 'actions: "reclaim"')
    assert (report.replayed[0].starts, report.changed[0].starts) == (1, 0)


def test_use_is_the_part_of_all_nodes_over_the_time(tmp_path: Path) -> None:
    """One of two nodes for a quarter of the hour is an eighth of the GPUs."""
    world = RecordedWorld(2)
    world.gang("a", 0, 900)
    world.record(tmp_path)
    report = report_of(tmp_path, WhatIfChanges())
    for side in (report.recorded, report.changed):
        assert side[0].utilisation[GPU] == pytest.approx(0.125, abs=0.001)


def test_a_gang_that_still_runs_at_the_end_is_told(tmp_path: Path) -> None:
    """It runs to the end of the replay, too, and the report says that its length is not known."""
    world = RecordedWorld(1)
    world.gang("a", 0, 10_000)
    world.gang("b", 5, 10)
    world.record(tmp_path)
    report = report_of(tmp_path, WhatIfChanges())
    assert (report.censored, report.never_ran, report.changed[0].waiting) == (1, 1, 1)


def evicting(nodes: int, checkpoints: tuple[float, ...] = ()) -> RecordedWorld:
    """A gang on all nodes that is evicted after 100 of its 400 seconds, for one of a queue that deserves them."""
    world = RecordedWorld(nodes)
    world.world.queue("low", deserved={GPU: 0}).queue("high", deserved={GPU: 8 * nodes})
    world.gang("l", 0, 400, pods=nodes, queue="low")
    world.history.workloads[-1].checkpoints = [*checkpoints]
    world.gang("h", 100, 60, pods=nodes, queue="high")
    return world


@pytest.mark.parametrize(("checkpoints", "left_s"), [((), 400), ((30.0, 90.0, 200.0), 310)])
def test_an_evicted_gang_starts_again_from_its_last_checkpoint(checkpoints: tuple[float, ...], left_s: int) -> None:
    """A more urgent gang evicts a running one, which then runs for all of its time, or for what it had not saved."""
    world = evicting(1, checkpoints)
    loop = world.play()
    assert starts(loop, world.start_s) == {"l": 0.0, "h": 100.0}
    low = next(each for each in loop.all if each.workload.key == "ns/l")
    assert (low.evictions, low.ended_s) == (1, pytest.approx(world.start_s + 160 + left_s))


def test_evictions_are_counted_as_they_were(tmp_path: Path) -> None:
    """What the recording says of evictions is what happened, and what its replay does."""
    evicting(2).record(tmp_path)
    report = report_of(tmp_path, WhatIfChanges())
    assert [side[0].evictions for side in (report.recorded, report.replayed, report.changed)] == [1, 1, 1]


@pytest.mark.parametrize(("change", "words"), [
    (lambda: WhatIfChanges(edits=["nobody.weight=3"]), "does not name a queue; there is default, team"),
    (lambda: WhatIfChanges(edits=["team.speed=3"]), "a queue has no 'speed'"),
    (lambda: WhatIfChanges(queues={"new": Queue()}, edits=["new.speed=3"]), "a queue has no 'speed'"),
    (lambda: WhatIfChanges(without=["nobody"]), "the recording has no queue 'nobody'; it has default, team"),
    (lambda: WhatIfChanges(nodes={"node-9": 1}), "the recording has no node 'node-9'; it has node-"),
])  # fmt: skip
def test_a_change_of_what_is_not_there_is_refused(capped: Path, change: Callable[[], Any], words: str) -> None:
    """What a change names must be in the recording; the error says what is there."""
    with pytest.raises((UnknownNameError, ValueError), match=words):
        report_of(capped, change())


def test_the_same_recording_and_change_give_the_same_bytes(capped: Path) -> None:
    """Two runs of the command print the same, byte for byte."""
    for arguments in (["--queue", f"team.capability.{GPU}=16"], ["--as-it-was", "-o", "json"], ["-o", "yaml"]):
        outputs = {CliRunner().invoke(main, ["replay", str(capped), *arguments]).output for _ in range(2)}
        assert len(outputs) == 1
        assert "Error" not in outputs.pop()


def test_queues_of_a_file_take_the_place_of_the_recorded(capped: Path, tmp_path: Path) -> None:
    """A manifest of a queue counts as if it had been applied before."""
    file = tmp_path / "queues.yaml"
    file.write_text(
        "apiVersion: scheduling.volcano.sh/v1beta1\nkind: Queue\nmetadata: {name: team}\n"
        "spec: {capability: {nvidia.com/gpu: 16}}\n"
    )
    result = CliRunner().invoke(main, ["replay", str(capped), "--queues", str(file)])
    assert "ns/b (queue team): 1m40s -> 0s" in result.output, result.output
    file.write_text("kind: Job\n")
    result = CliRunner().invoke(main, ["replay", str(capped), "--queues", str(file)])
    assert "the file must contain only Queues, but contains Job" in result.output
