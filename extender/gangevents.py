"""Recorder of Events about gangs, on the PodGroup and on the gang's workload; `kubectl describe` shows these Events.

A workload gets an Event when its gang starts to wait, or when the reason for waiting changes. A workload also gets an
Event when its gang is planned, bound or evicted, or gets a reservation. A new message with the same reason causes no
Event on the workload, and a workload gets at most ten Events per minute.
"""

import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Literal

from cachetools import LRUCache

from extender.planner import reasons
from extender.planner.state.gangs import GangView
from extender.planner.state.pods import PodRecord
from muster.api.kubernetes.core import PODS
from muster.api.kubernetes.meta import Object, ObjectMeta, OwnerReference
from muster.api.muster.gang import workload_above
from muster.api.muster.native import subject
from muster.api.muster.placement import PodSetPlacement
from muster.api.muster.reason import Reason
from muster.api.volcano import batch
from muster.kube.events import EventWriter

MOST = 10
PERIOD_S = 60.0
"""Period in seconds to which the maximum number of a workload's Events applies."""
_REMEMBERED = 10_000

_Type = Literal["Normal", "Warning"]
_News = tuple[str, str]
"""Reason and kind of an Event. An Event is recorded only if its reason or kind differs from the last Event."""


class GangEvents:
    """Thread-safe recorder of Events on PodGroups and their workloads; `monotonic_s` returns monotonic seconds."""

    def __init__(self, recorder: EventWriter, *, monotonic_s: Callable[[], float]) -> None:
        self._recorder = recorder
        self._monotonic_s = monotonic_s
        self._lock = threading.Lock()
        self._last: LRUCache[tuple[str, str], _News] = LRUCache(_REMEMBERED)
        """Maps the UIDs of a workload and its gang to the last Event about this gang on this workload."""
        self._sent: LRUCache[str, deque[float]] = LRUCache(_REMEMBERED)
        """Maps the UID of a workload to the times of its latest Events."""

    def waits(self, gang: GangView, reason: str, message: str, *, other_reason: bool) -> None:
        """Record that the gang waits; `other_reason` is True if it did not wait before, or for a different reason."""
        self._recorder.event(subject(gang.group), "Warning", "Unschedulable", message)
        if other_reason:
            self._report(gang, "Warning", "Unschedulable", message, kind=reason, by_controller=True)

    def scheduled(self, gang: GangView, message: str) -> None:
        """Record that enough members are bound to nodes; for a gang of one pod, kube-scheduler records this."""
        if len(gang.pods) > 1:
            self._recorder.event(subject(gang.group), "Normal", "Scheduled", message)

    def reserved(self, gang: GangView, message: str) -> None:
        """Record that nodes are reserved for the gang."""
        self._recorder.event(subject(gang.group), "Normal", "Reserved", message)
        self._report(gang, "Normal", "Reserved", message)

    def planned(self, gang: GangView, pod_sets: Sequence[PodSetPlacement], epoch: int, *, victims: int) -> None:
        """Record that the gang has a placement, and the number of victims that must be evicted first."""
        if _is_worth_telling(gang):
            nodes = dict.fromkeys(run.node for pod_set in pod_sets for run in pod_set.runs if run.node)
            pods = sum(run.count for pod_set in pod_sets for run in pod_set.runs if run.node)
            self._report(
                gang, "Normal", "Planned", reasons.placements.planned(pods, list(nodes), victims), kind=str(epoch)
            )

    def borrows(self, gang: GangView, nodes: Sequence[str], epoch: int) -> None:
        """Record that members will run on spare slots of other gangs."""
        message = reasons.placements.on_spares(nodes)
        self._recorder.event(subject(gang.group), "Normal", "BorrowsSpares", message)
        self._report(gang, "Normal", "BorrowsSpares", message, kind=f"spares {epoch}")

    def bound(self, gang: GangView, message: str) -> None:
        """Record that all planned members are bound to nodes."""
        if _is_worth_telling(gang):
            epoch = gang.placement.spec.epoch if gang.placement else 0
            self._report(gang, "Normal", "Bound", message, kind=str(epoch))

    def abandoned(self, gang: GangView, message: str) -> None:
        """Record that the gang's placement could not be carried out."""
        self._recorder.event(subject(gang.group), "Warning", "PlacementAbandoned", message)
        self._report(gang, "Warning", "PlacementAbandoned", message)

    def evicts(self, gang: GangView, pod: PodRecord, reason: Reason) -> None:
        """Record that a pod of the gang is evicted so that another gang gets capacity."""
        self._recorder.event(subject(gang.group), "Normal", "Evict", f"{pod.name}: {reason}")
        meta = ObjectMeta(name=pod.name, namespace=pod.namespace, uid=pod.uid)
        member = Object(api_version=PODS.api_version, kind=PODS.kind, metadata=meta)
        self._recorder.event(member, "Normal", "Evict", str(reason))

    def evicts_own(self, gang: GangView, pod: PodRecord, reason: Reason) -> None:
        """Record that a pod was deleted with all members of its incomplete gang."""
        self._recorder.event(subject(gang.group), "Normal", "Evict", f"{pod.name}: {reason}")
        self.evicted(gang, sum(each.uses_node for each in gang.pods), reason, kind=str(reason))

    def noticed(self, gang: GangView, message: str, kind: str) -> None:
        """Record that pods of the gang have an eviction notice; `kind` distinguishes this notice from others."""
        self._report_to_both(gang, "Warning", "EvictionNotice", message, kind)

    def withdrawn(self, gang: GangView, message: str, kind: str) -> None:
        """Record that the gang's eviction notice was withdrawn; `kind` distinguishes this notice from others."""
        self._report_to_both(gang, "Normal", "EvictionWithdrawn", message, kind)

    def _report_to_both(self, gang: GangView, type_: _Type, reason: str, message: str, kind: str) -> None:
        """Record one Event on the PodGroup and one on its workload, even if several cycles repeat the decision."""
        if self._is_news((gang.uid, gang.uid), (reason, kind)):
            self._recorder.event(subject(gang.group), type_, reason, message)
        self._report(gang, type_, reason, message, kind=kind)

    def repairs(self, gang: GangView, reason: Reason) -> None:
        """Record that members of the gang are evicted because of node faults."""
        self._recorder.event(subject(gang.group), "Warning", "NodeFault", str(reason))
        self._report(gang, "Warning", "NodeFault", str(reason))

    def evicted(self, gang: GangView, pods: int, reason: Reason, kind: str) -> None:
        """Record the number of evicted pods of the gang; `kind` distinguishes this eviction from others."""
        owner = gang.group.metadata.controller
        if owner is not None and owner.kind != PODS.kind:  # a pod without an owner has its own Event
            self._report(gang, "Warning", "Evicted", reasons.placements.evicted(pods, reason), kind=kind)

    def _report(
        self, gang: GangView, type_: _Type, reason: str, message: str, *, kind: str = "", by_controller: bool = False
    ) -> None:
        """Record an Event on the workload and its owner, except on a Volcano Job if `by_controller` is true."""
        meta = gang.group.metadata
        for owner, text in _owners(meta, message):
            if by_controller and batch.is_job(owner):
                continue
            if self._is_news((owner.uid, gang.uid), (reason, kind or message)):
                about = ObjectMeta(name=owner.name, namespace=meta.namespace, uid=owner.uid)
                self._recorder.event(
                    Object(api_version=owner.api_version, kind=owner.kind, metadata=about), type_, reason, text
                )

    def _is_news(self, of: tuple[str, str], news: _News) -> bool:
        now = self._monotonic_s()
        with self._lock:
            if self._last.get(of) == news:
                return False
            sent = self._sent.setdefault(of[0], deque(maxlen=MOST))
            if len(sent) == MOST and now - sent[0] < PERIOD_S:
                return False
            sent.append(now)
            self._last[of] = news
            return True


def _is_worth_telling(gang: GangView) -> bool:
    """Return True for a gang with several pods or a gang that had to wait; kube-scheduler reports other gangs."""
    waited = any(each.type == "Unschedulable" for each in gang.group.status.conditions)
    return waited or gang.min_member > 1 or sum(pod_set.replicas for pod_set in gang.pod_sets) > 1


def _owners(meta: ObjectMeta, message: str) -> Iterator[tuple[OwnerReference, str]]:
    """Yield the workload and its owner, each with a message, which names the gang if the names differ."""
    owner, above = meta.controller, workload_above(meta)
    if owner is None:
        return
    yield owner, message
    if above is not None and above.uid != owner.uid:
        yield above, message if above.name == owner.name else f"{owner.kind} {owner.name}: {message}"
