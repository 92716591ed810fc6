"""Integration of usage: requested and held amounts of resources over time. Exact and pure.

This module computes all figures of usage: rows of usage, aggregated days, published usage for budgets, and GPU seconds
of gangs. Times are in milliseconds; an integral is in thousandths (CPU, GPUs) or base units times milliseconds.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from typing import Final, Generic, NamedTuple, TypeVar

import msgspec

from history.model import DAY_MS
from muster.resources.vector import Vector

K = TypeVar("K")
FOREVER: Final = 2**62
"""Time (ms) that is used as the end of a period that has not ended."""


class Amounts(msgspec.Struct):
    """Requested, held, used and lost amounts of one resource, integrated over time."""

    asked: int = 0
    held: int = 0
    used: int = 0
    lost: int = 0

    def add(self, other: "Amounts", times: int = 1) -> None:
        """Add other amounts to these amounts, multiplied by a factor."""
        self.asked += other.asked * times
        self.held += other.held * times
        self.used += other.used * times
        self.lost += other.lost * times


class TimeSpan(NamedTuple, Generic[K]):
    """A time span in which resources were requested or held."""

    key: K
    """Key of the sum to which the span contributes."""
    amounts: Vector
    begin: int
    end: int | None
    """End of the span; None if the span has not ended."""
    held: bool = False
    """True if the amounts were held; False if they were requested."""
    used_from: int | None = None
    lost_from: int | None = None
    """`used_from` is the start of the used part of the held time, and `lost_from` the start of the lost part. A field
    is None if there is no such part."""


Totals = defaultdict[tuple[K, str], Amounts]
"""Maps a key and a resource to the integrated amounts."""


def integrate(
    spans: Iterable[TimeSpan[K]], since: int, until: int, on: Callable[[K, int], K] | None = None
) -> Totals[K]:
    """Return the integral of the amounts of all spans over [since, until).

    A span without an end lasts until `until`. `on` maps a key and a day, counted from 1970, to a new key. If `on` is
    given, spans are split at midnight.
    """
    shapes: dict[tuple[K, int, int], tuple[Vector, Amounts]] = {}
    day, midnight = 0, until
    for key, amounts, first, last, held, used_from, lost_from in spans:
        begin, stop = max(since, first), until if last is None else min(until, last)
        while begin < stop:
            if on is not None:
                day = begin // DAY_MS
                midnight = (day + 1) * DAY_MS
            end = min(stop, midnight)
            # Members of one shape share its vector: their times are summed first, and multiplied once.
            shape = key, day, id(amounts)
            found = shapes.get(shape)
            if found is None:
                found = shapes[shape] = amounts, Amounts()
            times = found[1]
            if held:
                times.held += end - begin
                if used_from is not None and used_from < end:
                    times.used += end - max(begin, used_from)
                if lost_from is not None and lost_from < end:
                    times.lost += end - max(begin, lost_from)
            else:
                times.asked += end - begin
            begin = end
    totals: Totals[K] = defaultdict(Amounts)
    for (key, day, _), (amounts, times) in shapes.items():
        place = key if on is None else on(key, day)
        for resource, amount in amounts.items():
            totals[place, resource].add(times, amount)
    return totals


def by_queue(whole: TimeSpan[K], moves: Iterable[tuple[int, str]], key: Callable[[str], K]) -> Iterator[TimeSpan[K]]:
    """Divide a span at the times when its gang moved to another queue (`Charge.moves`), and yield the parts.

    The last part keeps the span's key; `key` returns the key of a part with an earlier queue.
    """
    begin, end = whole.begin, whole.end
    for until, queue in moves:
        stop = until if end is None else min(until, end)
        if begin < stop:
            yield whole._replace(key=key(queue), begin=begin, end=stop)
            begin = stop
    yield whole._replace(begin=begin)


def add(totals: Totals[K], others: Totals[K], times: int = 1) -> None:
    """Add other totals, multiplied by a factor, to these totals."""
    for place, amounts in [*others.items()]:
        totals[place].add(amounts, times)
