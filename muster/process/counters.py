"""Counters whose increase Prometheus can compute."""

from collections.abc import Iterable

from prometheus_client import Counter


def from_zero(counter: Counter, values: Iterable[str], *before: str) -> None:
    """Start a counter at zero for these values of its last label; `before` are the values of its other labels.

    A sample that first appears with the first event starts at one: Prometheus sees no increase, and no alert fires.
    """
    for value in values:
        counter.labels(*before, value)
