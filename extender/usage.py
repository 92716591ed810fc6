"""Past usage of queues, from the ConfigMap `muster-usage` in Muster's namespace, extended up to the present.

Only the history recorder's service account is allowed to write the ConfigMap. If the ConfigMap is missing, budgets are
not enforced: a failure of the history recorder may cost money, but must not stop any gang. If the ConfigMap's content
cannot be parsed, the last valid content is used.

Between publications, a meter adds the usage of queues, so that budgets are always up to date. Without the meter, when a
gang ends, its usage since the last publication would be missing until the next publication. A waiting gang could then
be planned beyond the budget, especially while the recorder is down.
"""

from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from typing import Any, Final

import structlog
from msgspec import field

from extender.planner.fairshare.budgets import held_now
from extender.planner.framework.snapshot import Snapshot
from muster.api.base import Resource
from muster.api.kubernetes import meta
from muster.api.muster.usage import (
    AHEAD_S,
    PERIODS,
    Period,
    PeriodUsage,
    PublishedUsage,
    QueueUsage,
    period_of,
    read_usage,
)
from muster.api.names import USAGE
from muster.kube.client import Client
from muster.kube.reflector import Reflector
from muster.resources.vector import unit

log = structlog.get_logger()
WAIT_S: Final = 15.0
"""Maximum time in seconds that the planner waits for the usage when it starts, so that no gang bypasses a budget."""


class _ConfigMap(meta.Object):
    data: dict[str, Any] = field(default_factory=dict)


_USAGE: Final = Resource("", "v1", "configmaps", "ConfigMap", _ConfigMap)


class UsageFeed:
    """Watcher of the ConfigMap with the usage of queues; `current` is its last valid content."""

    def __init__(self, client: Client, namespace: str, *, monotonic_s: Callable[[], float]) -> None:
        self._monotonic_s = monotonic_s
        self._began_s = monotonic_s()
        self.current: PublishedUsage | None = None
        """The ConfigMap's last valid content; None before it, or after the ConfigMap's deletion."""
        self._failed = ""
        """The error in the ConfigMap's last content, which has been logged; empty if there was none."""
        self._reflector: Reflector[_ConfigMap] = Reflector(
            client, _USAGE, namespace=namespace, field_selector=f"metadata.name={USAGE}"
        )
        self._reflector.add_handler(self.on_change)

    def ready(self) -> bool:
        """Return True once the ConfigMap has been read or found missing, or once the waiting time `WAIT_S` is over."""
        return self._reflector.synced or self._monotonic_s() - self._began_s > WAIT_S

    def start(self) -> None:
        """Start watching the ConfigMap; called on the event loop."""
        self._reflector.start()

    def stop(self) -> None:
        """Stop watching the ConfigMap."""
        self._reflector.stop()

    def on_change(self, _old: _ConfigMap | None, new: _ConfigMap | None) -> None:
        """Process a change of the ConfigMap; `new` is None if the ConfigMap was deleted."""
        try:
            self.current = read_usage(new.data) if new is not None else None
            why = ""
        except ValueError as error:
            why = str(error)
        if why and why != self._failed:
            log.warning("the usage of queues cannot be read; the last known usage is used", configmap=USAGE, why=why)
        self._failed = why


Spent = dict[tuple[str, str], float]
"""Maps a queue and a resource to an amount in the resource's unit, or to a usage in unit seconds."""
AWAY_S: Final = 60.0
"""Longest time between two measurements for which the first one's usage is counted; usually a few seconds."""
_NO_RATES: Final[Mapping[tuple[str, str], float]] = {}


class Meter:
    """Meter that sums up, over the time since the last publication, the resources that queues hold."""

    def __init__(self) -> None:
        self._until: float | None = None
        """Time up to which the usage is published; the meter adds the usage since this time."""
        self._last = 0.0
        self._rates = _NO_RATES
        """Maps a queue and a resource to the amount held at the last measurement, in its unit."""
        self._since: dict[Period, Spent] = {}

    def advanced(self, published: PublishedUsage | None, snapshot: Snapshot, now: float) -> PublishedUsage | None:
        """Return the usage up to the present: the published usage plus the usage since the publication."""
        limits = snapshot.limited.limits.bounds.values()
        resources = {budget.resource for bounds in limits for budget in bounds.annotated.budgets}
        if published is None or published.until > now + AHEAD_S or not resources:
            self._until = None
            return published
        rates = {key: amount / unit(key[1]) for key, amount in held_now(snapshot, resources).items()}
        # Usage at the last pass counts until now, even if a gang has ended since, unless this replica has made no pass
        # for a while because another one led.
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


def _sum(
    published: PublishedUsage, since: Mapping[Period, Spent], now: float, resources: AbstractSet[str]
) -> PublishedUsage:
    """Return the published usage of the given resources plus their usage since the publication."""
    sums: dict[Period, dict[str, dict[str, float]]] = {}
    names = {period: period_of(period, now).name for period in PERIODS}
    for period, spent in since.items():
        of_period = sums[period] = {}
        for queue, usage in published.queues.items():
            used = usage.within(period, names[period])
            of_period[queue] = {each: used[each] for each in resources if each in used}
        for (queue, resource), seconds in spent.items():
            of_queue = of_period.setdefault(queue, {})
            of_queue[resource] = of_queue.get(resource, 0.0) + seconds

    def of(queue: str, period: Period) -> dict[str, float]:
        return sums.get(period, {}).get(queue, {})

    return PublishedUsage(
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
        left_out=published.left_out,
    )
