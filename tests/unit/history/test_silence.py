"""A recorder that is gone is told: since when, and only when it is."""

from contextlib import closing

from hypothesis import given
from hypothesis import strategies as st

from history.model import MEMORY, Changes
from history.silence import SILENT_AFTER_S, USAGE, Silence, looked, silence, told
from history.store import Store

TIMES = st.floats(0, 4e9)


@given(TIMES, TIMES)
def test_it_is_silent_when_it_has_not_looked_for_longer_than_it_should(last: float, now: float) -> None:
    """From its last look; a clock that is ahead is no silence."""
    assert silence(last, now) == (Silence(last) if now > last + SILENT_AFTER_S else None)


@given(TIMES, TIMES, TIMES)
def test_a_silence_goes_on_until_the_next_look(last: float, first: float, second: float) -> None:
    """Time alone ends none."""
    first, second = sorted((first, second))
    assert silence(last, first) is None or silence(last, second) == silence(last, first)


def test_the_last_look_is_in_the_store() -> None:
    """0 before any."""
    with closing(Store.for_writing(MEMORY)) as store:
        assert looked(store) == 0
        store.write(Changes(), {"seen-until": "12500"})
        assert looked(store) == 12.5


def test_it_says_since_when_and_what_is_not_known() -> None:
    """Or that there never was a look."""
    assert told("noon", "3h", USAGE) == (
        "The recorder of the history has not looked at the cluster since noon (3h ago): "
        "what gangs have asked for and held since then does not count here yet"
    )
    assert told("", "3h", "x") == "The recorder of the history has not looked at the cluster yet: x"
