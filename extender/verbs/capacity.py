"""Shared functions of the filter and bind verbs.

The functions check if this replica can answer, and find nodes and GPUs with free capacity for pods without a gang. The
filter verb checks the free capacity of all nodes; the bind verb checks one node again, because the node's capacity may
have changed.
"""

import time
from collections.abc import Callable
from functools import cache, partial

import numpy as np
from numpy.typing import NDArray
from prometheus_client import Counter

from extender.cluster import Live
from extender.planner.framework.session import Session
from extender.planner.reasons.verbs import CallResult, VerbReason
from extender.planner.state.amounts import Mask
from extender.planner.state.pods import PodRecord
from extender.planner.state.state import PlannerState
from muster.api.muster.placement import text_of_devices
from muster.api.names import DEFAULT_QUEUE, GPU_DEVICES_CHOSEN, GPU_PORTION, VOLCANO_GPU_INDEX, VOLCANO_PREDICATE_TIME
from muster.resources.gpus import format_portion
from muster.resources.vector import Vector, add


def counted(metric: Counter) -> Callable[[str, VerbReason | None], Counter]:
    """Return a function for the counter of a kind of pod and a reason, cached because a lookup takes a lock."""

    def counter(kind: str, reason: VerbReason | None) -> Counter:
        verdict, tag = (reason.verdict, reason.tag) if reason else (CallResult.PASSED, "")
        return metric.labels(kind, verdict, tag)

    return cache(counter)


def unavailable(cluster: Live, active: Callable[[], bool]) -> VerbReason | None:
    """Return why this replica cannot answer now: another replica leads, or its caches are not filled yet."""
    if not active():
        return VerbReason.NOT_LEADING
    return None if cluster.synced else VerbReason.NOT_SYNCED


def not_usable(state: PlannerState, queue: str, namespace: str) -> VerbReason | None:
    """Return the reason to reject a pod without a gang if its queue does not accept pods of the pod's namespace.

    Until the watch has reported a new namespace, the result is NOT_SEEN, for which the verbs return an error.
    """
    known, found = state.queues.get(queue), state.access.barrier(queue, namespace)
    if not found:
        return VerbReason.QUEUE_NOT_OPEN if known and not known.open else None
    if found.pools:
        return VerbReason.QUEUE_OF_OTHER_POOL
    return VerbReason.QUEUE_NOT_FOR_NAMESPACE if namespace in state.classes.queries.namespaces else VerbReason.NOT_SEEN


def nodes_with_capacity(
    state: PlannerState, record: PodRecord | None, requests: Vector, columns: NDArray[np.int64], now: float
) -> tuple[Mask, VerbReason]:
    """Return a mask of the nodes with capacity for the pod, and the reason to give if no node has capacity.

    A node is given as its column in the node table, or as -1 if the node is unknown.
    """
    table = state.nodes
    claimed = dict(record.cls.needs.rows) if record else {}
    row = table.row_of(add(requests, claimed))
    wanted = np.flatnonzero(row)
    offered = table.allocatable[wanted][:, columns]
    free = offered - table.used[wanted][:, columns]
    if claimed:  # kube-scheduler has checked nodes with devices that are not known yet
        devices = np.isin(wanted, [table.axis[name] for name in claimed if name in table.axis])
        free = np.where(devices[:, None] & (offered < row[wanted, None]), row[wanted, None], free)
    own = state.ledger.entries.get(record.uid) if record else None
    if own is not None and (part := table.part_of(own.node, own.cls)) is not None:  # the pod's binding is in progress
        free[:, columns == part[0]] += part[1][wanted, None]
    here = columns >= 0
    fits: Mask = (free >= row[wanted, None]).all(axis=0) & here
    none = VerbReason.HELD_BY_GANG
    if table.faults:
        sound = ~np.isin(columns, table.suspects)
        none = VerbReason.SUSPECT if fits.any() and not (fits & sound).any() else none
        fits &= sound
    runtime_s = record.runtime.expected_s(None) if record else None
    queue = (record.queue or DEFAULT_QUEUE) if record and record.ours else ""
    reserved = state.ledger.reserved.amounts(columns, wanted, now, runtime_s, queue)
    if reserved is None or not fits.any():
        return fits, none
    return (free - reserved >= row[wanted, None]).all(axis=0) & here, VerbReason.KEPT_FOR_GANG


def requests_of(state: PlannerState, record: PodRecord, queue: str) -> Vector:
    """Return the resources that a pod without a gang takes from its queue.

    The devices of a claim count only if the queue does not use the claim yet.
    """
    asked = record.cls.requests
    for claim in record.cls.needs.named:
        if queue not in state.ledger.device_users.get(claim.key, ()):
            asked = add(asked, dict(claim.rows))
    return asked


class SharedGpus:
    """Chooser of GPUs for pods without a gang; the plugins of the last cycle order the GPUs."""

    def __init__(self, cluster: Live, session: Callable[[], Session | None]) -> None:
        self._cluster = cluster
        self._session = session

    def choose(self, record: PodRecord, node: str) -> tuple[int, ...] | None:
        """Return the GPUs that the pod will share; None if no GPU has enough free capacity."""
        table, share = self._cluster.state.nodes, record.cls.gpu
        column, known = table.index.get(node), self._cluster.state.ledger.entries.get(record.uid)
        if share is None or column is None or record.node:
            return record.devices
        if known is not None and known.node == node:  # the pod's binding is in progress
            return known.devices
        unused, session = table.devices.unused_at(table.allocatable - table.used, table.axis, column), self._session()
        order = None if session is None else partial(session.hooks.gpu_order.call, record.cls, column)
        return table.devices.choose(share, column, unused, order)

    def annotations_for(self, record: PodRecord, node: str, devices: tuple[int, ...]) -> dict[str, str]:
        """Return the annotations of the pod's binding, including the annotations for Volcano's device plugin."""
        share = record.cls.gpu
        if share is None or not devices:
            return {}
        table = self._cluster.state.nodes
        column = table.index.get(node)
        portion = table.devices.portion(share, column) if column is not None else share.portion
        annotations = {GPU_DEVICES_CHOSEN: text_of_devices(devices), GPU_PORTION: format_portion(portion)}
        if share.by_resource:
            annotations |= {VOLCANO_GPU_INDEX: text_of_devices(devices), VOLCANO_PREDICATE_TIME: str(time.time_ns())}
        return annotations
