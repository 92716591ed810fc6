"""Counters that start at zero, so that Prometheus can compute their first increase."""

from collections.abc import Iterable

from prometheus_client import Counter


def from_zero(counter: Counter, values: Iterable[str], *before: str) -> None:
    """Start a counter at zero for each of these values of its last label; `before` has the values of the other labels.

    A sample that appeared only with the first event would begin at one. Prometheus would then see no increase, and no
    alert would fire.
    """
    for value in values:
        counter.labels(*before, value)
