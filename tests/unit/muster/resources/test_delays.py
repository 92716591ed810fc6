"""Delays between tries double, up to a longest one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.resources.delays import doubled_s


@pytest.mark.parametrize(("times", "delay_s"), [(0, 10.0), (1, 20.0), (5, 320.0), (6, 600.0)])
def test_a_delay_doubles_up_to_the_longest(times: int, delay_s: float) -> None:
    """Ten seconds first, ten minutes at the most."""
    assert doubled_s(10.0, times, 600.0) == delay_s


@given(st.integers(0, 10**30))
def test_any_number_of_times_has_a_delay(times: int) -> None:
    """It may stand in a status that somebody else has written."""
    assert 0.005 <= doubled_s(0.005, times, 60.0) <= 60.0
