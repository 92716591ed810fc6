"""The filter verb: a look-up for members of gangs, and for everybody else the room that the ledger leaves.

kube-scheduler does nothing else while it waits for the answer, so nothing is computed here that the state does not
already hold.
"""

import time
from collections.abc import Callable
from functools import cache
from itertools import compress, repeat

import msgspec
import numpy as np
from numpy.typing import NDArray
from prometheus_client import Counter

from extender.live import Live
from extender.planner.fairshare.capacity import queue_full
from extender.planner.reasons.verbs import Reason, Verdict
from extender.planner.state.gangs import ACTIVE
from extender.planner.state.nodes import NodeTable
from extender.planner.state.podshape import asked_of, ours
from extender.verbs.calls import counted, unavailable
from extender.verbs.room import nodes_with_room
from muster.api.kubernetes.extender import ExtenderArgs, ExtenderFilterResult
from muster.api.muster.gang import epoch_of, gang_of, slot_of
from muster.api.muster.placement import node_of
from muster.api.names import DEFAULT_QUEUE, NODE, VOLCANO_GPU_NUMBER
from muster.resources.gpus import GpuShare
from muster.resources.vector import GPU, WHOLE, Vector

DECODE_ARGS = msgspec.json.Decoder(ExtenderArgs)
FILTERS = Counter("muster_filter_total", "Filter calls", ["pod", "verdict", "reason"])
FILTER_NAMES = Counter("muster_filter_names_total", "Node names in filter calls", ["pod"])
_names = cache(FILTER_NAMES.labels)
_calls = counted(FILTERS)
Answer = list[str] | Reason
"""The nodes that pass, of those that were named; or why none does."""


class Filter:
    """Answers which of the named nodes a pod may go to.

    `active` says whether this replica leads; `wall_s` is seconds since the epoch.
    """

    def __init__(self, cluster: Live, *, active: Callable[[], bool], wall_s: Callable[[], float] = time.time) -> None:
        self._cluster = cluster
        self._active = active
        self._wall_s = wall_s

    def __call__(self, args: ExtenderArgs) -> ExtenderFilterResult:
        """Returns the nodes that pass, never one that was not named: kube-scheduler takes that for a failed call."""
        nodes = args.node_names or []
        gang = gang_of(args.pod.metadata)
        kind = "pinned" if NODE in args.pod.metadata.annotations else "gang" if gang else "plain"
        _names(kind).inc(len(nodes))
        answer = unavailable(self._cluster, self._active) or self._decide(args, gang, nodes)
        _calls(kind, answer if isinstance(answer, Reason) else None).inc()
        return _result(answer, nodes)

    def _decide(self, args: ExtenderArgs, gang: str | None, nodes: list[str]) -> Answer:
        return self._member(args, gang, nodes) if gang else self._plain(args, nodes)

    def _member(self, args: ExtenderArgs, gang: str, nodes: list[str]) -> Answer:
        """Looks up the one node that the placement gives this member.

        A member without an epoch has lost its gate before there was a placement; it goes where it is planned.
        """
        meta = args.pod.metadata
        key = f"{meta.namespace}/{gang}"
        placement = self._cluster.state.placement_of(key)
        record = self._cluster.state.pods.get(meta.uid)
        known = key in self._cluster.state.groups
        if not known:
            return Reason.NOT_SEEN
        epoch = epoch_of(meta)
        if epoch is not None and (placement is None or placement.spec.epoch < epoch):
            return Reason.NOT_SEEN
        if placement is None or placement.status.phase not in ACTIVE or epoch not in {None, placement.spec.epoch}:
            return Reason.WAITS_FOR_GANG
        slot = slot_of(meta) or (record.slot if record else None)
        node = node_of(placement, slot.pod_set, slot.rank) if slot else None
        return [node] if node in nodes else Reason.NOT_PLANNED_HERE

    def _plain(self, args: ExtenderArgs, nodes: list[str]) -> Answer:
        """Leaves out the nodes whose room is in the ledger, reserved room included. Bind may use the others."""
        state = self._cluster.state
        table = state.nodes
        record, meta = state.pods.get(args.pod.metadata.uid), args.pod.metadata
        requests, share = asked_of(args.pod.spec, meta.annotations if ours(args.pod.spec) else None)
        queue = (record.queue if record else "") or DEFAULT_QUEUE
        counted = meta.uid in state.ledger.entries  # its binding is under way
        if not counted and queue_full(state.queues, state.ledger.queues.queues, queue, requests):
            return Reason.QUEUE_FULL
        index = state.nodes.index
        columns = np.fromiter(map(index.get, nodes, repeat(-1)), dtype=np.int64, count=len(nodes))
        fits, none = nodes_with_room(state, record, requests, columns, self._wall_s())
        if share is not None or table.devices.pods.any():
            fits &= _gpus_fit(table, share, requests, columns)
        state.answers.keep(args.pod.metadata.uid, columns[fits])
        return list(compress(nodes, fits.tolist())) or none


def _gpus_fit(
    table: NodeTable, share: GpuShare | None, requests: Vector, columns: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Whether the GPUs of these nodes have room one by one: for a part of some, or for whole ones beside those."""
    free = table.allocatable - table.used
    unused = table.devices.unused(free, table.axis)
    if share is not None:
        return np.asarray(table.devices.room(share, unused)[columns] > 0)
    whole = max(requests.get(GPU, 0) // WHOLE, requests.get(VOLCANO_GPU_NUMBER, 0))
    return np.asarray(unused[columns] >= whole)


def _result(answer: Answer, nodes: list[str]) -> ExtenderFilterResult:
    """The answer as kube-scheduler reads it.

    Of a rejection one entry carries the words: nodes that are left out count as unresolvable anyway.
    """
    if not isinstance(answer, Reason):
        return ExtenderFilterResult(node_names=answer)
    if answer.verdict is Verdict.ERROR:
        return ExtenderFilterResult(error=answer)
    return ExtenderFilterResult(failed_and_unresolvable_nodes=dict.fromkeys(nodes[:1], answer))
