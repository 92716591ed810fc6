"""What each queue has held in this month, week and day, kept up to date by holdings that begin and end. Pure.

They are those of UTC, and weeks begin on Monday.
What is published is exact at its time, and stays so until a holding begins or ends: readers
add what is held since.
"""

from collections.abc import Callable, Collection, Iterable
from typing import Any

from history.integral import Amounts, Totals
from history.model import MS, Holding
from muster.api.muster.usage import PERIODS, Period, period_of
from muster.resources.vector import unit


class Tally:
    """Held and used amounts of a time by queue and resource, in thousandths or base units times milliseconds."""

    def __init__(self, begin: int, closed: Totals) -> None:
        self.begin = begin
        self._closed: dict[tuple[str, str], Amounts] = {}
        for (key, resource), amounts in closed.items():
            self._closed.setdefault((key[0], resource), Amounts()).add(amounts)

    def close(self, queue: str, holding: Holding) -> None:
        """Count a holding that has ended."""
        self._add(self._closed, queue, holding, holding.ended or 0)

    def at(self, now: int, still: Iterable[tuple[str, Holding]]) -> dict[tuple[str, str], Amounts]:
        """Return all amounts at a time, with those that are held then."""
        totals = {key: Amounts(held=each.held, used=each.used) for key, each in self._closed.items()}
        for queue, holding in still:
            self._add(totals, queue, holding, now)
        return totals

    def _add(self, totals: dict[tuple[str, str], Amounts], queue: str, holding: Holding, until: int) -> None:
        held = max(0, until - max(holding.bound, self.begin))
        used = 0 if holding.ran_from is None else max(0, until - max(holding.ran_from, self.begin))
        for resource, amount in holding.amounts.items():
            totals.setdefault((queue, resource), Amounts()).add(Amounts(held=amount * held, used=amount * used))


class Tallies:
    """The tallies of the month, the week and the day of a moment; `closed` returns what has ended since a time."""

    def __init__(self, now: int, closed: Callable[[int], Totals]) -> None:
        self.names: dict[Period, str] = {}
        self.closings = 0
        """Holdings that were counted: what was published is right as long as this, and what is held, is the same."""
        self.of: dict[Period, Tally] = {}
        self.renew(now, closed)

    def renew(self, now: int, closed: Callable[[int], Totals]) -> set[Period]:
        """Begin anew the periods that have ended, and return them: a month is not read again each day."""
        begun = {period for period, name in names_at(now).items() if self.names.get(period) != name}
        for period in begun:
            begin = round(period_of(period, now / MS).begin * MS)
            self.of[period] = Tally(begin, closed(begin))
        self.names = names_at(now)
        return begun

    def close(self, queue: str, holding: Holding, *, but: Collection[Period] = ()) -> None:
        """Count a holding that has ended, in all periods `but` those that know it."""
        self.closings += 1
        for period, each in self.of.items():
            if period not in but:
                each.close(queue, holding)

    def document(self, now: int, still: Iterable[tuple[str, Holding]]) -> dict[str, Any]:
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
