"""The note of the members that are done, whatever it contains."""

import json

import pytest
from builders import job
from hypothesis import given
from hypothesis import strategies as st

from muster.api.muster.gang import Slot
from muster.volcano.done import SUCCEEDED, done_slots, note_of

SLOTS = st.sets(st.builds(Slot, st.sampled_from(["v", "w"]), st.integers(0, 5)))


def done(note: str) -> set[Slot]:
    """The record of a Job in version 2, with two tasks of six pods."""
    status = {"version": 2, "controlledResources": {SUCCEEDED: note}}
    return set(done_slots(job("j", {"v": 6, "w": 6}, "n", status=status)))


@given(SLOTS)
def test_recorded_members_are_found(slots: set[Slot]) -> None:
    """In the same version of the Job; another one has done nothing yet."""
    assert done(note_of(slots, 2)) == slots
    assert done(note_of(slots, 1)) == set()


@pytest.mark.parametrize(("ranks", "found"), [
    ("0-2,5", {0, 1, 2, 5}), ("4-99999999999", {4, 5}), (",".join(["0-99999999"] * 10_000), {*range(6)}),
    ("3,1-4,x,-1,5-2", {3, 4}), ("", set()),
])  # fmt: skip
def test_ranges_that_anybody_wrote(ranks: str, found: set[int]) -> None:
    """Only pods that the Job wants, each once."""
    note = json.dumps({"version": 2, "tasks": {"w": ranks, "another": "0"}})
    assert done(note) == {Slot("w", rank) for rank in found}


@pytest.mark.parametrize("note", ["", "{", "[]", '{"version": 2}', '{"version": 2, "tasks": {"w": 3}}'])
def test_an_unreadable_record_is_ignored(note: str) -> None:
    """The Job then does its work again, as without a note."""
    assert done(note) == set()
