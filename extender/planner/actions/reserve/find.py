"""Where and when a gang that waits could start: trials of its whole minimum on what will be free.

Each trial places the gang as `allocate` would, with all predicates, upon an array of its own, and is taken back. The
more has been given back the more fits, so the earliest time is found by halving: a dozen trials, whatever there is.
What depends on where other pods are now (affinity between pods) is tried as it is now.
"""

from collections.abc import Callable
from math import ceil

import numpy as np
from numpy.typing import NDArray

from extender.planner.actions.reserve.ends import Releases, used_by_gangs
from extender.planner.actions.reserve.reservation import Reservation
from extender.planner.actions.search import place_minimum, runs_of_operations
from extender.planner.framework.demand import minimum_wanted
from extender.planner.framework.operations import Operation
from extender.planner.framework.session import Session
from extender.planner.framework.statement import Statement
from extender.planner.state.amounts import Amounts
from extender.planner.state.gangs import GangView


def earliest(
    session: Session, gang: GangView, releases: Releases, taken: Amounts, before: float | None
) -> Reservation | None:
    """The reservation that begins first, `before` that time if it is given; None if no time is known.

    `taken` is what others have reserved, int64 of shape (resources, nodes).
    """
    free = session.snapshot.free - taken
    most = len(releases.times) if before is None else releases.until(before)
    steps = np.flatnonzero(np.diff(releases.times[:most], append=np.inf) > 0) + 1  # after each distinct time

    def tried(step: int) -> list[Operation] | None:
        return _trial(session, gang, releases.freed(free, int(steps[step])))

    found = _first(len(steps), tried)
    if found is None:
        return None
    count = int(steps[found[0]])
    at = float(ceil(max(float(releases.times[count - 1]), session.now)))
    columns, need = _need(session, found[1])
    gained = releases.gained(columns, releases.until(at))
    return Reservation(at, columns, need, gained, gang, runs_of_operations(session, gang, found[1]))


def soonest_empty(session: Session, gang: GangView, taken: Amounts) -> Reservation | None:
    """Nodes to reserve for a gang that may start at no known time; None if it fits on no nodes that gangs leave.

    Those that have least to be given back come first, so that what stays free waits for as little as possible.
    """
    snapshot = session.snapshot
    used = used_by_gangs(snapshot)
    wanted = np.flatnonzero(sum(snapshot.row_of(cls) for cls in gang.classes if cls is not None))
    share = (used[wanted] / np.maximum(snapshot.allocatable[wanted], 1)).max(axis=0, initial=0.0)
    order = snapshot.order[np.argsort(share[snapshot.order], kind="stable")]
    order = order[share[order] > 0]

    def tried(step: int) -> list[Operation] | None:
        free = snapshot.free - taken
        free[:, order[: step + 1]] += used[:, order[: step + 1]]
        return _trial(session, gang, free)

    found = _first(len(order), tried)
    if found is None:
        return None
    columns, need = _need(session, found[1])
    return Reservation(None, columns, need, np.zeros_like(need), gang, runs_of_operations(session, gang, found[1]))


def _first(count: int, tried: Callable[[int], list[Operation] | None]) -> tuple[int, list[Operation]] | None:
    """The lowest of 0 … count-1 that succeeds, with its result, where all above one that succeeds succeed too."""
    result = tried(count - 1) if count else None
    if result is None:
        return None
    low, high = 0, count - 1
    while low < high:
        middle = (low + high) // 2
        operations = tried(middle)
        if operations is None:
            low = middle + 1
        else:
            high, result = middle, operations
    return high, result


def _trial(session: Session, gang: GangView, free: Amounts) -> list[Operation] | None:
    """What the gang's minimum would get if so much were free; the session is as before afterwards."""
    snapshot, reserved = session.snapshot, session.reserved
    before, statement = snapshot.free, Statement(session)
    snapshot.free, session.reserved = free, None
    try:
        fits = not _too_little(session, gang) and place_minimum(session, statement, gang) is None
        operations = list(statement.operations) if fits else []
    finally:
        statement.discard()
        snapshot.free, session.reserved = before, reserved
    return operations or None


def _too_little(session: Session, gang: GangView) -> bool:
    """Whether some pod set finds too little room even alone: most trials that fail end here, at little cost."""
    wanted = minimum_wanted(gang)
    for pod_set in gang.pod_sets:
        need = wanted[pod_set.name]
        if need and pod_set.cls is not None and not pod_set.mixed:
            room = np.where(session.node_codes(pod_set.cls) == 0, session.room(pod_set.cls), 0)
            if int(np.minimum(room, need).sum()) < need:
                return True
    return False


def _need(session: Session, operations: list[Operation]) -> tuple[NDArray[np.int64], Amounts]:
    """What these take, by column."""
    columns = np.unique(np.array([operation.column for operation in operations], dtype=np.int64))
    place = {int(column): position for position, column in enumerate(columns)}
    need = np.zeros((session.snapshot.free.shape[0], len(columns)), dtype=np.int64)
    for operation in operations:
        need[:, place[operation.column]] += operation.amount
    return columns, need
