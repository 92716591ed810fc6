"""A replay decides with the recorded timing, and with the refusals of each cycle where they are recorded."""

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from extender_world import World
from recorded_world import GPU, RecordedWorld, head

from extender.planner.framework.session import Session
from extender.planner.framework.snapshot import take_snapshot
from extender.planner.timing import Timing
from extender.record import lines
from extender.record.reading import Recording
from extender.replay.check import check_recording
from extender.replay.replayedworld import ReplayedWorld, decide, planning_of
from musterctl.app import main


def cycle(settings: dict[str, Any], **line: Any) -> Session:
    """One cycle of a replay over an empty cluster."""
    world, replayed = World(), ReplayedWorld(head())
    return decide(planning_of("", settings), take_snapshot(world.state), replayed, lines.Cycle(at=world.now, **line))


def test_recorded_timing_counts() -> None:
    """Also where only a part of it is recorded, as by an older version."""
    assert cycle({"growthDelay": 600, "suspectTaints": []}).inputs.timing == Timing(growth_delay_s=600.0)


@pytest.mark.parametrize(("recorded", "seen"), [(None, {}), ({}, {}), ({"ns/a": {"n": 1e10}}, {"ns/a": {"n": 1e10}})])
def test_recorded_refusals_count(recorded: Any, seen: dict[str, Any]) -> None:
    """An older version has recorded none: then the replay remembers its own."""
    assert cycle({}, avoided=recorded).inputs.avoided == seen


def test_a_recorded_value_that_is_none_is_noted(tmp_path: Path) -> None:
    """The default counts in its place."""
    world = RecordedWorld(1, growthDelay="soon")
    world.gang("a", 0, 100)
    world.world.queue("default", capability={GPU: 8})
    world.record(tmp_path)
    read = Recording(tmp_path)
    assert check_recording(read).differences == []
    [problem] = read.problems
    assert problem.startswith("growthDelay is 'soon'")
    assert f"Note about the recorded settings: {problem}" in CliRunner().invoke(main, ["replay", str(tmp_path)]).stderr
