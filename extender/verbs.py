"""filter, prioritize and bind. Whatever is not certain is an error (kube-scheduler tries again), never a rejection."""

from collections.abc import Callable
from enum import Enum

import msgspec
import numpy as np
import structlog
from prometheus_client import Counter, Histogram

from extender import messages
from extender.barrier import Barrier, Outcome
from extender.binding import Binder
from extender.cluster import Cluster
from extender.framework.gangs import ACTIVE, GangView, PodRecord
from extender.framework.session import Session
from extender.ranks import MAX_PRIORITY, collapse, fullness
from muster.api.extender import (
    ExtenderArgs,
    ExtenderBindingArgs,
    ExtenderBindingResult,
    ExtenderFilterResult,
    HostPriority,
)
from muster.api.gang import Member, epoch_of, gang_of, member_of
from muster.api.names import EPOCH, GROUP_NAME, NODE
from muster.api.placement import Placement, node_of
from muster.kube.errors import APIError
from muster.resources.pods import pod_requests

log = structlog.get_logger()


class Verdict(Enum):
    """Outcomes of a call: metric tags and reasons at once."""

    PASSED = "passed"
    REJECTED = "rejected"
    ERROR = "error"


FILTERS = Counter("muster_filter_total", "Filter calls", ["pod", "verdict"])
FILTER_NAMES = Counter("muster_filter_names_total", "Node names in filter calls", ["pod"])
BINDS = Counter("muster_bind_total", "Bind calls", ["pod", "verdict"])
BIND_TIME = Histogram("muster_bind_post_seconds", "Duration of one POST of a binding")

LAG_S = 1.0
"""How long a bind call waits for our watches to show what kube-scheduler, whose watches may be ahead, has seen."""

MOST_HELD = 1000
"""Members that are held at once: of a larger gang so many are let through together, as they stand, and then the rest.

Each held call takes a thread here and a connection of kube-scheduler's, which brings a few hundred members a second.
"""


class Verbs:
    """The extender's answers. `active` says whether this replica leads."""

    def __init__(
        self,
        cluster: Cluster,
        barrier: Barrier,
        binder: Binder,
        *,
        active: Callable[[], bool],
        on_release: Callable[[Placement, int], None],
        session: Callable[[], Session | None] = lambda: None,
        most_held: int = MOST_HELD,
    ) -> None:
        self._cluster = cluster
        self._barrier = barrier
        self._binder = binder
        self._active = active
        self._on_release = on_release
        self._most_held = most_held
        self._session = session
        """The last planning cycle, whose plugins score nodes and may add to bindings."""

    # -- filter -----------------------------------------------------------------------------------------------------

    def filter(self, args: ExtenderArgs) -> ExtenderFilterResult:
        """Which of the named nodes the pod may go to."""
        nodes = args.node_names or []
        pinned = NODE in args.pod.metadata.annotations
        gang = gang_of(args.pod.metadata)
        kind = "pinned" if pinned else "gang" if gang else "plain"
        FILTER_NAMES.labels(kind).inc(len(nodes))
        result = self._unavailable_filter() or (
            self._filter_member(args, gang, nodes) if gang else self._filter_plain(args, nodes)
        )
        verdict = Verdict.ERROR if result.error else Verdict.PASSED if result.node_names else Verdict.REJECTED
        FILTERS.labels(kind, verdict.value).inc()
        return result

    def _unavailable_filter(self) -> ExtenderFilterResult | None:
        reason = self._unavailable()
        return ExtenderFilterResult(error=reason) if reason else None

    def _unavailable(self) -> str:
        if not self._active():
            return messages.NOT_LEADING
        return "" if self._cluster.synced else messages.NOT_SYNCED

    def _filter_member(self, args: ExtenderArgs, gang: str, nodes: list[str]) -> ExtenderFilterResult:
        """A look-up: the one node that the placement gives this member."""
        meta = args.pod.metadata
        key = f"{meta.namespace}/{gang}"
        with self._cluster.lock:
            placement = self._cluster.state.placements.get(key)
            record = self._cluster.state.pods.get(meta.uid)
            known = key in self._cluster.state.groups
        if not known:
            return ExtenderFilterResult(error=messages.NOT_SEEN)
        epoch = epoch_of(meta)
        if epoch is not None and (placement is None or placement.spec.epoch < epoch):
            return ExtenderFilterResult(error=messages.NOT_SEEN)
        if placement is None or placement.status.phase not in ACTIVE or placement.spec.epoch != epoch:
            return ExtenderFilterResult(failed_and_unresolvable_nodes=_first(nodes, messages.WAITS_FOR_GANG))
        member = member_of(meta) or (record.member if record else None)
        node = node_of(placement, member.pod_set, member.index) if member else None
        if node in nodes:
            return ExtenderFilterResult(node_names=[node])
        return ExtenderFilterResult(failed_and_unresolvable_nodes=_first(nodes, messages.NOT_PLANNED_HERE))

    def _filter_plain(self, args: ExtenderArgs, nodes: list[str]) -> ExtenderFilterResult:
        """Nodes whose room is not held by gangs that are starting."""
        with self._cluster.lock:
            state = self._cluster.state
            table = state.nodes
            row = table.row_of(pod_requests(args.pod.spec))
            index = table.index
            columns = np.fromiter((index.get(name, -1) for name in nodes), dtype=np.int64, count=len(nodes))
            wanted = np.flatnonzero(row)
            free = table.allocatable[wanted][:, columns] - table.used[wanted][:, columns]
        fits = (free >= row[wanted, None]).all(axis=0) & (columns >= 0)
        passed = [name for name, fit in zip(nodes, fits, strict=True) if fit]
        if passed:
            return ExtenderFilterResult(node_names=passed)
        return ExtenderFilterResult(failed_and_unresolvable_nodes=_first(nodes, messages.HELD_BY_GANG))

    # -- prioritize -------------------------------------------------------------------------------------------------

    def prioritize(self, args: ExtenderArgs) -> list[HostPriority]:
        """The plugins' scores as ranks 0-10; without any, fuller nodes first, so that whole nodes are left to gangs."""
        nodes = args.node_names or []
        session = self._session()
        with self._cluster.lock:
            table = self._cluster.state.nodes
            cls = self._cluster.state.classes.of_pod(args.pod)
            columns = np.fromiter((table.index.get(name, -1) for name in nodes), dtype=np.int64, count=len(nodes))
            full = fullness(table, columns)
        scores = session.scores(cls) if session is not None else None
        if isinstance(scores, np.ndarray) and len(nodes) and columns.max() < len(scores):
            ranks = collapse(np.where(columns >= 0, scores[columns], 0.0))
        else:
            ranks = np.floor(np.where(columns >= 0, full, 0.0) * MAX_PRIORITY).astype(np.int64)
        return [HostPriority(host=name, score=int(rank)) for name, rank in zip(nodes, ranks, strict=True)]

    # -- bind -------------------------------------------------------------------------------------------------------

    def bind(self, args: ExtenderBindingArgs) -> ExtenderBindingResult:
        """Bind a pod; a member of a gang waits for the others first."""
        reason = self._unavailable()
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
            gang = self._cluster.state.gang(key)
            record = self._cluster.state.pods.get(args.pod_uid, record)  # looking at the gang gave it its seat
        placement = gang.placement if gang else None
        if refusal or gang is None or placement is None or record.member is None:
            return refusal or messages.NOT_SEEN
        epoch, member = placement.spec.epoch, record.member
        if not gang.started:
            outcome = self._barrier.join(gang.uid, epoch, member, lambda held: self._enough(key, placement, held))
            if outcome is not Outcome.RELEASED:
                return messages.BARRIER_TIMEOUT if outcome is Outcome.TIMED_OUT else messages.PLACEMENT_OVER
            refusal = self._unavailable() or self._still(key, epoch, args)
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
            gang = state.gang(record.gang)
            record = state.pods.get(args.pod_uid, record)
            return _refusal(gang, record, args.node) if gang else messages.NOT_SEEN

    def _enough(self, key: str, placement: Placement, held: frozenset[Member]) -> bool:
        """Whether the members held at the barrier, with those bound already, may start. Tells who writes the story."""
        with self._cluster.lock:
            gang = self._cluster.state.gang(key)
        if gang is None or gang.placement is None or gang.placement.spec.epoch != placement.spec.epoch:
            return False
        counts = {
            pod_set.name: len(
                pod_set.taken.keys() | {member.index for member in held if member.pod_set == pod_set.name}
            )
            for pod_set in gang.pod_sets
        }
        if not gang.satisfied(counts) and len(held) < self._most_held:
            return False
        self._on_release(gang.placement, gang.taken)
        return True

    def _still(self, key: str, epoch: int, args: ExtenderBindingArgs) -> str:
        """After the wait: the placement must still be the one that the member waited for."""
        with self._cluster.lock:
            gang = self._cluster.state.gang(key)
            if gang is None or gang.placement is None or gang.placement.spec.epoch != epoch:
                return messages.PLACEMENT_OVER
            return messages.PLACEMENT_OVER if args.pod_uid not in self._cluster.state.pods else self._objection(args)

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


def _refusal(gang: GangView, record: PodRecord, node: str) -> str:
    """Why this member may not be bound to this node now; empty if it may."""
    placement = gang.placement
    if placement is None or record.member is None:
        return messages.NOT_SEEN
    if record.epoch is not None and record.epoch > placement.spec.epoch:
        return messages.NOT_SEEN
    if record.node:
        return "" if record.node == node else messages.WRONG_NODE
    if placement.status.phase not in ACTIVE or record.epoch != placement.spec.epoch:
        return messages.PLACEMENT_OVER
    return "" if node_of(placement, record.member.pod_set, record.member.index) == node else messages.WRONG_NODE


def _marks(placement: Placement) -> dict[str, str]:
    return {GROUP_NAME: placement.metadata.name, EPOCH: str(placement.spec.epoch)}


def _first(nodes: list[str], message: str) -> dict[str, str]:
    """One entry carries the message; nodes that are left out count as unresolvable anyway."""
    return {nodes[0]: message} if nodes else {}


DECODE_ARGS = msgspec.json.Decoder(ExtenderArgs)
DECODE_BINDING = msgspec.json.Decoder(ExtenderBindingArgs)
