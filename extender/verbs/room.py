"""Nodes that have room for a pod without a gang, and GPUs of them that it shares: what the ledger leaves.

Asked by filter of all nodes, and once more by bind of the one that it is about, as things may have changed since.
"""

import time
from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from extender.live import Live
from extender.planner.framework.session import Session
from extender.planner.reasons.verbs import Reason
from extender.planner.state.pods import PodRecord
from extender.planner.state.state import State
from muster.api.muster.placement import text_of_devices
from muster.api.names import GPU_DEVICES_CHOSEN, GPU_PORTION, VOLCANO_GPU_INDEX, VOLCANO_PREDICATE_TIME
from muster.resources.gpus import format_portion
from muster.resources.vector import Vector, add

Mask = NDArray[np.bool_]


def nodes_with_room(
    state: State, record: PodRecord | None, requests: Vector, columns: NDArray[np.int64], now: float
) -> tuple[Mask, Reason]:
    """Which of these columns take the pod (-1: a node that is not known), and why none does if it is none.

    `record` is the pod as it is known, if it is; `now` is in seconds since the epoch.
    """
    table = state.nodes
    claimed = dict(record.cls.needs.rows) if record else {}
    row = table.row_of(add(requests, claimed))
    wanted = np.flatnonzero(row)
    offered = table.allocatable[wanted][:, columns]
    free = offered - table.used[wanted][:, columns]
    if claimed:  # a node whose devices we do not know (yet) has been judged by kube-scheduler before us
        devices = np.isin(wanted, [table.axis[name] for name in claimed if name in table.axis])
        free = np.where(devices[:, None] & (offered < row[wanted, None]), row[wanted, None], free)
    own = state.ledger.entries.get(record.uid) if record else None
    if own is not None and (part := table.part_of(own.node, own.cls)) is not None:  # its binding is under way
        free[:, columns == part[0]] += part[1][wanted, None]
    here = columns >= 0
    fits: Mask = (free >= row[wanted, None]).all(axis=0) & here
    runtime_s = record.runtime.expected_s(None) if record else None
    reserved = state.ledger.reserved.amounts(columns, wanted, now, runtime_s)
    if reserved is None or not fits.any():
        return fits, Reason.HELD_BY_GANG
    return (free - reserved >= row[wanted, None]).all(axis=0) & here, Reason.KEPT_FOR_GANG


class SharedGpus:
    """Chooses devices for pods without a gang; those of members stand in their placements.

    `session` is the last planning cycle, whose plugins order devices.
    """

    def __init__(self, cluster: Live, session: Callable[[], Session | None]) -> None:
        self._cluster = cluster
        self._session = session

    def choose(self, record: PodRecord, node: str) -> tuple[int, ...] | None:
        """The GPUs that the pod is to share; None if there is no room."""
        table, share = self._cluster.state.nodes, record.cls.gpu
        column, known = table.index.get(node), self._cluster.state.ledger.entries.get(record.uid)
        if share is None or column is None or record.node:
            return record.devices
        if known is not None and known.node == node:  # its binding is under way
            return known.devices
        unused, session = table.devices.unused_at(table.allocatable - table.used, table.axis, column), self._session()
        order = None if session is None else partial(session.hooks.gpu_order.call, record.cls, column)
        return table.devices.choose(share, column, unused, order)

    def told(self, record: PodRecord, node: str, devices: tuple[int, ...]) -> dict[str, str]:
        """Annotations of the binding; Volcano's device plugin is told in its own words."""
        share = record.cls.gpu
        if share is None or not devices:
            return {}
        table = self._cluster.state.nodes
        column = table.index.get(node)
        portion = table.devices.portion(share, column) if column is not None else share.portion
        told = {GPU_DEVICES_CHOSEN: text_of_devices(devices), GPU_PORTION: format_portion(portion)}
        if share.by_resource:
            told |= {VOLCANO_GPU_INDEX: text_of_devices(devices), VOLCANO_PREDICATE_TIME: str(time.time_ns())}
        return told
