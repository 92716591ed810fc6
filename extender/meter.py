"""Counts what queues hold between two publications of the recorder, so that a budget knows it at every moment. Pure.

Without it a gang that ends would take what it has used since the last publication with it, until the next one: for a
moment its budget would look unused, which is when a gang that waits for it is planned; and for as long as the
recorder is down.
"""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import Final

from extender.planner.fairshare.budgets import held_now
from extender.planner.framework.snapshot import Snapshot
from muster.api.muster.usage import AHEAD_S, PERIODS, Period, PeriodUsage, QueueUsage, Usage, period_of
from muster.resources.vector import unit

Spent = dict[tuple[str, str], float]
"""Queue and resource → units, or their seconds."""
AWAY_S: Final = 60.0
"""Looks are a second apart, and in the largest clusters some."""
_NO_RATES: Final[Mapping[tuple[str, str], float]] = {}


class Meter:
    """Integrates what is held, from one look to the next; it begins anew with each publication."""

    def __init__(self) -> None:
        self._until: float | None = None
        """Up to when the publication counts that this one goes on from."""
        self._last = 0.0
        self._rates = _NO_RATES
        """Units that were held at the last look."""
        self._since: dict[Period, Spent] = {}

    def advanced(self, published: Usage | None, snapshot: Snapshot, now: float) -> Usage | None:
        """Return the usage as of now: what is published, and what has been held since then."""
        limits = snapshot.limited.limits.bounds.values()
        resources = {budget.resource for bounds in limits for budget in bounds.annotated.budgets}
        if published is None or published.until > now + AHEAD_S or not resources:
            self._until = None
            return published
        rates = {key: amount / unit(key[1]) for key, amount in held_now(snapshot, resources).items()}
        # What was held at the last look counts until now: a gang may have ended since. Not so where this replica has
        # not looked for a while, as another one led.
        held = self._rates if self._until is not None and now - self._last <= AWAY_S else rates
        begin = self._last
        if published.until != self._until:
            begin, self._since = published.until, {}
        for period in PERIODS:
            first = period_of(period, now).begin
            since = self._since[period] = {} if begin < first else self._since.get(period, {})
            seconds = max(0.0, now - max(begin, first))
            for key, units in held.items():
                since[key] = since.get(key, 0.0) + units * seconds
        self._until, self._last, self._rates = published.until, now, rates
        return _sum(published, self._since, now, resources)


def _sum(published: Usage, since: Mapping[Period, Spent], now: float, resources: AbstractSet[str]) -> Usage:
    """Return what is published of these resources, and what was held since then."""
    sums: dict[Period, dict[str, dict[str, float]]] = {}
    names = {period: period_of(period, now).name for period in PERIODS}
    for period, spent in since.items():
        of_period = sums[period] = {}
        for queue, usage in published.queues.items():
            told = usage.within(period, names[period])
            of_period[queue] = {each: told[each] for each in resources if each in told}
        for (queue, resource), seconds in spent.items():
            of_queue = of_period.setdefault(queue, {})
            of_queue[resource] = of_queue.get(resource, 0.0) + seconds

    def of(queue: str, period: Period) -> dict[str, float]:
        return sums.get(period, {}).get(queue, {})

    return Usage(
        until=max(now, published.until),
        queues={
            queue: QueueUsage(
                month=names["month"],
                seconds=of(queue, "month"),
                week=PeriodUsage(names["week"], of(queue, "week")),
                day=PeriodUsage(names["day"], of(queue, "day")),
            )
            for queue in {queue for each in sums.values() for queue in each}
        },
        periods=published.periods,
    )
