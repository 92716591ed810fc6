"""Usage that was published before a store began, and that the store lacks: budgets do not begin at nothing with it.

Without a volume the store ends with the recorder's pod. What is in the ConfigMap `muster-usage` then is all that is
known of the running month, week and day.
"""

from collections import defaultdict

from history.integral import Amounts, Totals
from history.model import MS
from history.store import HistoryStore
from history.usage import held_between
from muster.api.muster.usage import AHEAD_S, PERIODS, PublishedUsage, period_of
from muster.resources.vector import unit


def carried(store: HistoryStore, published: PublishedUsage, began: int, now: int) -> dict[int, Totals[str]]:
    """Return the begin of each running period that is older than the store → what the store lacks of it, by queue.

    `began` is when the store began; times are milliseconds. What lies in the future is not believed.
    """
    found: dict[int, Totals[str]] = {}
    until = round(published.until * MS)
    for period in PERIODS:
        running = period_of(period, now / MS)
        begin = round(running.begin * MS)
        if not begin <= until <= now + AHEAD_S * MS or began <= begin:
            continue
        known = held_between(store, begin, until)
        before = {
            (queue, resource): round(seconds * unit(resource) * MS)
            for queue, usage in published.queues.items()
            for resource, seconds in usage.within(period, running.name).items()
        }
        lacks: Totals[str] = defaultdict(Amounts)
        for queue, resource in before.keys() | known.keys():  # less than nothing where a gang has moved since
            more = before.get((queue, resource), 0) - known[queue, resource].held
            if queue and more:
                lacks[queue, resource].held = more
        if lacks:
            found[begin] = lacks
    return found
