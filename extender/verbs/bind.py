"""The bind verb, at which a member of a gang waits for the other members until all are bound."""

import collections
import time
from collections.abc import Callable, Mapping
from functools import partial

import msgspec
import numpy as np
import structlog
from prometheus_client import Counter, Histogram

from extender.barrier import Barrier, MeetingOutcome
from extender.cluster import Live
from extender.planner.framework.session import Session
from extender.planner.reasons.verbs import VerbReason
from extender.planner.scaleup.preferences import safe_to_evict
from extender.planner.scaleup.requests import consumption
from extender.planner.state.gangphase import ACTIVE, once_whole
from extender.planner.state.pods import PodRecord
from extender.verbs.capacity import SharedGpus, counted, nodes_with_capacity, not_usable, requests_of, unavailable
from muster.api.kubernetes.core import PODS
from muster.api.kubernetes.extender import ExtenderBindingArgs, ExtenderBindingResult
from muster.api.muster import safetoevict
from muster.api.muster.gang import Slot
from muster.api.muster.native import is_native
from muster.api.muster.noderuns import slots_of
from muster.api.muster.placement import Placement, devices_of, holds_back, node_of_slot
from muster.api.names import DEFAULT_QUEUE, EPOCH, GROUP_NAME, RUNS_ON_SPARE, VOLCANO_QUEUE
from muster.kube.errors import APIError, Conflict, Unreachable
from muster.kube.loopclient import LoopClient

log = structlog.get_logger()
DECODE_BINDING = msgspec.json.Decoder(ExtenderBindingArgs)
BINDS = Counter(
    "muster_bind_total",
    "Bind calls of kube-scheduler, by kind of pod, result and its reason",
    ["pod", "verdict", "reason"],
)
BIND_TIME = Histogram("muster_bind_post_seconds", "Duration of the POST of a binding, including the wait in the queue")
_calls = counted(BINDS)

LAG_S = 1.0
"""Time in seconds for which a bind call waits for Muster's watches, which may be slower than kube-scheduler's watches.
"""

LASTS = 200
"""Minimum number of members of a gang whose binding takes about a second, so that the phase Binding is written."""

_LASTING = {None, VerbReason.NOT_OURS, VerbReason.NOT_ASKED}
"""Reasons of refusals that no later event can change, so that waiting would be useless."""
_NOT_RELEASED = {
    MeetingOutcome.TIMED_OUT: VerbReason.BARRIER_TIMEOUT,
    MeetingOutcome.CANCELLED: VerbReason.PLACEMENT_OVER,
}


class Binder:
    """Writer of bindings, which names the pod's UID as a precondition of each binding."""

    def __init__(self, client: LoopClient) -> None:
        self._client = client

    async def bind(self, namespace: str, name: str, uid: str, node: str, annotations: Mapping[str, str]) -> None:
        """Bind the pod, unless it is already bound to this node. Raises APIError if the pod cannot be bound.

        After a conflict or a lost response, the pod is read to find out if it is already bound.
        """
        try:
            await self._client.bind(namespace, name, uid, node, annotations)
        except (Conflict, Unreachable):
            pod = await self._client.get(PODS, name, namespace)
            if pod.metadata.uid == uid and pod.spec.node_name == node:
                return
            raise


class Bind:
    """The bind verb, which acts while this replica is `active`.

    The verb calls `on_release` when the members of a large gang may be bound, because their binding takes some time.
    """

    def __init__(
        self,
        cluster: Live,
        barrier: Barrier,
        binder: Binder,
        *,
        active: Callable[[], bool],
        on_release: Callable[[Placement, int], None],
        session: Callable[[], Session | None] = lambda: None,
        wall_s: Callable[[], float] = time.time,
    ) -> None:
        self._cluster = cluster
        self._barrier = barrier
        self._binder = binder
        self._active = active
        self._on_release = on_release
        self._session = session
        """The last planning cycle, whose plugins may add annotations to bindings."""
        self._gpus = SharedGpus(cluster, session)
        self._wall_s = wall_s

    async def __call__(self, args: ExtenderBindingArgs) -> ExtenderBindingResult:
        """Bind a pod; a gang's member first waits for the other members. Return an error message, empty on success."""
        kind, reason = await self._bind(args)
        _calls(kind, reason).inc()
        return ExtenderBindingResult(error=reason or "")

    async def _bind(self, args: ExtenderBindingArgs) -> tuple[str, VerbReason | None]:
        """Return the kind of the pod for the metrics, and the reason if the pod was not bound."""
        reason = unavailable(self._cluster, self._active)
        if reason:
            return "plain", reason
        reason = self._objection(args)
        if reason not in _LASTING:
            await self._cluster.until(lambda: self._objection(args) in _LASTING, LAG_S)
            reason = self._objection(args)
        record = self._cluster.state.pods.get(args.pod_uid)
        if record is None:
            return "plain", VerbReason.NOT_SEEN
        if record.gang:
            return "gang", reason or await self._bind_member(args, record, record.gang)
        return "plain", reason or await self._bind_plain(args, record)

    async def _bind_plain(self, args: ExtenderBindingArgs, record: PodRecord) -> VerbReason | None:
        """Bind a pod without a gang, unless its capacity or its queue has been used up since the filter call."""
        queue, state = record.queue or DEFAULT_QUEUE, self._cluster.state
        ledger = state.ledger
        own = ledger.entries.get(record.uid)
        if not record.node and (own is None or own.node != args.node):  # else, the pod is already counted
            if barred := not_usable(state, queue, record.namespace):
                return barred
            asked, named = requests_of(state, record, queue), [claim.key for claim in record.cls.needs.named]
            if ledger.queues.limited.exceeded(queue, record.creator, asked, self._wall_s(), named):
                return VerbReason.QUEUE_FULL_NOW
            column = np.array([state.nodes.index.get(args.node, -1)])
            if not nodes_with_capacity(state, record, record.cls.asked, column, self._wall_s())[0].all():
                return VerbReason.ROOM_TAKEN
        devices = self._gpus.choose(record, args.node)
        if devices is None:
            return VerbReason.ROOM_TAKEN
        if not record.node:
            ledger.assume(record.uid, queue, record.cls, node=args.node, devices=devices, user=record.creator)
        try:
            return await self._post(args, self._gpus.annotations_for(record, args.node, devices), devices)
        finally:
            self._cluster.change(lambda state: state.ledger.answered(record.uid))

    async def _bind_member(self, args: ExtenderBindingArgs, record: PodRecord, key: str) -> VerbReason | None:
        """Hold the bind call until enough members of this epoch have arrived, check everything again, and bind."""
        placement, started = self._cluster.state.placement_of(key), self._cluster.state.started(key)
        if placement is None or record.slot is None:
            return VerbReason.NOT_SEEN
        epoch, gang_uid = placement.spec.epoch, placement.spec.pod_group_uid
        if not started and not self._still_valid(key, placement):
            outcome = await self._barrier.join(
                gang_uid,
                epoch,
                record.slot,
                lambda held: self._enough(key, epoch, held),
                pod_uid=args.pod_uid,
                on_arrival=partial(self._arrived, placement),
            )
            if outcome is not MeetingOutcome.RELEASED:
                return _NOT_RELEASED[outcome]
            reason = unavailable(self._cluster, self._active) or self._still(key, epoch, args)
            if reason:
                return reason
        session = self._session()
        extra = session.hooks.bind_request_mutate.call(record, args.node) if session is not None else {}
        devices = devices_of(placement, record.slot) if record.cls.gpu else ()
        if record.cls.gpu is not None and not devices:
            return VerbReason.PLACEMENT_OVER  # the pod was planned without shared GPUs
        given = self._gpus.annotations_for(record, args.node, devices)
        marks = {GROUP_NAME: placement.metadata.name, EPOCH: str(epoch), **self._queue_of(key, record)}
        if any(loan.node == args.node for loan in placement.spec.borrows):
            marks[RUNS_ON_SPARE] = "true"
        annotations = {**extra, **self._for_autoscalers(record, key, session), **marks, **given}
        return await self._post(args, annotations, devices)

    def _arrived(self, placement: Placement) -> None:
        """Request a cycle if the placement holds back members, because the planner may now release these members."""
        if holds_back(placement):
            self._cluster.changed(placement.metadata.namespace, None)

    def _still_valid(self, key: str, placement: Placement) -> bool:
        """Return True for a placement that replaces lost members of a gang that has since lost its other members, too.

        A placement that replaces only some members has too few nodes for the gang's minimum, so its members would wait
        at the barrier without success. Therefore these members are bound at once, as if the gang had lost the other
        members slightly later.
        """
        gang = self._cluster.state.refreshed(key) if once_whole(placement) else None
        if gang is None:
            return False
        slots = collections.Counter(slot.pod_set for slot, _ in slots_of(placement))
        return not gang.satisfied(slots)

    def _queue_of(self, key: str, record: PodRecord) -> dict[str, str]:
        """Return the annotation with the queue to which a member is charged; empty if the pod names this queue.

        The annotation determines the queue of the pod once the PodGroup has been deleted. Members of native PodGroups
        always get the annotation, because other components read it, and these pods need not name their queue.
        """
        group = self._cluster.state.groups.get(key)
        if group is None:
            return {}
        queue = group.spec.queue or DEFAULT_QUEUE
        return {VOLCANO_QUEUE: queue} if is_native(group) or queue != (record.queue or DEFAULT_QUEUE) else {}

    def _for_autoscalers(self, record: PodRecord, key: str, session: Session | None) -> dict[str, str]:
        """Return a pod's annotations for autoscalers: whether the pod may be evicted, and its ProvisioningRequest."""
        group = self._cluster.state.groups.get(key)
        evictable = safe_to_evict(self._cluster.state.queues, group, record.labels)
        request = session.inputs.provisioning.get(group.metadata.uid) if session is not None and group else None
        annotations = safetoevict.annotations_for(evictable) if evictable and not record.evictable else {}
        return {key: value for key, value in annotations.items() if value is not None} | consumption(request)

    def _objection(self, args: ExtenderBindingArgs) -> VerbReason | None:
        """Return a reason not to bind the pod to the node now; None if no reason is known."""
        state = self._cluster.state
        record = state.pods.get(args.pod_uid)
        if record is None:
            return VerbReason.NOT_SEEN
        if not record.ours:
            return VerbReason.NOT_OURS
        if not record.gang:
            allowed = record.node == args.node or state.answers.passed(record.uid, state.nodes.index.get(args.node))
            return None if allowed else VerbReason.NOT_ASKED
        if record.slot is None:
            state.refresh_gang(record.gang)  # assign a slot to the pod
        with_slot = state.pods.get(args.pod_uid, record)
        if not with_slot.node and state.pod_table.slot_taken(record.gang, with_slot.slot):
            return VerbReason.SLOT_TAKEN
        return _refusal(state.placement_of(record.gang), with_slot, args.node)

    def _enough(self, key: str, epoch: int, held: Mapping[Slot, str]) -> bool:
        """Return True if the held and the bound members suffice to start the gang; for a large gang, call `on_release`.

        A member does not count if its pod is being deleted.
        """
        state = self._cluster.state
        placement = state.placement_of(key)
        if placement is None or placement.spec.epoch != epoch:
            return False
        few = len(held) + state.pod_table.taken[key] < state.groups[key].spec.min_member
        if few and not state.some_done(key):
            return False  # checked last, because this visits every member of the gang
        state.refresh_gang(key)
        gang = state.gang(key)
        if gang is None:
            return False
        there = [slot for slot, uid in held.items() if (pod := state.pods.get(uid)) and not pod.terminating]
        counts = {
            pod_set.name: len(pod_set.taken.keys() | {slot.rank for slot in there if slot.pod_set == pod_set.name})
            for pod_set in gang.pod_sets
        }
        if not gang.satisfied(counts):
            return False
        if len(held) >= LASTS:
            self._on_release(placement, gang.taken)
        return True

    def _still(self, key: str, epoch: int, args: ExtenderBindingArgs) -> VerbReason | None:
        """Return a reason, such as a new placement, not to bind the pod after its wait at the barrier, if any."""
        placement = self._cluster.state.placement_of(key)
        over = placement is None or placement.spec.epoch != epoch or args.pod_uid not in self._cluster.state.pods
        return VerbReason.PLACEMENT_OVER if over else self._objection(args)

    async def _post(
        self, args: ExtenderBindingArgs, annotations: dict[str, str], devices: tuple[int, ...]
    ) -> VerbReason | None:
        try:
            with BIND_TIME.time():
                await self._binder.bind(args.pod_namespace, args.pod_name, args.pod_uid, args.node, annotations)
        except APIError as error:
            name = f"{args.pod_namespace}/{args.pod_name}"
            log.warning("binding failed", pod=name, uid=args.pod_uid, error=str(error))
            return VerbReason.BIND_FAILED
        self._cluster.change(lambda state: state.assume(args.pod_uid, args.node, devices))
        return None


def _refusal(placement: Placement | None, record: PodRecord, node: str) -> VerbReason | None:
    """Return the reason why the placement does not allow binding the member to the node; otherwise None."""
    if placement is None or record.slot is None:
        return VerbReason.NOT_SEEN
    if record.epoch is not None and record.epoch > placement.spec.epoch:
        return VerbReason.NOT_SEEN
    if record.node:
        return None if record.node == node else VerbReason.WRONG_NODE
    if placement.status.phase not in ACTIVE or record.epoch not in {None, placement.spec.epoch}:
        return VerbReason.PLACEMENT_OVER
    return None if node_of_slot(placement, record.slot) == node else VerbReason.WRONG_NODE
