"""Published usage from before a store began, which the store lacks: a new store must not reset budgets.

Without a volume, the store is lost with the recorder's pod. The ConfigMap `muster-usage` then has the only data about
the current month, week and day.
"""

from collections import defaultdict

from history.integral import Amounts, Totals
from history.model import MS
from history.store import HistoryStore
from history.usage import held_between
from muster.api.muster.usage import AHEAD_S, PERIODS, PublishedUsage, period_of
from muster.resources.vector import unit


def carried(store: HistoryStore, published: PublishedUsage, began: int, now: int) -> dict[int, Totals[str]]:
    """Return start of each current period that is older than the store → usage that the store lacks, by queue.

    `began` is the start of the store; times are milliseconds. Data from the future is ignored.
    """
    found: dict[int, Totals[str]] = {}
    until = round(published.until * MS)
    for period in PERIODS:
        running = period_of(period, now / MS)
        begin = round(running.begin * MS)
        if not begin <= until <= now + AHEAD_S * MS or began <= begin:
            continue
        known = held_between(store, begin, until)
        unsure = held_between(store, begin, min(began, until))
        before = {
            (queue, resource): round(seconds * unit(resource) * MS)
            for queue, usage in published.queues.items()
            for resource, seconds in usage.within(period, running.name).items()
        }
        lacks: Totals[str] = defaultdict(Amounts)
        for queue, resource in before.keys() | known.keys():  # less than nothing where a gang has moved since
            place = queue, resource  # unpublished usage may have been left out: what this store recorded stays
            more = before[place] - known[place].held if place in before else -unsure[place].held
            if queue and more:
                lacks[queue, resource].held = more
        if lacks:
            found[begin] = lacks
    return found
