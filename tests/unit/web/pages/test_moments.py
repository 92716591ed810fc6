"""Times on pages, and amounts as bars."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from page_world import NOW

from muster.api.kubernetes.meta import format_time
from web.views.parts import WHOLE, bar, moment


@pytest.mark.parametrize(
    ("seconds", "away"), [(-90, "90s ago"), (0, "now"), (7200, "in 120m"), (-3 * 86400, "3d ago"), (4 * 3600, "in 4h")]
)
def test_a_moment_says_how_far_away_it_is(seconds: float, away: str) -> None:
    """Back or ahead, in the unit of kubectl's ages."""
    found = moment(format_time(NOW + seconds), NOW)
    assert found is not None
    assert (found.away, found.at) == (away, format_time(NOW + seconds))


@pytest.mark.parametrize("text", ["", None, 0.0, "yesterday", "9999-99-99T00:00:00Z", 1e300, float("nan")])
def test_a_time_that_cannot_be_read_is_none(text: str | float | None) -> None:
    """Whatever stands in an object."""
    assert moment(text, NOW) is None


def test_a_bar_says_in_words_what_it_shows() -> None:
    """Marks that are not set are left out, and the longest amount is the whole width."""
    found = bar("nvidia.com/gpu", 8000, {"fair share": 16000, "deserved": None, "capability": 32000}, part=2000)
    assert found.label == "nvidia.com/gpu: used 8, fair share 16, capability 32"
    assert (found.used, found.part, [mark.at for mark in found.marks]) == (250, 62, [500, WHOLE])


@given(
    used=st.integers(0, 2**63),
    marks=st.lists(st.integers(0, 2**63) | st.none(), max_size=4),
    part=st.integers(0, 2**63),
)
def test_a_bar_never_leaves_its_width(used: int, marks: list[int | None], part: int) -> None:
    """However large the amounts are."""
    found = bar("cpu", used, {str(number): each for number, each in enumerate(marks)}, part=part)
    assert 0 <= found.part <= found.used <= WHOLE
    assert all(0 <= mark.at <= WHOLE for mark in found.marks)
