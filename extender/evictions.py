"""Writer of evictions: victims for other gangs, members of incomplete gangs, and pods that must be re-created.

Pods are evicted through the Eviction API, which enforces disruption budgets. Before the first eviction, the placement
of the gang that needs the capacity is written. The placement names all victims, so that a restarted extender can
continue the evictions.
"""

from collections.abc import Callable
from typing import NamedTuple

import structlog
from prometheus_client import Counter

from extender.notices import NoticeWriter
from extender.planner import reasons
from extender.planner.framework import decisions
from extender.planner.framework.session import Session
from extender.planner.state.gangs import GangView
from extender.planner.state.pods import PodRecord
from extender.writes import WriteContext, Writer
from muster.api import names
from muster.api.kubernetes.core import PODS
from muster.api.muster.placement import PlacementPhase
from muster.api.muster.reason import Reason
from muster.kube.errors import APIError, Conflict, NotFound, TooManyRequests
from muster.process.counters import from_zero

log = structlog.get_logger()
EVICTED = Counter("muster_evictions_total", "Evicted pods, by the action that chose them", ["action"])
BELOW_MINIMUM = "below-minimum"
"""Metric label `action` for evicted pods of a gang with too few members; no action chooses these pods."""
from_zero(EVICTED, ("recall", "reclaim", "preempt", "consolidate", "continued", BELOW_MINIMUM))
_UNCOUNTED = {"$deleteFromPrimitiveList/finalizers": ["batch.kubernetes.io/job-tracking"]}
EVICT_AGAIN_S = 5.0
"""Time in seconds after which a pod is evicted again if no watch has reported the pod's end."""


class _Eviction(NamedTuple):
    """One of several evictions in favour of a waiting gang; `gang` is the victim's gang."""

    room: decisions.MakeRoom
    gang: GangView
    pod: PodRecord


class Evictor(Writer):
    """Base class of writers that evict pods; it remembers each evicted pod for a few seconds."""

    def __init__(self, context: WriteContext, notices: NoticeWriter) -> None:
        super().__init__(context)
        self._notices = notices
        self._asked: dict[str, float] = {}
        """Maps the UID of an evicted pod to the time before which the pod is not evicted again."""

    def _forget(self) -> None:
        now = self._monotonic_s()
        self._asked = {uid: until for uid, until in self._asked.items() if until > now}

    def _note(self, pod: PodRecord) -> None:
        self._asked[pod.uid] = self._monotonic_s() + EVICT_AGAIN_S

    def _just_evicted(self, pod: PodRecord) -> bool:
        return self._asked.get(pod.uid, 0.0) > self._monotonic_s()

    def _victim(self, pod: PodRecord) -> PodRecord | None:
        """Return the current version of a pod; None if the pod no longer uses its node or was evicted a moment ago.

        A finished pod is not evicted, because it uses no capacity, and its owner must still count it.
        """
        latest = self._cluster.ask(lambda state: state.pods.get(pod.uid))
        if latest is None or latest.terminating or not latest.uses_node or self._just_evicted(pod):
            return None
        return latest

    def _evict_unchanged(self, pod: PodRecord, grace_s: int | None = None, version: str = "") -> None:
        """Evict a pod if its version is `version`, by default the version that the planner knows.

        Raises Conflict, or TooManyRequests if a disruption budget forbids the eviction.
        """
        version = version or pod.resource_version
        self._client.evict(pod.namespace, pod.name, pod.uid, resource_version=version, grace_period_s=grace_s)
        self._uncount(pod)

    def _evict_anyway(self, pod: PodRecord) -> None:
        """Evict an unchanged pod; delete it if a disruption budget forbids this. Raises Conflict if it has changed."""
        try:
            self._evict_unchanged(pod)
        except TooManyRequests:
            self._client.delete(PODS, pod.name, pod.namespace, uid=pod.uid, resource_version=pod.resource_version)
            self._uncount(pod)

    def _uncount(self, pod: PodRecord) -> None:
        """Prevent the Job controller of Kubernetes from counting an evicted pod as failed.

        After each failed pod, the Job controller waits longer before it creates new pods, up to ten minutes. The
        controller waits even if a podFailurePolicy ignores the failure. Therefore the method removes the Job
        controller's finalizer from the pod, as the controller itself does for a suspended Job. Only an evicted pod may
        lose the finalizer, because the success of any other pod must be counted.
        """
        if names.BATCH_JOB_NAME not in pod.labels:
            return
        try:
            self._client.strategic_patch(PODS, pod.name, {"metadata": {"uid": pod.uid, **_UNCOUNTED}}, pod.namespace)
        except NotFound:
            pass
        except APIError as error:  # the pod is evicted anyway, and its owner re-creates it later
            name = f"{pod.namespace}/{pod.name}"
            log.warning("an evicted pod counts as failed in its Job", pod=name, uid=pod.uid, error=str(error))


class EvictionWriter(Evictor):
    """Writer of the decisions MakeRoom and Evict; the function `close` ends a placement."""

    def __init__(
        self, context: WriteContext, notices: NoticeWriter, close: Callable[[Session, decisions.ClosePlacement], None]
    ) -> None:
        super().__init__(context, notices)
        self._close = close

    def make_room(self, session: Session) -> None:
        """Evict the victims of written placements, those with disruption budgets first.

        If a disruption budget forbids an eviction for a gang, no further victims of this gang's placement are evicted.
        """
        self._forget()
        due = [room for room in session.decided(decisions.MakeRoom) if self._stands(room)]
        refused: set[str] = set()
        gone: list[_Eviction] = []
        longest_s = session.inputs.timing.longest_grace_s

        def evict(room: decisions.MakeRoom, victim: GangView, pod: PodRecord) -> None:
            if self._evict_for(room, victim, pod, longest_s):
                gone.append(_Eviction(room, victim, pod))

        def ask(room: decisions.MakeRoom) -> None:
            for victim, pod in room.victims:
                if pod.uid in room.budgeted:
                    try:
                        evict(room, victim, pod)
                    except TooManyRequests as error:
                        refused.add(room.gang.key)
                        log.info("not evicted", pod=pod.key, uid=pod.uid, asker=room.gang.key, why=error.message)
                        self._give_way(session, room, reasons.placements.BUDGET)
                        return

        self._writes.all("eviction", ask, [room for room in due if room.budgeted])
        others = [
            _Eviction(room, victim, pod)
            for room in due
            if room.gang.key not in refused
            for victim, pod in room.victims
            if pod.uid not in room.budgeted
        ]
        self._writes.all("eviction", lambda one: evict(*one), others)
        self._report(gone)

    def _report(self, gone: list[_Eviction]) -> None:
        """Record Events on the workloads of evicted pods: one Event for all pods evicted in favour of the same gang."""
        together: dict[tuple[str, str], list[_Eviction]] = {}
        for one in gone:
            together.setdefault((one.room.gang.uid, one.gang.uid), []).append(one)
        for evictions in together.values():
            room, victim, _ = evictions[0]
            kind = f"{room.gang.uid}/{room.epoch}"
            self._notices.ended(room, victim.uid, victim.key, len(evictions))
            self._events.evicted(victim, len(evictions), room.reason_for(victim), kind)

    def _stands(self, room: decisions.MakeRoom) -> bool:
        placement = self._cluster.ask(lambda state: state.placement_of(room.gang.key))
        return placement is not None and placement.spec.epoch == room.epoch and bool(placement.spec.victims)

    def _evict_for(self, room: decisions.MakeRoom, victim: GangView, pod: PodRecord, longest_s: float) -> bool:
        """Evict a pod if it still uses its node; its grace period is limited to `longest_s`."""
        latest = self._victim(pod)
        if latest is None:
            return False
        grace_s = int(longest_s) if latest.grace_s > longest_s else None
        try:
            self._evict_unchanged(latest, grace_s)
        except NotFound:
            return False
        except Conflict:  # the changed pod may have ended, so the next cycle decides again
            log.info("not evicted yet, because the pod has just changed", pod=pod.key, uid=pod.uid)
            return False
        self._note(pod)
        EVICTED.labels(room.action).inc()
        why, by = str(room.reason), room.gang.key
        log.info("evicted", pod=pod.key, uid=pod.uid, gang=victim.key, reason=why, asker=by, epoch=room.epoch)
        self._events.evicts(victim, pod, room.reason_for(victim))
        return True

    def _give_way(self, session: Session, room: decisions.MakeRoom, why: Reason) -> None:
        """Close a placement with a victim that cannot be evicted; for a while, the gang gets no other victims."""
        gang = self._cluster.ask(lambda state: state.refreshed(room.gang.key))
        if gang is not None:
            phase: PlacementPhase = "Bound" if gang.started else "Abandoned"
            self._close(session, decisions.ClosePlacement(gang, phase, why, evicted_in_vain=True))

    def delete_all(self, session: Session) -> None:
        """Delete pods that must be re-created, pods without a node first.

        If a pod without a node has been bound in the meantime, the started pods of its gang are not deleted. The gang
        may now be complete, and the next cycle decides again.
        """
        evicts = session.decided(decisions.Evict)
        grew: set[str] = set()

        def unbound(evict: decisions.Evict) -> None:
            if not self._delete(evict):
                grew.add(evict.gang.key)

        self._writes.all("eviction", unbound, [evict for evict in evicts if not evict.started])
        started = [evict for evict in evicts if evict.started and evict.gang.key not in grew]
        self._writes.all("eviction", self._delete, started)

    def _delete(self, evict: decisions.Evict) -> bool:
        """Delete a pod; return False if the pod has changed, so that the next cycle decides again about the gang."""
        pod = evict.pod
        if self._just_evicted(pod):
            return True
        try:
            deleted = self._delete_started(pod) if evict.started else self._delete_unbound(pod)
        except NotFound:
            self._note(pod)
            return True
        if not deleted:
            log.info("not evicted yet, because the pod has just changed", pod=pod.key, uid=pod.uid)
            return False
        self._note(pod)
        log.info("evicted", pod=pod.key, uid=pod.uid, reason=str(evict.reason), started=evict.started)
        if evict.started:
            EVICTED.labels(BELOW_MINIMUM).inc()
            self._events.evicts_own(evict.gang, pod, evict.reason)
        return True

    def _delete_started(self, pod: PodRecord) -> bool:
        """Evict a pod that uses a node; return False for a finished pod, which its owner must count.

        A disruption budget does not protect the remaining pods of a gang that cannot continue.
        """
        latest = self._cluster.ask(lambda state: state.pods.get(pod.uid))
        if latest is None or not latest.uses_node:
            return False
        try:
            self._evict_anyway(latest)
        except Conflict:
            return False
        return True

    def _delete_unbound(self, pod: PodRecord) -> bool:
        """Evict a pod without a node and without a grace period; return False if the pod has got a node meanwhile.

        The eviction names the version of the pod without a node, so that no kubelet runs the pod at the same time as
        its successor. The pod is evicted instead of deleted, because a Kubernetes Job counts a deleted pod as failed;
        for evicted pods, admission adds a podFailurePolicy.
        """
        seen = self._client.get(PODS, pod.name, pod.namespace)
        if seen.metadata.uid == pod.uid and not seen.spec.node_name:
            try:
                self._evict_unchanged(pod, 0, seen.metadata.resource_version)
            except Conflict:
                seen = self._client.get(PODS, pod.name, pod.namespace)
            else:
                return True
        if seen.metadata.uid == pod.uid:
            self._cluster.ask(lambda state: state.on_pod_written(seen))
        return False
