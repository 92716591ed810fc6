"""Carries a cycle's decisions out: the only place of the extender's planner that writes.

Order matters: a placement is written before anything acts on it, and a PodGroup becomes Inqueue only after its
placement stands, so that its pods can be born on their nodes. What the API server confirms is handed to the state at
once. A write that fails is logged and decided again in a later cycle.
"""

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import msgspec
import structlog

from extender.actions.progress import AVOID_S
from extender.barrier import Barrier
from extender.cluster import Cluster
from extender.evictions import Evictions
from extender.framework import decisions, placementstatus
from extender.framework.session import Decision, Session
from extender.queuestatus import QueueStatusWriter
from extender.scaleup.requests import consumption
from extender.scaling import Scaling
from extender.state.gangs import GangView
from extender.state.pods import PodRecord
from extender.statuses import WRITES, StatusWriter
from muster.api import names
from muster.api.core import PODS, Pod
from muster.api.gang import DEFAULT_POD_SET, pinned_affinity
from muster.api.meta import OwnerReference, format_time
from muster.api.placement import PLACEMENTS, Placement, Victim
from muster.api.scheduling import POD_GROUPS
from muster.kube.client import Client
from muster.kube.errors import APIError, Conflict, NotFound
from muster.kube.events import Recorder

log = structlog.get_logger()
D = TypeVar("D", bound=Decision)

DEADLINE_S = 30.0
DEADLINE_PER_SEAT_S = 0.05
RETRY_S = 1.0
EVICT_AGAIN_S = 5.0


class Committer:
    """Writes placements, statuses, releases and evictions. `wall_s` is seconds since the epoch."""

    def __init__(
        self, client: Client, cluster: Cluster, barrier: Barrier, recorder: Recorder, *, wall_s: Callable[[], float]
    ) -> None:
        self._client = client
        self._cluster = cluster
        self._barrier = barrier
        self._recorder = recorder
        self._wall_s = wall_s
        self._pool = ThreadPoolExecutor(16, thread_name_prefix="commit")
        self._statuses = StatusWriter(client, cluster, recorder, self._pool, wall_s=wall_s)
        self._queues = QueueStatusWriter(client, self._pool, wall_s=wall_s)
        self.scaling = Scaling(client, cluster)
        self._not_before: dict[str, float] = {}
        self._evictions = Evictions(client, cluster, recorder, close=self._close_placement, wall_s=wall_s)

    def carry_out(self, session: Session) -> None:
        """Writes everything this cycle decided; returns when all writes have been answered."""
        now = self._wall_s()
        self._not_before = {key: until for key, until in self._not_before.items() if until > now}
        self._each(
            "placement", lambda close: self._close_placement(session, close), session.decided(decisions.ClosePlacement)
        )
        places = session.decided(decisions.Place)
        for moved in (True, False):  # where moved gangs go stands before anybody is told to go
            due = [place for place in places if _moves(place) is moved]
            self._each("placement", lambda place: self._place(session, place), due)
        self._each("placement", self._room_is_there, session.decided(decisions.RoomIsThere))
        self._each("placement", self._unreserve, session.decided(decisions.Unreserve))
        self._each("placement", self._reserve, session.decided(decisions.Reserve))
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

    # -- placements -------------------------------------------------------------------------------------------------

    def _place(self, session: Session, place: decisions.Place) -> None:
        gang = place.gang
        deadline = self._wall_s() + DEADLINE_S + DEADLINE_PER_SEAT_S * (session.snapshot.in_flight + place.new_seats)
        spec = {
            "podGroupUID": gang.uid,
            "epoch": place.epoch,
            "deadline": format_time(deadline),
            "podSets": msgspec.to_builtins(place.pod_sets),
            "victims": msgspec.to_builtins(victims_of(place)) or None,
            "victimsReason": place.victims_reason or None,
        }
        self._write_placement(gang, spec, placementstatus.opened(place))
        log.info("placed", gang=gang.key, epoch=place.epoch, seats=place.new_seats)

    def _reserve(self, reserve: decisions.Reserve) -> None:
        gang = reserve.gang
        spec = {
            "podGroupUID": gang.uid,
            "epoch": gang.placement.spec.epoch if gang.placement else gang.next_epoch(),
            "podSets": msgspec.to_builtins(reserve.pod_sets),
        }
        new = gang.placement is None or gang.placement.status.phase != "Reserved"
        self._write_placement(gang, spec, placementstatus.reserved(reserve))
        if new:
            log.info("reserved", gang=gang.key, expected_at=reserve.expected_at, why=reserve.message)
            self._recorder.event(gang.group, "Normal", "Reserved", reserve.message)

    def _unreserve(self, unreserve: decisions.Unreserve) -> None:
        placement = unreserve.gang.placement
        if placement is not None and placement.status.phase == "Reserved":
            self._patch_placement(placement, {"status": placementstatus.unreserved(unreserve), "spec": {"podSets": []}})
            log.info("not reserved any more", gang=unreserve.gang.key, why=unreserve.message)

    def _write_placement(self, gang: GangView, spec: dict[str, object], status: dict[str, object]) -> None:
        """Makes the gang's placement say so; one of an earlier PodGroup of its name goes."""
        with self._cluster.lock:
            known = self._cluster.state.placements.get(gang.key)
        namespace, name = gang.group.metadata.namespace, gang.group.metadata.name
        if known is not None and known.spec.pod_group_uid != gang.uid:
            self._client.delete(PLACEMENTS, name, namespace, uid=known.metadata.uid)
            self._saw(known, None)
            known = None
        if known is None:
            owner = OwnerReference(
                api_version=POD_GROUPS.api_version, kind=POD_GROUPS.kind, name=name, uid=gang.uid,
                controller=True, block_owner_deletion=True,
            )  # fmt: skip
            body = {
                "apiVersion": PLACEMENTS.api_version,
                "kind": PLACEMENTS.kind,
                "metadata": {"name": name, "namespace": namespace, "ownerReferences": [msgspec.to_builtins(owner)]},
                "spec": spec,
                "status": status,
            }
            self._saw(None, self._client.create(PLACEMENTS, body, namespace))
        else:
            self._patch_placement(known, {"spec": spec, "status": status})

    def _close_placement(self, session: Session, close: decisions.ClosePlacement) -> None:
        placement = close.gang.placement
        if placement is None:
            return
        if close.phase == "Abandoned":
            self._barrier.cancel(close.gang.uid)
            log.info("placement abandoned", gang=close.gang.key, reason=close.message)
            self._recorder.event(close.gang.group, "Warning", "PlacementAbandoned", close.message)
        status = placementstatus.closed(close, now=session.now)
        patch: dict[str, object] = {"status": {**status, "avoided": _avoided(session, close.gang, placement)}}
        if close.pod_sets is not None:
            patch["spec"] = {"epoch": close.gang.next_epoch(), "podSets": msgspec.to_builtins(close.pod_sets)}
        self._patch_placement(placement, patch)

    def _room_is_there(self, there: decisions.RoomIsThere) -> None:
        placement = there.gang.placement
        if placement is None:
            return
        deadline = self._wall_s() + DEADLINE_S + DEADLINE_PER_SEAT_S * there.new_seats
        spec = {
            "deadline": format_time(deadline),
            "podSets": msgspec.to_builtins(there.pod_sets),
            "victims": None,
            "victimsReason": None,
        }
        self._patch_placement(placement, {"spec": spec, "status": placementstatus.room_is_there()})
        log.info("the room is there", gang=there.gang.key, epoch=placement.spec.epoch)

    def say_binding(self, placement: Placement, bound: int) -> None:
        """Lets `kubectl get placements -w` show that the members are being bound now; does not block.

        It is the story, not the truth (the pods are), so that a write that comes too late may be lost.
        """

        def write() -> None:
            try:
                self._patch_placement(placement, {"status": {"phase": "Binding", "bound": bound}})
            except APIError as error:
                log.debug("phase Binding not written", placement=placement.metadata.key, error=str(error))

        self._pool.submit(write)

    def _patch_placement(self, known: Placement, patch: dict[str, object]) -> None:
        meta = known.metadata
        body = {**patch, "metadata": {"uid": meta.uid, "resourceVersion": meta.resource_version}}
        self._saw(known, self._client.merge_patch(PLACEMENTS, meta.name, body, meta.namespace))

    def _saw(self, old: Placement | None, new: Placement | None) -> None:
        with self._cluster.lock:
            self._cluster.state.on_placement(old, new)
        self._cluster.changed()

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
            if evict.started:
                self._client.delete(PODS, pod.name, pod.namespace, uid=pod.uid)
            elif not self._delete_unbound(pod):
                log.info("not evicted yet, as it has just changed", pod=f"{pod.namespace}/{pod.name}")
                return
        except NotFound:
            return
        log.info("evicted", pod=f"{pod.namespace}/{pod.name}", reason=evict.reason, started=evict.started)
        if evict.started:
            self._recorder.event(evict.gang.group, "Normal", "Evict", f"{pod.name}: {evict.reason}")

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


def _moves(place: decisions.Place) -> bool:
    """Whether the placement is that of a gang which is moved: members of its own have to go first."""
    return any(victim is place.gang for victim, _ in place.victims)


def victims_of(place: decisions.Place) -> list[Victim]:
    """The pods that must be gone first, as they stand in the placement."""
    home = place.gang.group.metadata.namespace
    return [
        Victim(
            name=pod.name,
            namespace="" if pod.namespace == home else pod.namespace,
            uid=pod.uid,
            gang=victim.group.metadata.name,
        )
        for victim, pod in place.victims
    ]


def _avoided(session: Session, gang: GangView, placement: Placement) -> list[dict[str, str]]:
    """The nodes to leave out, for the story that the placement tells; those known already keep their time."""
    known = {each.node: each.until for each in placement.status.avoided}
    until = format_time(session.now + AVOID_S)
    return [{"node": node, "until": known.get(node, until)} for node in sorted(session.avoided.get(gang.key, ()))]
