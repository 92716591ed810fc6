"""Usage of each queue in this month, week and day, kept up to date by holdings that begin and end. Pure.

They are those of UTC, and weeks begin on Monday.
What is published is exact at its time, and stays so until a holding begins or ends: readers
add what is held since.
"""

from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any

from history.integral import FOREVER, TimeSpan, Totals, add, by_queue, integrate
from history.model import MS, Holding
from muster.api.muster.usage import PERIODS, Period, period_of
from muster.resources.vector import unit


def spans_of(holdings: Iterable[Holding]) -> Iterator[TimeSpan[str]]:
    """Yield the times for which members hold, or have held, their amounts, by queue."""
    for one in holdings:
        whole = TimeSpan(one.queue, one.amounts, one.bound, one.ended, held=True, used_from=one.ran_from)
        yield from by_queue(whole, one.moves, lambda queue: queue)


class Tally:
    """Usage of ended members since a time, by queue and resource."""

    def __init__(self, begin: int, closed: Totals[str]) -> None:
        self.begin = begin
        self._closed = closed

    def close(self, ended: Iterable[TimeSpan[str]]) -> None:
        """Count what was held and has ended."""
        add(self._closed, integrate(ended, self.begin, FOREVER))

    def at(self, now: int, still: Iterable[TimeSpan[str]]) -> Totals[str]:
        """Return all amounts at a time, with those that are held then."""
        totals = integrate(still, self.begin, now)
        add(totals, self._closed)
        return totals


class Tallies:
    """The tallies of the month, the week and the day of a moment; `closed` returns what has ended since a time."""

    def __init__(self, now: int, closed: Callable[[int], Totals[str]]) -> None:
        self.names: dict[Period, str] = {}
        self.closings = 0
        """Holdings that were counted: what was published is right as long as this, and what is held, is the same."""
        self.of: dict[Period, Tally] = {}
        self.renew(now, closed)

    def renew(self, now: int, closed: Callable[[int], Totals[str]]) -> set[Period]:
        """Restart the periods that have ended, and return them: a month is not read again each day."""
        begun = {period for period, name in names_at(now).items() if self.names.get(period) != name}
        for period in begun:
            begin = round(period_of(period, now / MS).begin * MS)
            self.of[period] = Tally(begin, closed(begin))
        self.names = names_at(now)
        return begun

    def close(self, ended: Collection[TimeSpan[str]], *, but: Collection[Period] = ()) -> None:
        """Count what was held and has ended, in all periods `but` those that know it."""
        self.closings += len(ended)
        for period, each in self.of.items():
            if period not in but:
                each.close(ended)

    def document(self, now: int, still: Iterable[TimeSpan[str]]) -> dict[str, Any]:
        """Return what is published (`muster.api.muster.usage`): unit-seconds by queue, period and resource.

        The month stands in the queue itself, as readers of earlier versions expect it.
        """
        held = [*still]
        queues: dict[str, Any] = {}
        for period in PERIODS:
            name = self.names[period]
            for (queue, resource), amounts in sorted(self.of[period].at(now, held).items()):
                of_queue = queues.setdefault(queue, {})
                if period == "month":
                    seconds = of_queue.setdefault("seconds", {})
                    of_queue["month"] = name
                else:
                    seconds = of_queue.setdefault(period, {"name": name, "seconds": {}})["seconds"]
                seconds[resource] = round(amounts.held / (unit(resource) * MS), 3)
        return {"until": now / MS, "queues": queues, "periods": PERIODS}


def names_at(now: int) -> dict[Period, str]:
    """Return the names of the periods of a time in milliseconds: 2026-11, 2026-W48, 2026-11-26."""
    return {period: period_of(period, now / MS).name for period in PERIODS}
