"""Metrics of gangs and queues: the seconds until a gang is planned, bound and running, and the resources of queues.

Each step of a gang is counted once, by the extender that leads at the time of the step. Steps that a gang had completed
before this extender first observed the gang are not counted, because another extender has counted them.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from prometheus_client import Gauge, Histogram

from extender.queuemetrics import Series
from muster.api.kubernetes.meta import ObjectMeta, readable_time
from muster.api.kubernetes.scheduling import NativePodGroup
from muster.api.muster.native import as_group
from muster.api.muster.placement import Placement
from muster.api.muster.placementnotes import noted
from muster.api.volcano.scheduling import PodGroup, Queue
from muster.process.tracing import ROOT, SPANS, workload_of
from muster.resources.vector import unit, vector

SECONDS: Final = Histogram(
    "muster_gang_seconds",
    "Seconds from a gang's submission to each stage: planned, bound and running",
    ["stage"],
    buckets=(0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600, 14400, 86400),
)
AMOUNTS: Final = Gauge(
    "muster_queue_resources",
    "Usage, deserved quantity or fair share of a queue, by resource in its base unit",
    ["queue", "resource", "what"],
)
PLANNED, BOUND, RUNNING = "planned", "bound", "running"
_CARRIED_OUT: Final = ("Planned", "Binding", "Bound")
_JUST_S: Final = 2.0
"""Maximum age in seconds of a gang that counts as observed from its creation; API servers store only whole seconds."""


@dataclass(slots=True)
class _Gang:
    workload: str
    """UID of the workload; the trace of this workload contains the gang's steps."""
    submitted_s: float
    reached: set[str] = field(default_factory=set)


class Milestones:
    """Handlers of changes of PodGroups, Placements and Queues, which update the metrics.

    `active` returns True while this extender leads, `owns` returns True for a queue of its node pool, and `wall_s`
    returns the seconds since the epoch.
    """

    def __init__(
        self, *, active: Callable[[], bool], owns: Callable[[str], bool] = lambda _: True, wall_s: Callable[[], float]
    ) -> None:
        self._active = active
        self._owns = owns
        self._amounts: dict[str, Series] = {}
        """Maps a queue's name to the queue's metric series."""
        self._wall_s = wall_s
        self._gangs: dict[str, _Gang] = {}
        """Maps the UID of an observed gang to its steps so far."""

    def group(self, old: PodGroup | None, new: PodGroup | None) -> None:
        """Count the steps that a created, changed or deleted PodGroup shows."""
        if new is None:
            if old is not None:
                self._gangs.pop(old.metadata.uid, None)
            return
        uid, now = new.metadata.uid, self._wall_s()
        if uid not in self._gangs:
            created = readable_time(new.metadata.creation_timestamp)
            submitted_s = now if created is None or now - created < _JUST_S else created
            self._gangs[uid] = _Gang(workload_of(new.metadata), submitted_s)
        before, after = noted(old) if old else None, noted(new)
        if after is not None:
            self._placed(before, after, came=old is not None or self._is_new(new.metadata))
        if _runs(new):
            self._reach(uid, RUNNING, seen=old is not None and not _runs(old))

    def native(self, old: NativePodGroup | None, new: NativePodGroup | None) -> None:
        """Count the steps that a native PodGroup shows; PodGroups of other schedulers never complete a step."""
        self.group(*(as_group(each, "") if each else None for each in (old, new)))

    def placement(self, old: Placement | None, new: Placement | None) -> None:
        """Count the steps that a created, changed or deleted Placement shows."""
        if new is not None:
            self._placed(old, new, came=old is not None or self._is_new(new.metadata))

    def _is_new(self, meta: ObjectMeta) -> bool:
        created = readable_time(meta.creation_timestamp)
        return created is not None and self._wall_s() - created < _JUST_S

    def _placed(self, old: Placement | None, new: Placement, *, came: bool) -> None:
        if new.status.phase not in _CARRIED_OUT:
            return
        before = old.status.phase if old else ""
        self._reach(new.spec.pod_group_uid, PLANNED, seen=came and before not in _CARRIED_OUT)
        if new.status.phase == "Bound":
            self._reach(new.spec.pod_group_uid, BOUND, seen=came and before != "Bound")

    def queue(self, old: Queue | None, new: Queue | None) -> None:
        """Update the metrics of a created, changed or deleted Queue; amounts that cannot be parsed are left out."""
        name = (new or old or Queue()).metadata.name
        after = _amounts(new) if self._owns(name) else {}
        series = self._amounts.pop(name, None) or Series(AMOUNTS)
        series.set(after)
        if after:
            self._amounts[name] = series

    def _reach(self, uid: str, stage: str, *, seen: bool) -> None:
        gang = self._gangs.get(uid)
        if gang is None or stage in gang.reached:
            return
        gang.reached.add(stage)
        if seen and self._active():
            now_s = max(gang.submitted_s, self._wall_s())
            SECONDS.labels(stage).observe(now_s - gang.submitted_s)
            for span in (stage, ROOT) if stage == RUNNING else (stage,):
                SPANS.record(gang.workload, span, gang.submitted_s, now_s)


def _runs(group: PodGroup) -> bool:
    return group.status.running + group.status.succeeded >= max(1, group.spec.min_member)


def _amounts(queue: Queue | None) -> dict[tuple[str, ...], float]:
    if queue is None:
        return {}
    found: dict[tuple[str, ...], float] = {}
    status = queue.status
    given = {"allocated": status.allocated, "deserved": status.deserved, "fairShare": status.fair_share}
    for what, quantities in given.items():
        try:
            amounts = vector(quantities)
        except ValueError:
            continue
        found |= {(queue.metadata.name, name, what): amount / unit(name) for name, amount in amounts.items()}
    return found
