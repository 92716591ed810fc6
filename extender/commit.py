"""Carries a cycle's decisions out, in their order; what is about placements is in `extender.placements`.

Order matters: a placement is written before anything acts on it, and a PodGroup becomes Inqueue only after its
placement stands, so that its pods can be born on their nodes. What the API server confirms is handed to the state at
once. A write that fails is logged and decided again in a later cycle.
"""

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import msgspec
import structlog

from extender.barrier import Barrier
from extender.cluster import Cluster
from extender.evictions import EVICT_AGAIN_S, Evictions
from extender.framework import decisions
from extender.framework.session import Decision, Session
from extender.hypernodestatus import HyperNodeStatusWriter
from extender.placements import PlacementWriter, moves
from extender.queuestatus import QueueStatusWriter
from extender.scaleup.requests import consumption
from extender.scaling import Scaling
from extender.state.pods import PodRecord
from extender.statuses import WRITES, StatusWriter
from muster.api import names
from muster.api.core import PODS, Pod
from muster.api.gang import DEFAULT_POD_SET, pinned_affinity
from muster.kube.client import Client
from muster.kube.errors import APIError, Conflict, NotFound
from muster.kube.events import Recorder

log = structlog.get_logger()
D = TypeVar("D", bound=Decision)

RETRY_S = 1.0


class Committer:
    """Writes placements, statuses, releases and evictions. `wall_s` is seconds since the epoch."""

    def __init__(
        self, client: Client, cluster: Cluster, barrier: Barrier, recorder: Recorder, *, wall_s: Callable[[], float]
    ) -> None:
        self._client = client
        self._cluster = cluster
        self._recorder = recorder
        self._wall_s = wall_s
        self._pool = ThreadPoolExecutor(16, thread_name_prefix="commit")
        self._statuses = StatusWriter(client, cluster, recorder, self._pool, wall_s=wall_s)
        self._queues = QueueStatusWriter(client, self._pool, wall_s=wall_s)
        self._hyper_nodes = HyperNodeStatusWriter(client, self._pool, wall_s=wall_s)
        self.scaling = Scaling(client, cluster)
        self._not_before: dict[str, float] = {}
        self._placements = PlacementWriter(client, cluster, barrier, recorder, self._pool, wall_s=wall_s)
        self.say_binding = self._placements.say_binding
        self._evictions = Evictions(client, cluster, recorder, close=self._placements.close, wall_s=wall_s)

    def carry_out(self, session: Session) -> None:
        """Writes everything this cycle decided; returns when all writes have been answered."""
        now = self._wall_s()
        self._not_before = {key: until for key, until in self._not_before.items() if until > now}
        self._each(
            "placement", lambda close: self._placements.close(session, close), session.decided(decisions.ClosePlacement)
        )
        places = session.decided(decisions.Place)
        for moved in (True, False):  # where moved gangs go stands before anybody is told to go
            due = [place for place in places if moves(place) is moved]
            self._each("placement", lambda place: self._placements.place(session, place), due)
        self._each("placement", self._placements.room_is_there, session.decided(decisions.RoomIsThere))
        self._each("placement", self._placements.unreserve, session.decided(decisions.Unreserve))
        self._each("placement", self._placements.reserve, session.decided(decisions.Reserve))
        self._statuses.write(session)
        self._each("release", lambda release: self._release(session, release), session.decided(decisions.Release))
        self._each("eviction", self._evict, session.decided(decisions.Evict))
        self._evictions.make_room(session, self._each)
        self._queues.write(session)
        self.scaling.heard(session)
        self._each("provisioning-request", self.scaling.withdraw, session.decided(decisions.WithdrawRequest))
        self._each("provisioning-request", self.scaling.request, session.decided(decisions.RequestNodes))
        self._each("annotation", self.scaling.tell_eviction, session.decided(decisions.TellEviction))
        self._each("condition", self.scaling.say, session.decided(decisions.Say))
        self._hyper_nodes.write(session)

    def _each(self, what: str, fn: Callable[[D], None], items: Iterable[D]) -> None:
        """Runs all in parallel; one that fails does not keep the others."""

        def guarded(item: D) -> None:
            key = item.gang.key
            if self._not_before.get(f"{what}/{key}", 0.0) > self._wall_s():
                return
            try:
                fn(item)
                WRITES.labels(what, "ok").inc()
            except APIError as error:
                WRITES.labels(what, "failed").inc()
                self._not_before[f"{what}/{key}"] = self._wall_s() + RETRY_S
                log.warning("write failed; it is decided again", what=what, gang=key, error=str(error))

        list(self._pool.map(guarded, items))

    # -- pods -------------------------------------------------------------------------------------------------------

    def _release(self, session: Session, release: decisions.Release) -> None:
        pod = release.pod
        annotations = {
            names.EPOCH: str(release.epoch),
            **consumption(session.inputs.provisioning.get(release.gang.uid)),
        }
        if pod.seat and pod.seat.pod_set == DEFAULT_POD_SET:
            annotations[names.MEMBER_INDEX] = str(pod.seat.rank)
        body: dict[str, object] = {"metadata": {"uid": pod.uid, "annotations": annotations}}
        if pod.gated:
            annotations[names.NODE] = release.node
            affinity = pinned_affinity(msgspec.to_builtins(pod.cls.affinity) or None, release.node)
            body["spec"] = {
                "schedulingGates": [{"name": gate} for gate in pod.other_gates],
                "affinity": {"nodeAffinity": affinity["nodeAffinity"]},
            }
        new = self._client.merge_patch(PODS, pod.name, body, pod.namespace)
        with self._cluster.lock:
            self._cluster.state.on_pod_written(new)

    def _evict(self, evict: decisions.Evict) -> None:
        pod = evict.pod
        if self._not_before.get(f"evicted/{pod.uid}", 0.0) > self._wall_s():
            return
        self._not_before[f"evicted/{pod.uid}"] = self._wall_s() + EVICT_AGAIN_S
        try:
            deleted = self._delete_started(pod) if evict.started else self._delete_unbound(pod)
        except NotFound:
            return
        if not deleted:
            log.info("not evicted yet, as it has just changed", pod=f"{pod.namespace}/{pod.name}")
            return
        log.info("evicted", pod=f"{pod.namespace}/{pod.name}", reason=evict.reason, started=evict.started)
        if evict.started:
            self._recorder.event(evict.gang.group, "Normal", "Evict", f"{pod.name}: {evict.reason}")

    def _delete_started(self, pod: PodRecord) -> bool:
        """Deletes a pod that holds a node; False if it holds none any more: what has ended counts for its owner."""
        with self._cluster.lock:
            latest = self._cluster.state.pods.get(pod.uid)
        if latest is None or not latest.uses_node:
            return False
        try:
            version = latest.resource_version
            self._client.delete(PODS, pod.name, pod.namespace, uid=pod.uid, resource_version=version)
        except Conflict:
            self._not_before.pop(f"evicted/{pod.uid}", None)
            return False
        return True

    def _delete_unbound(self, pod: PodRecord) -> bool:
        """Deletes a pod that has no node, at once; False if a bind call that was under way has given it one.

        Without grace a pod is gone before its kubelet has ended it, so that it would run beside its successor. Hence
        it is deleted only as it was when it was seen without a node.
        """
        seen = self._mark(pod, "true")  # it never ran, so no policy of its owner may see an eviction
        if not seen.spec.node_name:
            try:
                version = seen.metadata.resource_version
                self._client.delete(
                    PODS, pod.name, pod.namespace, uid=pod.uid, resource_version=version, grace_period_s=0
                )
            except Conflict:
                log.debug("the pod has changed meanwhile", pod=f"{pod.namespace}/{pod.name}")
            else:
                return True
        with self._cluster.lock:
            self._cluster.state.on_pod_written(self._mark(pod, None))
        return False

    def _mark(self, pod: PodRecord, value: str | None) -> Pod:
        mark = {"metadata": {"uid": pod.uid, "annotations": {names.OUT_OF_SYNC: value}}}
        return self._client.merge_patch(PODS, pod.name, mark, pod.namespace)

    def stop(self) -> None:
        """Ends the writers; what has not been sent yet is decided again by whoever plans next."""
        self._pool.shutdown(wait=True, cancel_futures=True)
