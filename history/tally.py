"""Usage of each queue in this month, week and day, updated whenever a member gets or leaves a node. Pure.

Periods are in UTC, and weeks begin on Monday. Published usage is exact at its time, and stays valid until a member gets
or leaves a node. Programs that read the usage add the amounts that members have held since its time.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from heapq import nsmallest
from typing import Any, Final

import msgspec

from history.integral import FOREVER, Amounts, TimeSpan, Totals, add, by_queue, integrate
from history.model import MS, Holding
from muster.api.muster.usage import MOST_CHARS, PERIODS, RESOURCES_KEPT, Period, period_of
from muster.resources.gpus import is_gpu
from muster.resources.vector import unit


def spans_of(holdings: Iterable[Holding]) -> Iterator[TimeSpan[str]]:
    """Yield the time spans in which members hold, or have held, their amounts, keyed by queue."""
    for one in holdings:
        whole = TimeSpan(one.queue, one.amounts, one.bound, one.ended, held=True, used_from=one.ran_from)
        yield from by_queue(whole, one.moves, lambda queue: queue)


Budgeted = Mapping[str, AbstractSet[str]]
"""Maps each existing queue to the resources in the budgets of the queue and its ancestors."""
_ENTRIES: Final = 20_000
"""Number of amounts in a tally above which the tally drops the amounts that are not published."""
_CHARS: Final = 700_000
"""Maximum number of characters of the published amounts. The rest of the ConfigMap is for the names of queues whose
usage is left out."""
_STANDARD: Final = ("cpu", "memory", "pods", "ephemeral-storage")


def not_known() -> Budgeted | None:
    """Return None, because the resources in the queues' budgets are unknown while the Queues have not been read."""
    return None


def rank(budgeted: Budgeted | None, queue: str, resource: str) -> tuple[int, str]:
    """Return a sort key for a queue's resources: resources in budgets, GPUs and standard ones, then others."""
    if budgeted is not None and resource in budgeted.get(queue, ()):
        return 0, resource
    return (1 if is_gpu(resource) or resource in _STANDARD else 2), resource


def counting(totals: Totals[str], budgeted: Budgeted | None) -> Totals[str]:
    """Return the amounts to publish: for each existing queue, the resources in its budgets and a few others.

    All other amounts are dropped, because users may write any queue or resource name into a pod that admission has not
    checked.
    """
    names: dict[str, list[str]] = {}
    for queue, resource in totals:
        if budgeted is None or queue in budgeted:
            names.setdefault(queue, []).append(resource)
    found: Totals[str] = defaultdict(Amounts)
    for queue, resources in names.items():
        named = 0 if budgeted is None else len(budgeted.get(queue, ()))
        for resource in nsmallest(named + RESOURCES_KEPT, resources, key=lambda each: rank(budgeted, queue, each)):
            found[queue, resource] = totals[queue, resource]
    return found


class Tally:
    """Usage of queues since a time; the tally keeps the sum over all members that have left their nodes."""

    def __init__(self, begin: int, closed: Totals[str], budgeted: Callable[[], Budgeted | None] = not_known) -> None:
        self.begin = begin
        self._closed = closed
        self._budgeted = budgeted

    def close(self, ended: Iterable[TimeSpan[str]]) -> None:
        """Count members that have left their nodes, given as time spans."""
        add(self._closed, integrate(ended, self.begin, FOREVER))
        if len(self._closed) > _ENTRIES:
            self._closed = counting(self._closed, self._budgeted())

    def at(self, now: int, still: Iterable[TimeSpan[str]], *, cut: bool = True) -> Totals[str]:
        """Return the amounts to publish at a time, including members that `still` hold nodes at this time.

        If `cut` is false, amounts that are not published are included.
        """
        totals = integrate(still, self.begin, now)
        add(totals, self._closed)
        return counting(totals, self._budgeted()) if cut else totals


class Tallies:
    """The tallies of this month, week and day; `closed` returns the usage, after a time, of members that have ended."""

    def __init__(
        self, now: int, closed: Callable[[int], Totals[str]], budgeted: Callable[[], Budgeted | None] = not_known
    ) -> None:
        self.budgeted = budgeted
        self.names: dict[Period, str] = {}
        self.closings = 0
        """Number of members counted so far that have left their nodes. The published usage stays valid as long as this
        number and the members that hold nodes are unchanged."""
        self.left_out = 0
        """Number of queues that the last document leaves out because it would be too large."""
        self.of: dict[Period, Tally] = {}
        self.renew(now, closed)

    def renew(self, now: int, closed: Callable[[int], Totals[str]]) -> set[Period]:
        """Start a new tally for each period that has ended, and return these periods.

        Only the usage of new periods is read from the store.
        """
        begun = {period for period, name in names_at(now).items() if self.names.get(period) != name}
        for period in begun:
            begin = round(period_of(period, now / MS).begin * MS)
            self.of[period] = Tally(begin, closed(begin), self.budgeted)
        self.names = names_at(now)
        return begun

    def close(self, ended: Collection[TimeSpan[str]], *, but: Collection[Period] = ()) -> None:
        """Count members that have left their nodes in all periods except `but`, which already include these members."""
        self.closings += len(ended)
        for period, each in self.of.items():
            if period not in but:
                each.close(ended)

    def document(self, now: int, still: Iterable[TimeSpan[str]]) -> dict[str, Any]:
        """Return the document to publish (`muster.api.muster.usage`): unit-seconds by queue, period and resource.

        The month's amounts are in the queue's own object, where earlier versions of Muster expect them. Resources in
        budgets come first. A queue is left out if the resources in its budgets do not fit into the document. So its
        budgets are never compared with incomplete usage.
        """
        held, budgeted = [*still], self.budgeted()
        cut = budgeted is not None  # of queues that were not read, any resource may have a budget
        totals = {period: self.of[period].at(now, held, cut=cut) for period in PERIODS}
        order = sorted({key for each in totals.values() for key in each}, key=lambda key: (*rank(budgeted, *key), key))
        queues: dict[str, Any] = {}
        left_out, chars = set[str](), 0
        for queue, resource in order:
            chars += len(PERIODS) * (len(json_of(resource)) + _NUMBER)
            chars += 0 if queue in queues else len(json_of(queue)) + _QUEUE
            if chars <= _CHARS:
                _enter(queues.setdefault(queue, {}), queue, resource, totals, self.names)
            elif budgeted is None or rank(budgeted, queue, resource)[0] == 0:
                left_out.add(queue)
        for queue in left_out:
            queues.pop(queue, None)
        self.left_out = len(left_out)
        fits = sum(len(json_of(each)) + 1 for each in left_out) < MOST_CHARS - _CHARS
        known = sorted(left_out) if fits else [""]
        return {"until": now / MS, "queues": queues, "periods": PERIODS, "left_out": known}


def json_of(text: str) -> bytes:
    """Return a text as JSON, as it appears in the published document."""
    return msgspec.json.encode(text)


_NUMBER: Final = 24
"""Estimated number of characters of an amount in the published document, including punctuation."""
_QUEUE: Final = 140
"""Estimated number of characters of a queue in the published document, without the queue's amounts."""


def _enter(
    of_queue: dict[str, Any],
    queue: str,
    resource: str,
    totals: Mapping[Period, Totals[str]],
    names: Mapping[Period, str],
) -> None:
    """Add one resource's amounts in all periods to a queue's entry in the document."""
    for period, each in totals.items():
        amounts = each.get((queue, resource))
        if amounts is None:
            continue
        if period == "month":
            seconds = of_queue.setdefault("seconds", {})
            of_queue["month"] = names[period]
        else:
            seconds = of_queue.setdefault(period, {"name": names[period], "seconds": {}})["seconds"]
        seconds[resource] = round(amounts.held / (unit(resource) * MS), 3)


def names_at(now: int) -> dict[Period, str]:
    """Return the names of the periods that contain a time (ms), such as 2026-11, 2026-W48 and 2026-11-26."""
    return {period: period_of(period, now / MS).name for period in PERIODS}
