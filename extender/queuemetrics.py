"""Metrics of each queue and of the cluster after a planning cycle: waiting gangs, wait times, and idle capacity."""

from collections import Counter
from collections.abc import Mapping
from typing import Final

from prometheus_client import Gauge

from extender.planner.framework.decisions import Unschedulable
from extender.planner.framework.session import Session
from extender.planner.state.spareentries import spare_runs_of
from muster.api.kubernetes.meta import readable_time
from muster.resources.vector import unit

WAITING: Final = Gauge(
    "muster_queue_gangs_waiting", "Gangs of a queue that wait for a placement, with a reason", ["queue"]
)
OLDEST: Final = Gauge(
    "muster_queue_longest_wait_seconds", "Age of the oldest gang of a queue that waits for a placement", ["queue"]
)
SPARES: Final = Gauge(
    "muster_queue_spare_seats", "Spare slots that a queue's gangs hold for lost members: all (kept) or only lent ones",
    ["queue", "what"],
)  # fmt: skip
NODES: Final = Gauge(
    "muster_cluster_resources",
    "Capacity of all nodes, all of it (offered) or the free part, by resource in its base unit",
    ["resource", "what"],
)
RENEWED_S: Final = 5.0


class Series:
    """All samples of a gauge, one for each combination of labels; each update replaces all samples."""

    def __init__(self, gauge: Gauge) -> None:
        self._gauge = gauge
        self._labels: frozenset[tuple[str, ...]] = frozenset()

    def set(self, samples: Mapping[tuple[str, ...], float]) -> None:
        """Set samples of the gauge, and remove the samples with other labels."""
        for labels in self._labels - samples.keys():
            self._gauge.remove(*labels)
        for labels, value in samples.items():
            self._gauge.labels(*labels).set(value)
        self._labels = frozenset(samples)


class QueueMetrics:
    """Metrics of queues and resources as of the last cycle, updated every few seconds."""

    def __init__(self) -> None:
        self._waiting, self._oldest, self._spares, self._nodes = map(Series, (WAITING, OLDEST, SPARES, NODES))
        self._updated_at: float | None = None

    def update(self, session: Session) -> None:
        """Set the metrics from this cycle, unless they were set only a few seconds ago."""
        if self._updated_at is not None and 0 <= session.now - self._updated_at < RENEWED_S:
            return
        self._updated_at = session.now
        self._update_queues(session)
        self._update_resources(session)

    def _update_queues(self, session: Session) -> None:
        names, counts, oldest = session.snapshot.queues, Counter[str](), dict[str, str]()
        for gang in {each.gang.key: each.gang for each in session.decided(Unschedulable)}.values():
            if gang.started:  # the gang lacks only growth or a member
                continue
            counts[gang.queue] += 1
            oldest[gang.queue] = min(oldest.get(gang.queue, gang.created), gang.created)
        since = {name: readable_time(oldest.get(name)) for name in names}
        kept, lent = _spares(session)
        self._waiting.set({(name,): counts[name] for name in names})
        self._oldest.set({(name,): 0.0 if at is None else max(0.0, session.now - at) for name, at in since.items()})
        spares = {"kept": kept, "lent": lent}
        self._spares.set({(name, what): count[name] for name in names for what, count in spares.items()})

    def _update_resources(self, session: Session) -> None:
        snapshot = session.snapshot
        offered, free = snapshot.allocatable.sum(axis=1), snapshot.free.clip(min=0).sum(axis=1)
        rows = {name: row for name, row in snapshot.axis.items() if row < len(offered) and offered[row] > 0}
        amounts = {"offered": offered, "free": free}
        self._nodes.set(
            {(name, what): float(of[row]) / unit(name) for name, row in rows.items() for what, of in amounts.items()}
        )


def _spares(session: Session) -> tuple[Counter[str], Counter[str]]:
    """Return two counters by queue: all spare slots of the queue's gangs, and only the lent spare slots."""
    kept, lent = Counter[str](), Counter[str]()
    for gang in session.snapshot.gangs:
        for run, _ in spare_runs_of(gang):
            kept[gang.queue] += run.count
            lent[gang.queue] += min(run.count, session.away[gang.uid, run.pod_set, run.node])
    return kept, lent
