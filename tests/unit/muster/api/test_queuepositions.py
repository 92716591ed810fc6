"""Places and expected starts are as rough as they are written."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.api.kubernetes.meta import format_time, parse_time
from muster.api.muster.queuepositions import EXACT, place_text, rough_place, rough_start

PLACES = st.integers(1, 10**6)


@pytest.mark.parametrize(
    ("place", "words"),
    [(0, "0"), (1, "1"), (10, "10"), (11, "11-20"), (24, "21-30"), (100, "91-100"), (101, "101-200")],
)
def test_a_place_in_words(place: int, words: str) -> None:
    """Exact as far as it matters."""
    assert place_text(rough_place(place)) == words


def test_a_place_is_not_beyond_the_last() -> None:
    """Even if the number that wait is older or newer than the place."""
    assert place_text(21, 24) == "21-24"
    assert place_text(21, 21) == place_text(21, 3) == "21"
    assert place_text(21, 99) == "21-30"


@given(PLACES)
def test_a_place_is_among_those_that_are_told(place: int) -> None:
    """And those in front are told the same or less."""
    first, _, last = place_text(rough_place(place)).partition("-")
    assert int(first) <= place <= int(last or first)
    assert rough_place(rough_place(place)) == rough_place(place)
    assert rough_place(place) <= rough_place(place + 1)


@given(PLACES)
def test_a_start_changes_what_few_gangs_are_told(waiting: int) -> None:
    """Of all that wait in a queue."""
    moved = sum(rough_place(place) != rough_place(place - 1) for place in range(2, min(waiting, 1000) + 1))
    assert moved <= EXACT + 9 + 9


@given(st.floats(0, 4 * 10**9))
def test_a_start_is_told_to_the_minute(seconds: float) -> None:
    """It is not earlier than expected, and none is none."""
    told = parse_time(rough_start(format_time(seconds)))
    assert told is not None
    assert told % 60 == 0
    assert 0 <= told - int(seconds) < 60


@pytest.mark.parametrize("moment", ["", "tomorrow", "9999-12-31T23:59:59Z", "0001-01-01T00:00:00+14:00"])
def test_a_start_that_cannot_be_told_is_none(moment: str) -> None:
    """Nor may one stop a cycle that is at an end of the calendar."""
    assert rough_start(moment) is None
