"""Nodes that have room for a pod without a gang: what the ledger leaves, and is not reserved for gangs that wait.

Asked by filter of all nodes, and once more by bind of the one that it is about, as things may have changed since.
"""

import numpy as np
from numpy.typing import NDArray

from extender.planner.reasons.verbs import Reason
from extender.planner.state.podrecord import PodRecord
from extender.planner.state.state import State
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
