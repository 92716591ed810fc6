"""Durations are read as Go reads them, exactly; delays between attempts double, up to a longest one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.resources.delays import doubled_s
from muster.resources.runtime import parse_days_s, parse_duration_ns, parse_duration_s


@pytest.mark.parametrize(("text", "seconds"), [
    ("30s", 30),
    ("1h30m", 5400),
    ("1.5s", 1.5),
    (".5s", 0.5),
    ("5.s", 5),
    ("250ms", 0.25),
    ("10m0s", 600),
    ("0", 0),
    ("+5m", 300),
    ("+0", 0),
    ("3us", 3e-6),
    ("3µs", 3e-6),
    ("1.9ns", 1e-9),
])  # fmt: skip
def test_durations(text: str, seconds: float) -> None:
    """Every form that the schema lets through, except those before now."""
    assert parse_duration_s(text) == seconds


@pytest.mark.parametrize("text", ["", "5", "5 m", "-5s", "-0", "+", "m", ".s", "1d", "1h ", "5m-1s", "٣s", "292y"])
def test_what_is_no_duration(text: str) -> None:
    """The error shows how to write one."""
    with pytest.raises(ValueError, match="like 30s"):
        parse_duration_s(text)


def test_the_longest() -> None:
    """Go's clients hold some 292 years; nobody could read an object with more, nor need anybody write so much."""
    for read in (parse_duration_s, parse_days_s):
        assert read("0" * 255 + "s") == 0
        with pytest.raises(ValueError, match="write it like"):
            read("0" * 256 + "s")
    assert parse_duration_ns(f"{2**63 - 1}ns") == 2**63 - 1
    with pytest.raises(ValueError, match="too long for a duration"):
        parse_duration_ns("2562048h")


@given(st.integers(0, 10**15))
def test_every_way_to_write_it(nanoseconds: int) -> None:
    """Split into units or given as a fraction: the same number of nanoseconds."""
    minutes, rest = divmod(nanoseconds, 60 * 10**9)
    seconds, fraction = divmod(rest, 10**9)
    texts = (f"{nanoseconds}ns", f"{minutes}m{seconds}.{fraction:09}s", f"{minutes}m{seconds}s{fraction}ns")
    assert {parse_duration_ns(text) for text in texts} == {nanoseconds}


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("2d4h30m", 189_000.0), ("5w4d12h", 3_412_800.0), ("1w", 604_800.0), ("3d", 259_200.0), ("0d", 0.0),
        ("1w1s", 604_801.0), ("10m", 600.0), ("1d1.5s", 86_401.5),
    ],
)  # fmt: skip
def test_days_and_weeks_may_come_first(text: str, seconds: float) -> None:
    """Before anything that Go reads."""
    assert parse_days_s(text) == seconds


@pytest.mark.parametrize(
    "text", ["", "d", "1d2w", "1h2d", "-1d", "1.5d", "1d ", "1dd", "2d-1h", "9" * 30 + "w", "1d" * 200]
)
def test_what_is_no_duration_with_days_is_refused(text: str) -> None:
    """With words on how to write one."""
    with pytest.raises(ValueError, match="write it like"):
        parse_days_s(text)


@pytest.mark.parametrize(("times", "delay_s"), [(0, 10.0), (1, 20.0), (5, 320.0), (6, 600.0)])
def test_a_delay_doubles_up_to_the_longest(times: int, delay_s: float) -> None:
    """Ten seconds first, ten minutes at the most."""
    assert doubled_s(10.0, times, 600.0) == delay_s


@given(st.integers(0, 10**30))
def test_any_number_of_times_has_a_delay(times: int) -> None:
    """It may stand in a status that somebody else has written."""
    assert 0.005 <= doubled_s(0.005, times, 60.0) <= 60.0
