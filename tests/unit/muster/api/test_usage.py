"""The usage of queues that the recorder publishes: read with bounds, or not at all."""

import pytest

from muster.api.muster.usage import KEY, MOST_CHARS, QueueUsage, Usage, month_of, read_usage


def test_it_is_read() -> None:
    """As the recorder writes it."""
    text = '{"until": 7.5, "queues": {"a": {"month": "2026-11", "seconds": {"nvidia.com/gpu": 3}}}}'
    assert read_usage({KEY: text}) == Usage(7.5, {"a": QueueUsage("2026-11", {"nvidia.com/gpu": 3.0})})


@pytest.mark.parametrize(
    "data",
    [
        {},
        {KEY: 3},
        {KEY: "{"},
        {KEY: "[" * 100_000},
        {KEY: '{"until": -1}'},
        {KEY: '{"until": 1, "queues": {"a": {"seconds": {"x": -1}}}}'},
        {KEY: '{"until": 1, "queues": {"a": {"seconds": {"x": 1e999}}}}'},
        {KEY: '{"until": 1, "queues": []}'},
        {KEY: "x" * (MOST_CHARS + 1)},
    ],
)
def test_anything_else_is_refused(data: dict[str, object]) -> None:
    """With a reason."""
    with pytest.raises(ValueError, match="it"):
        read_usage(data)


def test_months_are_in_utc() -> None:
    """The last second of a year is in December, the next one in January."""
    name, begin, end = month_of(1_798_761_599)
    assert (name, end) == ("2026-12", 1_798_761_600)
    assert month_of(end) == ("2027-01", end, end + 31 * 86400)
    assert end - begin == 31 * 86400
