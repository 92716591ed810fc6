"""A recording that an earlier version of Muster wrote is read, and decided upon again, by this one."""

import json
from pathlib import Path

from click.testing import CliRunner
from recorded_world import starts

from extender.record.reading import Recording, status_of
from extender.replay.check import check_recording
from extender.replay.history import history_of
from extender.replay.loop import Replay
from musterctl.app import main

KEPT = Path(__file__).parent / "kept"
"""Two nodes, and a queue that may use one of them: its three gangs of 100 seconds run one by one. Never made anew: one
of a later format stands beside it."""


def test_the_decisions_of_an_earlier_version_are_compared_with_those_of_this_one() -> None:
    """It placed three gangs; a version that decides otherwise on purpose says here what is different."""
    status = status_of(Recording(KEPT))
    assert (status.sessions, status.lost) == (1, 0)
    checked = check_recording(Recording(KEPT))
    assert (checked.decisions["place"], checked.differences) == (3, [])
    told = CliRunner().invoke(main, ["replay", str(KEPT), "--output", "json"])
    assert told.exit_code == 0, told.output
    assert json.loads(told.output)["decisions"]["place"] == 3


def test_an_earlier_version_is_replayed_with_another_queue() -> None:
    """With twice the capability two of its gangs run at a time."""
    before = Replay(history_of(Recording(KEPT)), None, lambda _, item: item).run()
    assert starts(before, history_of(Recording(KEPT)).since_s) == {"a": 0.0, "b": 100.0, "c": 200.0}
    told = CliRunner().invoke(main, ["replay", str(KEPT), "--queue", "team.capability.nvidia.com/gpu=16", "-o", "json"])
    assert told.exit_code == 0, told.output
    shorter = {each["gang"]: (each["beforeS"], each["afterS"]) for each in json.loads(told.output)["shorter"]}
    assert shorter == {"ns/b": (100.0, 0.0), "ns/c": (200.0, 100.0)}
