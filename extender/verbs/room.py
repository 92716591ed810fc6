"""Which nodes have room for a pod without a gang: less what gangs hold, what is kept for them, and what is being bound.

Asked by filter of all nodes, and once more by bind of the one that it is about, as things may have changed since.
"""

import numpy as np
from numpy.typing import NDArray

from extender.planner.state.podrecord import PodRecord
from extender.planner.state.state import State
from extender.verbs.reasons import Reason
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
    for pledge in state.pledges.of_others(record.uid if record else ""):
        if pledge.node and (column := table.index.get(pledge.node)) is not None:
            free[:, columns == column] -= table.row_of(pledge.requests)[wanted, None]
    here = columns >= 0
    fits: Mask = (free >= row[wanted, None]).all(axis=0) & here
    kept = state.kept.amounts(columns, wanted, now, record.runtime.expected_s(None) if record else None)
    if kept is None or not fits.any():
        return fits, Reason.HELD_BY_GANG
    return (free - kept >= row[wanted, None]).all(axis=0) & here, Reason.KEPT_FOR_GANG
