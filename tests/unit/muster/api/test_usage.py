"""The usage of queues that the recorder publishes: read with bounds, or not at all."""

import json
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.api.muster.usage import (
    AGAIN_S,
    KEY,
    MOST_CHARS,
    PERIODS,
    Period,
    PublishedUsage,
    QueueUsage,
    period_of,
    read_usage,
    silent_s,
)

DAY_S = 86400.0


def test_it_is_read() -> None:
    """As the recorder writes it."""
    text = '{"until": 7.5, "queues": {"a": {"month": "2026-11", "seconds": {"nvidia.com/gpu": 3}}}}'
    assert read_usage({KEY: text}) == PublishedUsage(7.5, {"a": QueueUsage("2026-11", {"nvidia.com/gpu": 3.0})})
    assert read_usage({KEY: '{"until": 1}'.ljust(MOST_CHARS)}) == PublishedUsage(1)


@pytest.mark.parametrize("data", [
    {},
    {KEY: 3},
    {KEY: "{"},
    {KEY: "[" * 100_000},
    {KEY: '{"until": -1}'},
    {KEY: '{"until": 1, "queues": {"a": {"seconds": {"x": -1}}}}'},
    {KEY: '{"until": 1, "queues": {"a": {"seconds": {"x": 1e999}}}}'},
    {KEY: '{"until": 1, "queues": []}'},
    {KEY: '{"until": 1, "queues": {"a": {"day": {"seconds": {"x": -1}}}}}'},
    {KEY: '{"until": 1, "queues": {"a": {"week": "x"}}}'},
    {KEY: "x" * (MOST_CHARS + 1)},
])  # fmt: skip
def test_anything_else_is_refused(data: dict[str, object]) -> None:
    """With a reason."""
    with pytest.raises(ValueError, match="it"):
        read_usage(data)


def test_months_and_weeks_are_in_utc() -> None:
    """The last second of a year is in December, the next one in January; its week goes on."""
    last = 1_798_761_599
    assert period_of("month", last) == ("2026-12", 1_798_761_600 - 31 * DAY_S, 1_798_761_600)
    assert period_of("month", last + 1) == ("2027-01", last + 1, last + 1 + 31 * DAY_S)
    assert period_of("week", last) == period_of("week", last + 1)
    assert period_of("week", last).name == "2026-W53"
    assert period_of("day", last + 1) == ("2027-01-01", last + 1, last + 1 + DAY_S)


@given(st.sampled_from(PERIODS), st.floats(0, 4e9))
def test_periods_follow_each_other(period: Period, moment: float) -> None:
    """Each moment is in one period, whose beginning is its first moment, and whose end is the beginning of the next."""
    span = period_of(period, moment)
    assert span.begin <= moment < span.end
    assert period_of(period, span.begin) == span
    assert period_of(period, span.end - 0.001) == span
    after = period_of(period, span.end)
    assert (after.begin, after.name != span.name) == (span.end, True)
    begin = datetime.fromtimestamp(span.begin, UTC)
    assert (begin.hour, begin.minute, begin.second, begin.microsecond) == (0, 0, 0, 0)
    assert {"month": begin.day == 1, "week": begin.weekday() == 0, "day": True}[period]


@given(st.floats(0, 4e9), st.floats(0, 4e9))
def test_a_recorder_that_publishes_no_more_is_told(until: float, now: float) -> None:
    """For as long as it has not; one that is late once is not."""
    assert silent_s(PublishedUsage(until), now) == (now - until if now - until > 2 * AGAIN_S else 0)


def test_a_reader_of_months_only_reads_it() -> None:
    """The month stands where it stood; an older document counts no other period."""
    text = (
        '{"until": 7, "periods": ["month", "week"], "queues": {"a": {"month": "2026-11", "seconds": {"cpu": 3}, '
        '"week": {"name": "2026-W48", "seconds": {"cpu": 2}}}}}'
    )
    assert json.loads(text)["queues"]["a"]["seconds"] == {"cpu": 3}
    usage = read_usage({KEY: text})
    assert [dict(usage.queues["a"].within(each, "2026-W48")) for each in PERIODS] == [{}, {"cpu": 2}, {}]
    assert PublishedUsage(7).periods == ("month",)
