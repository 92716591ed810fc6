"""Finds nodes for one gang, on a Statement: for its whole minimum, and for pods above it as far as there is room.

The minimum is tried pod set by pod set, in two orders, and undone as a whole at the first pod set that fails.
"""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from types import MappingProxyType

import numpy as np
from msgspec import structs

from extender.planner.actions.fill import PartSearch, fill, join
from extender.planner.framework.answers import EVERYWHERE, NodeSet
from extender.planner.framework.demand import (
    amounts_with_claims,
    chosen_ranks,
    first_ranks,
    in_task_order,
    minimum_wanted,
    shortage,
)
from extender.planner.framework.operations import Operation
from extender.planner.framework.session import Session
from extender.planner.framework.statement import Statement
from extender.planner.reasons.room import UNTOLD, Shortage, Wanted
from extender.planner.reasons.topology import Closest
from extender.planner.state.gangs import GangView
from extender.planner.state.podset import PodSetView
from extender.planner.topology.requests import Part, part_of, request_of
from extender.planner.topology.units import complete, united
from muster.api.muster.placement import PodSetPlacement, by_rank, runs_of, text_of_devices


def lacking(gang: GangView, statement: Statement) -> bool:
    """Return True if a gang is below its minimum even with the slots of the statement."""
    return statement.slots < sum(minimum_wanted(gang).values())


def place_minimum(
    session: Session,
    statement: Statement,
    gang: GangView,
    more: Mapping[str, Sequence[int]] = MappingProxyType({}),
) -> Shortage | None:
    """Fill the gang's minimum; None on success, else the shortage of the first pod set that fails.

    `more` has ranks beyond the last, by pod set, that are filled with it.
    """
    slots = chosen_ranks(session, gang, minimum_wanted(gang))
    for name, ranks in more.items():
        slots[name] = [*slots.get(name, ()), *ranks]
    orders = _orders(session, gang)
    found: list[Shortage] = []

    def fill_slots(wanted: Mapping[str, Sequence[int]], nodes: NodeSet) -> bool:
        lacks = _fill_sets(session, statement, gang, orders, wanted, nodes, told=bool(found))
        found.extend([lacks] if lacks else [])
        return lacks is None

    part = part_of(gang, slots, there(session, statement, gang))
    if PartSearch(session, statement, gang, fill_slots).place(part, EVERYWHERE):
        return None
    if lacks := _in_domains(session, statement, gang, slots, orders) or next(iter(found), None):
        return lacks
    pod_set = next((each for each in gang.pod_sets if slots.get(each.name)), gang.pod_sets[0])
    return shortage(session, gang, pod_set, len(slots.get(pod_set.name, ())), 0)  # a plugin has left no nodes


def _fill_sets(
    session: Session, statement: Statement, gang: GangView, orders: Sequence[list[PodSetView]],
    slots: Mapping[str, Sequence[int]], nodes: NodeSet, *, told: bool = False,
) -> Shortage | None:  # fmt: skip
    """Fill all these slots, or none and return the first shortage (a placeholder if one was `told` before)."""
    first: Shortage | None = None
    start = statement.checkpoint()
    for order in orders:
        failed = False
        for pod_set in order:
            ranks = slots.get(pod_set.name, ())
            before = statement.checkpoint()
            placed = fill(session, statement, gang, pod_set, ranks, nodes)
            if placed < len(ranks):
                failed = True
                statement.rollback(before)  # the causes are counted with the gang's other pod sets placed
                cls = pod_set.class_of(ranks[placed])
                first = first or (UNTOLD if told else shortage(session, gang, pod_set, len(ranks), placed, cls=cls))
                break
        if not failed:
            return None
        statement.rollback(start)
    return first


def _in_domains(
    session: Session, statement: Statement, gang: GangView, slots: Mapping[str, Sequence[int]],
    orders: Sequence[list[PodSetView]],
) -> Shortage | None:  # fmt: skip
    """Return the shortage of a gang that must be in domains: of nodes at all, or else of those in one domain."""
    closest = session.hooks.closest_domain.call(gang, slots)
    if closest is None:
        return None
    start = statement.checkpoint()
    anywhere = _fill_sets(session, statement, gang, orders, slots, EVERYWHERE)
    statement.rollback(start)
    return anywhere or near(session, gang, slots, closest.said)


def near(
    session: Session, gang: GangView, slots: Mapping[str, Sequence[int]], closest: Closest, *, ever: bool = False
) -> Shortage:
    """Return the shortage of a gang that no domain holds."""
    known = [each for each in gang.pod_sets if slots.get(each.name)]
    pod_set = next((each for each in known if closest.part.startswith(each.name)), known[0])
    wanted = sum(map(len, slots.values()))
    kind: Wanted = "ever" if ever else "together"
    lacks = shortage(session, gang, pod_set, wanted, min(closest.held, wanted), kind=kind)
    return structs.replace(lacks, closest=closest)


def lost(session: Session, gang: GangView, pod_set: PodSetView, slots: Mapping[str, Sequence[int]]) -> Shortage:
    """Return the shortage of members that a gang lost: of nodes at all, or else in the domain of the others."""
    closest = session.hooks.closest_domain.call(gang, slots)
    lacks = shortage(session, gang, pod_set, len(slots[pod_set.name]), 0, kind="lost")
    if closest is None or not lacks.roomy or (closest.said.held >= closest.said.wanted and not closest.said.why):
        return lacks
    return structs.replace(lacks, closest=closest.said)


def there(session: Session, statement: Statement, gang: GangView) -> dict[str, dict[int, int]] | None:
    """Return pod set → rank → column of members with a node, those of the statement included; None without topology."""
    if request_of(gang) is None:
        return None
    index = session.snapshot.index
    found: dict[str, dict[int, int]] = {each.name: {} for each in gang.pod_sets}
    for pod_set in gang.pod_sets:
        for rank, node in pod_set.taken.items():
            if node in index:
                found[pod_set.name][rank] = index[node]
    left = {pod.uid for eviction in statement.evictions if eviction.gang is gang for pod in eviction.pods}
    for pod in gang.pods if left else ():
        if pod.uid in left and pod.slot is not None:
            found.get(pod.slot.pod_set, {}).pop(pod.slot.rank, None)
    for operation in statement.operations:
        if operation.gang is gang:
            found.setdefault(operation.pod_set, {}).update(dict.fromkeys(operation.ranks, operation.column))
    return found


def place_more(session: Session, statement: Statement, gang: GangView, wanted: Mapping[str, int]) -> None:
    """Fill open slots as far as there is room, at most so many of each pod set; of a sub-group all or none."""
    filled = {(operation.pod_set, rank) for operation in statement.operations for rank in operation.ranks}
    slots = gang.open_slots()
    for pod_set in session.ordered_pod_sets(gang):
        ranks = [rank for rank in slots[pod_set.name] if (pod_set.name, rank) not in filled]
        ranks = first_ranks(session, gang, pod_set, ranks, wanted[pod_set.name])
        allowed = _queue_room(session, gang, pod_set, ranks)
        if not united(gang, pod_set):
            join_members(session, statement, gang, pod_set, in_task_order(session, gang, pod_set, ranks[:allowed]))
            continue
        for unit in complete(gang, pod_set, list(session.ordered_sub_groups(gang, pod_set, ranks))):
            allowed -= len(unit)
            if allowed < 0:
                break
            _join_unit(session, statement, gang, pod_set, unit)


def join_members(
    session: Session, statement: Statement, gang: GangView, pod_set: PodSetView, ranks: Sequence[int]
) -> None:
    """Fill these slots as far as there is room beside the members that have a node."""

    def fill_part(part: Part, nodes: NodeSet) -> int:
        return fill(session, statement, gang, pod_set, part.slots[pod_set.name], nodes)

    while ranks:
        before = statement.checkpoint()
        part = part_of(gang, {pod_set.name: ranks}, there(session, statement, gang), least=1)
        if not join(session, gang, part, EVERYWHERE, fill_part):
            return
        placed = {rank for operation in statement.operations_since(before) for rank in operation.ranks}
        ranks = [rank for rank in ranks if rank not in placed]


def _join_unit(
    session: Session, statement: Statement, gang: GangView, pod_set: PodSetView, unit: Sequence[int]
) -> None:
    """Fill all slots of one sub-group, or none."""

    def fill_slots(slots: Mapping[str, Sequence[int]], nodes: NodeSet) -> bool:
        ranks = slots[pod_set.name]
        return fill(session, statement, gang, pod_set, ranks, nodes) == len(ranks)

    part = part_of(gang, {pod_set.name: unit}, there(session, statement, gang))
    PartSearch(session, statement, gang, fill_slots).place(part, EVERYWHERE)


def _queue_room(session: Session, gang: GangView, pod_set: PodSetView, ranks: Sequence[int]) -> int:
    """Return the number of the first of these ranks that the gang's queues have room for."""
    if not ranks or pod_set.cls is None:
        return len(ranks)

    def refused(count: int) -> bool:
        members = {pod_set.name: pod_set.classes_of(ranks[:count])}
        return session.queue_refusal(gang, amounts_with_claims(session, gang, members)) is not None

    most = len(ranks)
    return most if not refused(most) else bisect_left(range(1, most), 1, key=refused)


def _orders(session: Session, gang: GangView) -> list[list[PodSetView]]:
    """Return the orders of pod sets to try: the largest share first, then as written; followers last in both."""
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
    """Return the slots of a placement, with those pod sets held that follow others, unless all of them do."""
    followers = {pod_set.name for pod_set in gang.pod_sets if follows(pod_set)}
    some = len(followers) < len(gang.pod_sets)
    return [structs.replace(pod_set, held=some and pod_set.name in followers) for pod_set in pod_sets]


def follows(pod_set: PodSetView) -> bool:
    """Return True if its pods have affinity to pods that do not match themselves, maybe of the same gang."""
    together = pod_set.cls.neighbours.together if pod_set.cls else None
    return together is not None and pod_set.cls is not None and together.mark not in pod_set.cls.matched


def runs_of_operations(
    session: Session, gang: GangView, operations: Sequence[Operation], *, gated: bool = False
) -> list[PodSetPlacement]:
    """Return the slots of a placement: taken and just allocated ones, in rank order.

    Followers are held, or, with `gated`, all pod sets, as the room is not free yet.
    """
    slots: dict[str, dict[int, str]] = {pod_set.name: dict(pod_set.taken) for pod_set in gang.pod_sets}
    gpus: dict[str, dict[int, str]] = {name: {} for name in slots}
    for pod in gang.pods:
        if pod.devices and pod.taken and pod.slot is not None and pod.slot.pod_set in gpus:
            gpus[pod.slot.pod_set][pod.slot.rank] = text_of_devices(pod.devices)
    for operation in operations:
        node = session.snapshot.name(operation.column)
        slots[operation.pod_set] |= dict.fromkeys(operation.ranks, node)
        for rank, devices in zip(operation.ranks, operation.devices, strict=True) if operation.devices else ():
            gpus[operation.pod_set][rank] = text_of_devices(devices)
    sets = [
        PodSetPlacement(name=name, runs=runs_of(taken), held=gated, gpus=by_rank(gpus[name]))
        for name, taken in slots.items()
        if taken
    ]
    return sets if gated else gated_until_others(gang, sets)
