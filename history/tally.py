"""What each queue has held in this month, kept up to date by holdings that begin and end. Pure.

Months are those of UTC. What is published is exact at its time, and stays so until a holding begins or ends: readers
add what is held since.
"""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from history.integral import Amounts, Totals
from history.model import MS, Holding
from muster.resources.vector import unit


class Tally:
    """Held and used amounts of one month by queue and resource, in thousandths or base units times milliseconds."""

    def __init__(self, now: int, closed: Totals) -> None:
        self.month = month_of(now)
        self.begin = begin_of(now)
        self.closings = 0
        """Holdings that were counted: what was published is right as long as this, and what is held, is the same."""
        self._closed: dict[tuple[str, str], Amounts] = {}
        for (key, resource), amounts in closed.items():
            self._closed.setdefault((key[0], resource), Amounts()).add(amounts)

    def close(self, queue: str, holding: Holding) -> None:
        """Count a holding that has ended."""
        self.closings += 1
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

    def document(self, now: int, still: Iterable[tuple[str, Holding]]) -> dict[str, Any]:
        """Return what is published: unit-seconds by queue and resource."""
        queues: dict[str, Any] = {}
        for (queue, resource), amounts in sorted(self.at(now, still).items()):
            of_queue = queues.setdefault(queue, {"month": self.month, "seconds": {}})
            of_queue["seconds"][resource] = round(amounts.held / (unit(resource) * MS), 3)
        return {"until": now / MS, "queues": queues}


def month_of(now: int) -> str:
    """Return the month of a time: 2026-11."""
    return f"{datetime.fromtimestamp(now / MS, UTC):%Y-%m}"


def begin_of(now: int) -> int:
    """Return the first millisecond of the month of a time."""
    at = datetime.fromtimestamp(now / MS, UTC)
    return round(at.replace(day=1, hour=0, minute=0, second=0, microsecond=0).timestamp() * MS)
