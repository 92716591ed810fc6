"""Counters whose increase Prometheus can compute."""

from collections.abc import Iterable

from prometheus_client import Counter


def from_zero(counter: Counter, values: Iterable[str], *before: str) -> None:
    """Start a counter at zero for these values of its last label; `before` has the values of its other labels.

    A sample that first appears with the first event starts at one, so Prometheus would see no increase, and no alert
    would fire.
    """
    for value in values:
        counter.labels(*before, value)
