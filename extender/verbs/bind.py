"""The bind verb: a member of a gang waits for the others, then all are bound."""

from collections.abc import Callable, Collection

import msgspec
import structlog
from prometheus_client import Counter, Histogram

from extender import messages
from extender.barrier import Barrier, Outcome
from extender.cluster import Cluster
from extender.framework.session import Session
from extender.state.gangs import ACTIVE, PodRecord
from extender.verbs.binder import Binder
from extender.verbs.filter import Verdict, unavailable
from muster.api.extender import ExtenderBindingArgs, ExtenderBindingResult
from muster.api.gang import Seat
from muster.api.names import EPOCH, GROUP_NAME
from muster.api.placement import Placement, node_of
from muster.kube.errors import APIError

log = structlog.get_logger()
DECODE_BINDING = msgspec.json.Decoder(ExtenderBindingArgs)
BINDS = Counter("muster_bind_total", "Bind calls", ["pod", "verdict"])
BIND_TIME = Histogram("muster_bind_post_seconds", "Duration of one POST of a binding")

LAG_S = 1.0
"""How long a bind call waits for our watches to show what kube-scheduler, whose watches may be ahead, has seen."""

MAX_HELD = 1000
"""Members that are held at once: of a larger gang so many are let through together, as they stand, and then the rest.

Each held call takes a thread here and a connection of kube-scheduler's, which brings a few hundred members a second.
"""


class Bind:
    """Binds pods. `active` says whether this replica leads; `on_release` is told of every gang that starts."""

    def __init__(
        self,
        cluster: Cluster,
        barrier: Barrier,
        binder: Binder,
        *,
        active: Callable[[], bool],
        on_release: Callable[[Placement, int], None],
        session: Callable[[], Session | None] = lambda: None,
        most_held: int = MAX_HELD,
    ) -> None:
        self._cluster = cluster
        self._barrier = barrier
        self._binder = binder
        self._active = active
        self._on_release = on_release
        self._most_held = most_held
        self._session = session
        """The last planning cycle, whose plugins may add to bindings."""

    def __call__(self, args: ExtenderBindingArgs) -> ExtenderBindingResult:
        """Bind a pod; a member of a gang waits for the others first."""
        reason = unavailable(self._cluster, self._active)
        kind = "plain"
        if not reason:
            self._cluster.wait_for(lambda: not self._objection(args), LAG_S)
            with self._cluster.lock:
                record = self._cluster.state.pods.get(args.pod_uid)
            if record is None:
                reason = messages.NOT_SEEN
            elif record.gang:
                kind = "gang"
                reason = self._bind_member(args, record, record.gang)
            else:
                reason = self._post(args, {})
        BINDS.labels(kind, (Verdict.ERROR if reason else Verdict.PASSED).value).inc()
        return ExtenderBindingResult(error=reason)

    def _bind_member(self, args: ExtenderBindingArgs, record: PodRecord, key: str) -> str:
        with self._cluster.lock:
            refusal = self._objection(args)
            placement, started = self._cluster.state.placement_of(key), self._cluster.state.started(key)
            record = self._cluster.state.pods.get(args.pod_uid, record)  # it may have been given its seat just now
        if refusal or placement is None or record.seat is None:
            return refusal or messages.NOT_SEEN
        epoch, gang_uid = placement.spec.epoch, placement.spec.pod_group_uid
        if not started:
            outcome = self._barrier.join(gang_uid, epoch, record.seat, lambda held: self._enough(key, epoch, held))
            if outcome is not Outcome.RELEASED:
                return messages.BARRIER_TIMEOUT if outcome is Outcome.TIMED_OUT else messages.PLACEMENT_OVER
            refusal = unavailable(self._cluster, self._active) or self._still(key, epoch, args)
            if refusal:
                return refusal
        session = self._session()
        extra = session.ask("bind_request_mutate", record, args.node) if session is not None else {}
        return self._post(args, {**extra, **_marks(placement)})

    def _objection(self, args: ExtenderBindingArgs) -> str:
        """What speaks against binding this pod to this node now, as far as we know; empty if nothing does."""
        with self._cluster.lock:
            state = self._cluster.state
            record = state.pods.get(args.pod_uid)
            if record is None:
                return messages.NOT_SEEN
            if not record.gang:
                return ""
            if record.seat is None:
                state.gang(record.gang)  # looking at the gang gives it a seat
            return _refusal(state.placement_of(record.gang), state.pods.get(args.pod_uid, record), args.node)

    def _enough(self, key: str, epoch: int, held: Collection[Seat]) -> bool:
        """Whether the members held at the barrier, with those bound already, may start. Tells who writes the story."""
        with self._cluster.lock:
            state = self._cluster.state
            placement = state.placement_of(key)
            if placement is None or placement.spec.epoch != epoch:
                return False
            full = len(held) >= self._most_held
            if not full and len(held) + state.taken(key) < state.groups[key].spec.min_member:
                return False  # the rest is asked only when it matters: it looks at every member of the gang
            gang = state.gang(key)
        if gang is None:
            return False
        counts = {
            pod_set.name: len(pod_set.taken.keys() | {seat.rank for seat in held if seat.pod_set == pod_set.name})
            for pod_set in gang.pod_sets
        }
        if not full and not gang.satisfied(counts):
            return False
        self._on_release(placement, gang.taken)
        return True

    def _still(self, key: str, epoch: int, args: ExtenderBindingArgs) -> str:
        """After the wait: the placement must still be the one that the member waited for."""
        with self._cluster.lock:
            placement = self._cluster.state.placement_of(key)
            over = placement is None or placement.spec.epoch != epoch or args.pod_uid not in self._cluster.state.pods
            return messages.PLACEMENT_OVER if over else self._objection(args)

    def _post(self, args: ExtenderBindingArgs, annotations: dict[str, str]) -> str:
        try:
            with BIND_TIME.time():
                self._binder.bind(args.pod_namespace, args.pod_name, args.pod_uid, args.node, annotations)
        except APIError as error:
            log.warning("binding failed", pod=f"{args.pod_namespace}/{args.pod_name}", error=str(error))
            return messages.BIND_FAILED
        with self._cluster.lock:
            self._cluster.state.assume(args.pod_uid, args.node)
        self._cluster.changed()
        return ""


def _refusal(placement: Placement | None, record: PodRecord, node: str) -> str:
    """Why this member may not be bound to this node now; empty if it may."""
    if placement is None or record.seat is None:
        return messages.NOT_SEEN
    if record.epoch is not None and record.epoch > placement.spec.epoch:
        return messages.NOT_SEEN
    if record.node:
        return "" if record.node == node else messages.WRONG_NODE
    if placement.status.phase not in ACTIVE or record.epoch != placement.spec.epoch:
        return messages.PLACEMENT_OVER
    return "" if node_of(placement, record.seat.pod_set, record.seat.rank) == node else messages.WRONG_NODE


def _marks(placement: Placement) -> dict[str, str]:
    return {GROUP_NAME: placement.metadata.name, EPOCH: str(placement.spec.epoch)}
