"""Writer of eviction notices, and of their withdrawal, to pods; it also counts the outcomes of notices.

A pod first gets the condition of its eviction notice, and then the annotations. The planner repeats its decision until
the pod has the annotations, so a notice becomes complete even if the process stops in between. The time of the eviction
is stored in the placement of the gang that gets the capacity.
"""

from collections.abc import Iterable
from functools import partial
from typing import Any, TypeVar

import structlog
from cachetools import LRUCache
from prometheus_client import Counter

from extender.planner import reasons
from extender.planner.framework import decisions
from extender.planner.framework.session import Session
from extender.planner.state.pods import PodRecord
from extender.writes import Lane, WriteContext, Writer
from muster.api import names
from muster.api.kubernetes import core, meta
from muster.kube.errors import Conflict, NotFound
from muster.process.counters import from_zero

log = structlog.get_logger()
NOTICES = Counter(
    "muster_eviction_notices_total",
    "Eviction notices by outcome: the gang answered, did not answer in time, or was not evicted",
    ["outcome"],
)
LOST_WORK = Counter(
    "muster_lost_work_seconds_total",
    "Work of evicted pods since the last checkpoint that their gang reported, or since its start, in pod seconds",
)
from_zero(NOTICES, ("answered", "silent", "withdrawn"))
_REMEMBERED = 10_000
D = TypeVar("D", decisions.SendNotice, decisions.WithdrawNotice)


class NoticeWriter(Writer):
    """Writer of the decisions SendNotice and WithdrawNotice."""

    def __init__(self, context: WriteContext) -> None:
        super().__init__(context)
        self._counted: LRUCache[tuple[str, str], None] = LRUCache(_REMEMBERED)
        """UID of the gang and subject of each counted notice, so that no notice is counted twice."""

    def write(self, session: Session) -> None:
        """Start a cycle's writes of notices, and record Events on the workloads of the notified gangs."""
        notices = session.decided(decisions.SendNotice)
        for notice in notices:
            self._writes.start(
                Lane.PODS, "notice", notice.pod.uid, partial(self._write_notice, notice), namespace=notice.pod.namespace
            )
        for notice in _of_each_gang(notices):
            words = reasons.placements.notified(notice.pods, notice.evict_at, notice.reason)
            self._events.noticed(notice.gang, words, kind=notice.evict_at)
        stays = session.decided(decisions.WithdrawNotice)
        for stay in stays:
            self._writes.start(
                Lane.PODS, "notice", stay.pod.uid, partial(self._withdraw, stay), namespace=stay.pod.namespace
            )
        for stay in _of_each_gang(stays):
            self._events.withdrawn(stay.gang, reasons.placements.NOT_NEEDED, kind=_audience(stay.pod))
            self._count_notice(stay.gang.uid, _audience(stay.pod), "withdrawn")

    def ended(self, room: decisions.MakeRoom, gang_uid: str, gang: str, pods: int) -> None:
        """Count the eviction of `pods` pods of the gang with the given key and UID."""
        LOST_WORK.inc(pods * room.unsaved_s.get(gang, 0.0))
        if outcome := room.outcomes.get(gang):
            self._count_notice(gang_uid, f"{room.gang.uid}/{room.epoch}", outcome)

    def repaired(self, repair: decisions.EvictForFaults) -> None:
        """Count the outcome of an eviction notice for a repair, if there was one.

        The work lost in a repair is not counted, because no other gang caused the repair.
        """
        if repair.outcome:
            self._count_notice(repair.gang.uid, f"{repair.gang.uid}/{repair.epoch}", repair.outcome)

    def _count_notice(self, gang_uid: str, about: str, outcome: str) -> None:
        if (gang_uid, about) not in self._counted:
            self._counted[gang_uid, about] = None
            NOTICES.labels(outcome).inc()

    def _write_notice(self, decision: decisions.SendNotice) -> None:
        words = reasons.placements.notified(1, decision.evict_at, decision.reason)
        annotations = {names.EVICT_AT: decision.evict_at, names.EVICT_FOR: decision.queue}
        self._patch(decision.pod, self._condition("True", "Evicting", words), annotations)

    def _withdraw(self, stay: decisions.WithdrawNotice) -> None:
        gone = dict.fromkeys((names.EVICT_AT, names.EVICT_FOR, names.EVICT_READY))
        self._patch(stay.pod, self._condition("False", "Withdrawn", reasons.placements.NOT_NEEDED), gone)

    def _condition(self, status: str, reason: str, message: str) -> dict[str, str]:
        now = meta.format_time(self._wall_s())
        kind = names.EVICTION_NOTICE
        return {"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": now}

    def _patch(self, pod: PodRecord, condition: dict[str, str], annotations: dict[str, Any]) -> None:
        status = {"metadata": {"uid": pod.uid}, "status": {"conditions": [condition]}}
        try:
            self._client.strategic_patch(core.PODS, pod.name, status, pod.namespace, subresource="status")
            body = {"metadata": {"uid": pod.uid, "annotations": annotations}}
            new = self._client.merge_patch(core.PODS, pod.name, body, pod.namespace)
        except (Conflict, NotFound) as error:
            log.debug("the pod is gone", pod=pod.key, uid=pod.uid, error=str(error))
            return
        self._cluster.ask(lambda state: state.on_pod_written(new))


def _of_each_gang(decided: Iterable[D]) -> list[D]:
    """Return the first decision about each gang."""
    found: dict[str, D] = {}
    for each in decided:
        found.setdefault(each.gang.uid, each)
    return list(found.values())


def _audience(pod: PodRecord) -> str:
    return pod.answer.evict_at if pod.answer else ""
