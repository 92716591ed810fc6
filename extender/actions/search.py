"""Finds nodes for one gang, on a Statement: for its minimum, and for what else fits.

Pods under the minimum are of no use alone, so that the minimum is tried pod set by pod set, in two orders, and taken
back as a whole at the first pod set that fails. What is above it is filled as far as there is room.
"""

from bisect import bisect_left
from collections.abc import Sequence
from functools import cmp_to_key

import numpy as np
from msgspec import structs

from extender.actions.fill import fill
from extender.framework.demand import minimum_wanted
from extender.framework.refusal import queue_refusal
from extender.framework.session import Session
from extender.framework.shortage import Shortage, shortage
from extender.framework.statement import Operation, Statement
from extender.state.amounts import times
from extender.state.gangs import GangView
from extender.state.podset import PodSetView
from muster.api.placement import PodSetPlacement, runs_of


def chosen_ranks(session: Session, gang: GangView, wanted: dict[str, int]) -> dict[str, list[int]]:
    """The open seats of each pod set that are filled if so many of them are wanted."""
    seats = gang.open_seats()
    return {
        pod_set.name: _first(session, pod_set, seats[pod_set.name], wanted[pod_set.name]) for pod_set in gang.pod_sets
    }


def lacking(gang: GangView, statement: Statement) -> bool:
    """Whether a gang that has started still has less than it needs, with what was just placed."""
    return statement.seats < sum(minimum_wanted(gang).values())


def open_above(gang: GangView, statement: Statement) -> bool:
    """Whether pods of it are left without a place."""
    return statement.seats < sum(len(ranks) for ranks in gang.open_seats().values())


def place_minimum(session: Session, statement: Statement, gang: GangView) -> Shortage | None:
    """Fills the seats the gang needs to start; None on success, else what the first pod set that fails is short of."""
    wanted = minimum_wanted(gang)
    seats = gang.open_seats()
    first: Shortage | None = None
    for order in _orders(session, gang):
        start = statement.checkpoint()
        failed = False
        for pod_set in order:
            ranks = _first(session, pod_set, seats[pod_set.name], wanted[pod_set.name])
            before = statement.checkpoint()
            placed = fill(session, statement, gang, pod_set, ranks)
            if placed < len(ranks):
                failed = True
                statement.rollback(before)  # the causes are counted with the gang's other pod sets in their places
                first = first or shortage(session, gang, pod_set, len(ranks), placed)
                break
        if not failed:
            return None
        statement.rollback(start)
    return first


def place_more(session: Session, statement: Statement, gang: GangView, wanted: dict[str, int] | None) -> None:
    """Fills open seats as far as there is room, at most so many of each pod set; of a sub-group all or none."""
    filled = {(operation.pod_set, rank) for operation in statement.operations for rank in operation.ranks}
    seats = gang.open_seats()
    for pod_set in session.ordered_pod_sets(gang):
        ranks = [rank for rank in seats[pod_set.name] if (pod_set.name, rank) not in filled]
        if wanted is not None:
            ranks = _first(session, pod_set, ranks, wanted[pod_set.name])
        ranks = ranks[: _queue_room(session, gang, pod_set, len(ranks))]
        if pod_set.unit == 1:
            fill(session, statement, gang, pod_set, _preferred(session, pod_set, ranks))
            continue
        for unit in pod_set.units(ranks):
            before = statement.checkpoint()
            if fill(session, statement, gang, pod_set, unit) < len(unit):
                statement.rollback(before)


def _queue_room(session: Session, gang: GangView, pod_set: PodSetView, most: int) -> int:
    """How many more pods of the set the gang's queues let it have, at most `most`."""
    if not most or pod_set.cls is None:
        return most
    row = session.snapshot.row_of(pod_set.cls)

    def refused(count: int) -> bool:
        return queue_refusal(session, gang, times(row, count)) is not None

    return most if not refused(most) else bisect_left(range(1, most), 1, key=refused)


def _first(session: Session, pod_set: PodSetView, ranks: Sequence[int], count: int) -> list[int]:
    """At least so many of these ranks: whole sub-groups, and pods that the task order prefers before others."""
    chosen: list[int] = []
    for unit in pod_set.units(_preferred(session, pod_set, ranks)):
        if len(chosen) >= count:
            break
        chosen += unit if pod_set.unit > 1 else unit[:1]
    return sorted(chosen)


def _preferred(session: Session, pod_set: PodSetView, ranks: Sequence[int]) -> Sequence[int]:
    """Ranks in the plugins' task order where all of them have pods and are placed singly; else as they are."""
    if pod_set.unit > 1 or not all(rank in pod_set.waiting for rank in ranks):
        return ranks

    def compare(left: int, right: int) -> int:
        return session.ask("task_order", pod_set.waiting[left], pod_set.waiting[right]) or left - right

    return sorted(ranks, key=cmp_to_key(compare))


def _orders(session: Session, gang: GangView) -> list[list[PodSetView]]:
    """Orders of pod sets to try: greedy pods first, as they are hardest to place; then as written.

    Whoever follows others comes after them in both.
    """
    totals = session.snapshot.allocatable.sum(axis=1)

    def share(pod_set: PodSetView) -> float:
        if pod_set.cls is None:
            return 0.0
        row = session.snapshot.row_of(pod_set.cls)
        return float((row / np.maximum(totals, 1)).max(initial=0.0))

    written = sorted(gang.pod_sets, key=follows)
    greedy = sorted(written, key=lambda pod_set: (follows(pod_set), -share(pod_set)))
    return [greedy] if greedy == written else [greedy, written]


def gated_until_others(gang: GangView, pod_sets: Sequence[PodSetPlacement]) -> list[PodSetPlacement]:
    """The seats of a placement, with those pod sets held that follow others, unless all of them do."""
    followers = {pod_set.name for pod_set in gang.pod_sets if follows(pod_set)}
    some = len(followers) < len(gang.pod_sets)
    return [structs.replace(pod_set, held=some and pod_set.name in followers) for pod_set in pod_sets]


def follows(pod_set: PodSetView) -> bool:
    """Whether its pods must go where pods of another kind are: those come first, as they may be of the same gang."""
    together = pod_set.cls.neighbours.together if pod_set.cls else None
    return together is not None and pod_set.cls is not None and together.mark not in pod_set.cls.matched


def runs_of_operations(
    session: Session, gang: GangView, operations: Sequence[Operation], *, gated: bool = False
) -> list[PodSetPlacement]:
    """The seats of a placement: those taken already and those just allocated, in rank order.

    Members are born gated where they follow others, or, with `gated`, because the room is not there yet.
    """
    seats: dict[str, dict[int, str]] = {pod_set.name: dict(pod_set.taken) for pod_set in gang.pod_sets}
    for operation in operations:
        node = session.snapshot.name(operation.column)
        seats[operation.pod_set] |= dict.fromkeys(operation.ranks, node)
    sets = [PodSetPlacement(name=name, runs=runs_of(taken), held=gated) for name, taken in seats.items() if taken]
    return sets if gated else gated_until_others(gang, sets)
