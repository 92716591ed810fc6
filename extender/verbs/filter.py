"""The filter verb, which returns the planned node for members of gangs, and nodes with free capacity for other pods.

kube-scheduler is blocked while it waits for the answer, so filter only reads the state.
"""

import time
from collections.abc import Callable
from functools import cache
from itertools import compress, repeat

import msgspec
import numpy as np
from numpy.typing import NDArray
from prometheus_client import Counter

from extender.cluster import Live
from extender.planner.reasons.queues import OVER_CAPABILITY
from extender.planner.reasons.verbs import CallResult, VerbReason
from extender.planner.state.gangphase import ACTIVE
from extender.planner.state.nodes import NodeTable
from extender.planner.state.pods import PodRecord
from extender.planner.state.podshape import asked_of
from extender.verbs.capacity import counted, nodes_with_capacity, not_usable, requests_of, unavailable
from muster.api.kubernetes.core import Pod
from muster.api.kubernetes.extender import ExtenderArgs, ExtenderFilterResult
from muster.api.muster.gang import epoch_of
from muster.api.muster.placement import node_of_slot
from muster.api.muster.pools import is_musters, pool_of_scheduler
from muster.api.names import DEFAULT_QUEUE, NODE, VOLCANO_GPU_NUMBER
from muster.resources.gpus import GpuShare
from muster.resources.vector import GPU, WHOLE, Vector
from muster.workloads.charges import placed_by_muster
from muster.workloads.table import TIED_OWNERS, gang_of, slot_of

DECODE_ARGS = msgspec.json.Decoder(ExtenderArgs)
FILTERS = Counter(
    "muster_filter_total",
    "Filter calls of kube-scheduler, by kind of pod, result and its reason",
    ["pod", "verdict", "reason"],
)
FILTER_NAMES = Counter("muster_filter_names_total", "Node names in filter calls, by kind of pod", ["pod"])
_names = cache(FILTER_NAMES.labels)
_calls = counted(FILTERS)
Answer = list[str] | VerbReason
"""The nodes of a filter call that can take the pod, or the reason why no node can."""


class Filter:
    """The filter verb, which acts while this replica is `active`; `wall_s` returns seconds since the epoch."""

    def __init__(self, cluster: Live, *, active: Callable[[], bool], wall_s: Callable[[], float] = time.time) -> None:
        self._cluster = cluster
        self._active = active
        self._wall_s = wall_s

    def __call__(self, args: ExtenderArgs) -> ExtenderFilterResult:
        """Return those of the given nodes that can take the pod.

        If the answer has any other node, kube-scheduler treats the call as failed.
        """
        nodes = args.node_names or []
        gang = gang_of(args.pod)
        kind = "pinned" if NODE in args.pod.metadata.annotations else "gang" if gang else "plain"
        _names(kind).inc(len(nodes))
        answer: Answer | None = unavailable(self._cluster, self._active)
        if pool_of_scheduler(args.pod.spec.scheduler_name) not in {None, self._cluster.state.pool}:
            answer = VerbReason.OTHER_POOL
        if answer is None:
            answer = self._placed(args, gang, nodes)
        _calls(kind, answer if isinstance(answer, VerbReason) else None).inc()
        return _result(answer, nodes)

    def _placed(self, args: ExtenderArgs, gang: str | None, nodes: list[str]) -> Answer:
        """Return the nodes for a member of a gang, or for a pod without a gang.

        If a workload has no Muster label, the controller adds its pods to a gang only after their creation. A pod of
        such a workload waits until it is in its gang, as in Volcano, and so does not start alone.
        """
        if gang:
            return self._member(args, gang, nodes)
        return VerbReason.NOT_SEEN if _is_to_be_named(args.pod) else self._plain(args, nodes)

    def _member(self, args: ExtenderArgs, gang: str, nodes: list[str]) -> Answer:
        """Return the node of the member's slot.

        A member without an epoch has lost its gate before it had a placement.
        """
        meta = args.pod.metadata
        key = f"{meta.namespace}/{gang}"
        placement = self._cluster.state.placement_of(key)
        record = self._cluster.state.pods.get(meta.uid)
        if key not in self._cluster.state.groups:
            return VerbReason.NOT_SEEN
        epoch = epoch_of(meta)
        if epoch is not None and (placement is None or placement.spec.epoch < epoch):
            return VerbReason.NOT_SEEN
        if placement is None or placement.status.phase not in ACTIVE or epoch not in {None, placement.spec.epoch}:
            return VerbReason.WAITS_FOR_GANG
        slot = slot_of(meta) or (record.slot if record else None)
        node = node_of_slot(placement, slot)
        return [node] if node in nodes else VerbReason.NOT_PLANNED_HERE

    def _plain(self, args: ExtenderArgs, nodes: list[str]) -> Answer:
        """Return the nodes with enough free capacity; capacity that is reserved for gangs does not count as free.

        The bind verb accepts only nodes that pass this filter.
        """
        state = self._cluster.state
        table, meta, now = state.nodes, args.pod.metadata, self._wall_s()
        record = state.pods.get(meta.uid)
        requests, share = _asked(args.pod, record)
        queue = (record.queue if record else "") or DEFAULT_QUEUE
        counted = meta.uid in state.ledger.entries  # the pod's binding is in progress
        if not counted and (barred := not_usable(state, queue, meta.namespace)):
            return barred
        asked = requests_of(state, record, queue) if record else requests
        user, named = (record.creator, [each.key for each in record.cls.needs.named]) if record else ("", [])
        if not counted and (full := state.ledger.queues.limited.exceeded(queue, user, asked, now, named)):
            return VerbReason.QUEUE_FULL if full.reason == OVER_CAPABILITY else VerbReason.LIMIT_REACHED
        columns = np.fromiter(map(table.index.get, nodes, repeat(-1)), dtype=np.int64, count=len(nodes))
        fits, none = nodes_with_capacity(state, record, requests, columns, now)
        if share is not None or table.devices.pods.any():
            fits &= _gpus_fit(table, share, requests, columns)
        state.answers.keep(args.pod.metadata.uid, columns[fits])
        return list(compress(nodes, fits.tolist())) or none


def _is_to_be_named(pod: Pod) -> bool:
    """Return True for a workload's pod that uses Muster's scheduler but is not assigned to a gang yet."""
    owner = pod.metadata.controller
    return owner is not None and owner.kind not in TIED_OWNERS and is_musters(pod.spec.scheduler_name)


def _asked(pod: Pod, record: PodRecord | None) -> tuple[Vector, GpuShare | None]:
    """Return the resource requests and the GPU share of a pod, from the cache if it has this version of the pod."""
    if record is not None and record.resource_version == pod.metadata.resource_version:
        return record.cls.asked, record.cls.gpu
    return asked_of(pod.spec, pod.metadata.annotations if placed_by_muster(pod.spec) else None)


def _gpus_fit(
    table: NodeTable, share: GpuShare | None, requests: Vector, columns: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Return a mask of the nodes whose individual GPUs have enough free capacity for a GPU share or for whole GPUs."""
    free = table.allocatable - table.used
    unused = table.devices.unused(free, table.axis)
    if share is not None:
        return np.asarray(table.devices.room(share, unused)[columns] > 0)
    whole = max(requests.get(GPU, 0) // WHOLE, requests.get(VOLCANO_GPU_NUMBER, 0))
    return np.asarray(unused[columns] >= whole)


def _result(answer: Answer, nodes: list[str]) -> ExtenderFilterResult:
    """Return the answer for kube-scheduler; excluded nodes are unresolvable, and one of them has the reason."""
    if not isinstance(answer, VerbReason):
        return ExtenderFilterResult(node_names=answer)
    if answer.verdict is CallResult.ERROR:
        return ExtenderFilterResult(error=answer)
    return ExtenderFilterResult(failed_and_unresolvable_nodes=dict.fromkeys(nodes[:1], answer))
