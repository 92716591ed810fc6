"""Counters that Prometheus can take the increase of."""

from collections.abc import Iterable

from prometheus_client import Counter


def from_zero(counter: Counter, values: Iterable[str], *before: str) -> None:
    """Have a counter begin at zero for these values of its last label; `before` are those of its other labels.

    A sample that comes into being with the first event begins at one: Prometheus sees no increase, and no alert fires.
    """
    for value in values:
        counter.labels(*before, value)
