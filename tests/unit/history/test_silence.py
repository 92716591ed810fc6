"""A recorder that is gone is told: since when, and only when it is."""

from contextlib import closing

from hypothesis import example, given
from hypothesis import strategies as st

from history.answers import NO_USAGE, SILENT_AFTER_S, recorded_until, silence
from history.model import MEMORY, RowChanges
from history.store import HistoryStore


@given(st.floats(0, 4e9), st.floats(0, 4e9))
@example(1000.0, 1000.0 + SILENT_AFTER_S)
def test_it_is_silent_when_it_has_not_looked_for_longer_than_it_should(last: float, now: float) -> None:
    """From its last look; a clock that is ahead is no silence."""
    assert bool(silence(last, now, NO_USAGE, str)) == (now - last > SILENT_AFTER_S)


def test_the_last_look_is_in_the_store() -> None:
    """0 before any."""
    with closing(HistoryStore.for_writing(MEMORY)) as store:
        assert recorded_until(store) == 0
        store.write(RowChanges(), {"seen-until": "12500"})
        assert recorded_until(store) == 12.5


def test_it_says_since_when_and_what_is_not_known() -> None:
    """Or that there never was a look."""
    assert silence(1000.0, 1000.0 + 3 * 3600, NO_USAGE, lambda at: f"at {at:g}") == (
        "The recorder of the history has not read the cluster since at 1000 (3h ago): "
        "later requests and usage of gangs are not included yet"
    )
    assert silence(0.0, 1e9, "x", str) == "The recorder of the history has not read the cluster yet: x"
