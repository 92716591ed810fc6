"""Metrics of a planning cycle by queue and of the whole cluster: who waits for how long, and what is idle meanwhile."""

from collections import Counter
from typing import Final

from prometheus_client import Gauge

from extender.planner.framework.decisions import Unschedulable
from extender.planner.framework.session import Session
from extender.planner.state.spareseats import seats_of
from muster.api.kubernetes.meta import readable_time
from muster.resources.vector import unit

WAITING: Final = Gauge(
    "muster_queue_gangs_waiting", "Gangs of a queue that wait for a placement, with a reason", ["queue"]
)
OLDEST: Final = Gauge(
    "muster_queue_longest_wait_seconds", "Age of the oldest gang of a queue that waits for a placement", ["queue"]
)
SPARES: Final = Gauge(
    "muster_queue_spare_seats", "Seats that gangs of a queue keep for members that they lose: kept, and lent of them",
    ["queue", "what"],
)  # fmt: skip
NODES: Final = Gauge(
    "muster_cluster_resources",
    "Of each resource, in its base unit, over all nodes: what they offer to pods, and what is free of it",
    ["resource", "what"],
)
RENEWED_S: Final = 5.0


class QueueMetrics:
    """What was told of queues and resources, so that those that are gone are told no more."""

    def __init__(self) -> None:
        self._queues: set[str] = set()
        self._resources: set[str] = set()
        self._told_at: float | None = None

    def tell(self, session: Session) -> None:
        """Set the metrics to what this cycle has seen, unless they are new."""
        if self._told_at is not None and 0 <= session.now - self._told_at < RENEWED_S:
            return
        self._told_at = session.now
        self._tell_queues(session)
        self._tell_resources(session)

    def _tell_queues(self, session: Session) -> None:
        counts: dict[str, int] = {}
        oldest: dict[str, str] = {}
        for gang in {each.gang.key: each.gang for each in session.decided(Unschedulable)}.values():
            if gang.started:  # it lacks no more than growth, or a member
                continue
            counts[gang.queue] = counts.get(gang.queue, 0) + 1
            oldest[gang.queue] = min(oldest.get(gang.queue, gang.created), gang.created)
        kept, lent = _spares(session)
        for name in {*session.snapshot.queues, *self._queues}:
            if name not in session.snapshot.queues:
                WAITING.remove(name)
                OLDEST.remove(name)
                SPARES.remove(name, "kept")
                SPARES.remove(name, "lent")
                continue
            SPARES.labels(name, "kept").set(kept[name])
            SPARES.labels(name, "lent").set(lent[name])
            since = readable_time(oldest.get(name))
            WAITING.labels(name).set(counts.get(name, 0))
            OLDEST.labels(name).set(0.0 if since is None else max(0.0, session.now - since))
        self._queues = set(session.snapshot.queues)

    def _tell_resources(self, session: Session) -> None:
        snapshot = session.snapshot
        offered, free = snapshot.allocatable.sum(axis=1), snapshot.free.clip(min=0).sum(axis=1)
        names = {name: row for name, row in snapshot.axis.items() if row < len(offered) and offered[row] > 0}
        for name in self._resources - names.keys():
            NODES.remove(name, "offered")
            NODES.remove(name, "free")
        for name, row in names.items():
            NODES.labels(name, "offered").set(float(offered[row]) / unit(name))
            NODES.labels(name, "free").set(float(free[row]) / unit(name))
        self._resources = set(names)


def _spares(session: Session) -> tuple[Counter[str], Counter[str]]:
    """Return queue → seats that its gangs keep for members that they lose, and how many of them are lent."""
    kept, lent = Counter[str](), Counter[str]()
    for gang in session.snapshot.gangs:
        for seats, _ in seats_of(gang):
            kept[gang.queue] += seats.count
            lent[gang.queue] += min(seats.count, session.away[gang.uid, seats.pod_set, seats.node])
    return kept, lent
