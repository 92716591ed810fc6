"""Replays of tiny worlds in which the right answer is known by hand."""

from pathlib import Path

import pytest
from recorded_world import RecordedWorld, starts

from extender.record.reading import Recording
from extender.replay.check import check_recording
from extender.replay.history import history_of
from extender.replay.loop import SOON_S, Replay


def two_on_one() -> RecordedWorld:
    """One node of 8 GPUs; two gangs that need all of it come at once, a third ten minutes later."""
    world = RecordedWorld(1)
    world.gang("first", 0, 300)
    world.gang("second", 1, 300)
    world.gang("third", 600, 60)
    return world


def test_gangs_start_one_after_the_other() -> None:
    """Each gang starts when the one before it has ended."""
    world = two_on_one()
    assert starts(world.play(), world.start_s) == {"first": 0.0, "second": 300.0, "third": 600.0}


def test_a_recording_replays_as_it_was(tmp_path: Path) -> None:
    """Who plays what a recording says gets the starts of the cluster that was recorded."""
    world = two_on_one()
    then = world.record(tmp_path)
    now = Replay(history_of(Recording(tmp_path)), None, lambda _, item: item).run()
    assert starts(now, world.start_s) == starts(then, world.start_s)


def test_every_recorded_cycle_decides_the_same(tmp_path: Path) -> None:
    """The planner decides what it decided, cycle by cycle."""
    then = two_on_one().record(tmp_path)
    report = check_recording(Recording(tmp_path))
    assert (report.differences, report.cycles, report.gone, report.new) == ([], then.cycles, 0, 0)
    assert report.decisions["place"] == 3


def test_cycles_become_rare_while_only_time_passes() -> None:
    """A gang that waits for hours costs a cycle every four minutes, however many others came in that time."""
    world = RecordedWorld(1)
    world.gang("runs", 0, 3_500)
    for number in range(10):
        world.gang(f"waits-{number}", 10 + number * 7.3, 10)
    assert world.play().cycles < 3_600 / 240 + 2 * 11 * 6


@pytest.mark.parametrize(("decided", "pause_s"), [([True, False], SOON_S), ([False], None)])
def test_a_cycle_that_decides_is_followed_by_another_soon(decided: list[bool], pause_s: float | None) -> None:
    """Also if only time has passed; without a decision, and if nothing waits, there is no further one."""
    loop = Replay(RecordedWorld(1).history, None, lambda _, item: item)
    loop._tick_at = loop.now + 60
    loop.at(loop._tick_at, loop._tick)
    loop._cycle = lambda: decided.pop(0)  # type: ignore[method-assign]
    loop._step()
    assert loop._tick_at == (None if pause_s is None else loop.now + pause_s)
