"""Demands of gangs along the resource axis of a snapshot, and counts of why they find no room (`reasons.room`)."""

from collections.abc import Iterable, Mapping, Sequence
from functools import cmp_to_key
from itertools import chain
from typing import cast

import numpy as np

from extender.planner import reasons
from extender.planner.dynamic.needs import SharedClaim
from extender.planner.framework.answers import Codes
from extender.planner.framework.session import Session
from extender.planner.framework.snapshot import Snapshot
from extender.planner.reasons.room import Cause, Level, NearestMiss, Shortage, Wanted
from extender.planner.state.amounts import MAX_SUM, Amounts, row_along, sum_along, times
from extender.planner.state.gangs import GangView
from extender.planner.state.podclass import PodClass
from extender.planner.state.podset import PodSetView
from extender.planner.topology.units import united
from muster.api.kubernetes.devices import MOST_PODS
from muster.resources.vector import GPU, PODS, vector

EXAMPLES = 3
"""Nodes that are named for each cause."""
LEVELS = 2
"""Amounts of free resources that are told of nodes that nearly fit."""


def minimum_wanted(gang: GangView) -> Mapping[str, int]:
    """Return the open slots of each pod set that must be filled for the gang to have its minimum.

    Of independent pods it is one, also when others of them run.
    """
    if gang.wanted is None:
        gang.wanted = _minimum_wanted(gang)
    return gang.wanted


def nodes_wanted(gang: GangView) -> Mapping[str, int]:
    """Return the open slots of each pod set for which nodes are missing: all independent pods, else the minimum."""
    if gang.independent:
        return {name: len(slots) for name, slots in gang.open_slots().items()}
    return minimum_wanted(gang)


def _minimum_wanted(gang: GangView) -> dict[str, int]:
    wanted = {pod_set.name: 0 for pod_set in gang.pod_sets}
    slots, floor = gang.open_slots(), gang.floor
    left = 1 if gang.independent else floor.min_member - gang.taken
    for pod_set in gang.pod_sets:
        missing = max(0, floor.min_task_member.get(pod_set.name, 0) - len(pod_set.taken))
        wanted[pod_set.name] = min(missing, len(slots[pod_set.name]))
        left -= wanted[pod_set.name]
    for pod_set in gang.pod_sets:
        more = max(0, min(left, len(slots[pod_set.name]) - wanted[pod_set.name]))
        wanted[pod_set.name] += more
        left -= more
    return wanted


def chosen_ranks(session: Session, gang: GangView, wanted: Mapping[str, int]) -> dict[str, list[int]]:
    """Return the open slots of each pod set that are filled if so many of them are wanted."""
    slots = gang.open_slots()
    return {
        pod_set.name: first_ranks(session, gang, pod_set, slots[pod_set.name], wanted[pod_set.name])
        for pod_set in gang.pod_sets
    }


def first_ranks(session: Session, gang: GangView, pod_set: PodSetView, ranks: Sequence[int], count: int) -> list[int]:
    """Return at least so many of these ranks: whole sub-groups or slices, and pods in the task order."""
    chosen: list[int] = []
    whole = united(gang, pod_set)
    for unit in session.ordered_sub_groups(gang, pod_set, in_task_order(session, gang, pod_set, ranks)):
        if len(chosen) >= count:
            break
        chosen += unit if whole else unit[:1]
    return sorted(chosen)


def in_task_order(session: Session, gang: GangView, pod_set: PodSetView, ranks: Sequence[int]) -> Sequence[int]:
    """Return ranks in the plugins' task order where all of them have pods and are placed singly; else as they are."""
    if united(gang, pod_set) or not all(rank in pod_set.waiting for rank in ranks):
        return ranks

    def compare(left: int, right: int) -> int:
        return session.hooks.task_order.call(pod_set.waiting[left], pod_set.waiting[right]) or left - right

    return sorted(ranks, key=cmp_to_key(compare))


def minimum_amounts(session: Session, gang: GangView) -> Amounts:
    """Return the amounts that a gang lacks of its minimum, read-only.

    All but those of shared claims are kept until the view or the axis is made anew.
    """
    axis = session.snapshot.axis
    if gang.least is None or gang.least[0] is not axis:
        members = members_of(session, gang, minimum_wanted(gang))
        gang.least = axis, (amounts_of_members(session.snapshot, gang, members), named_claims(members))
    amounts, claims = cast("tuple[Amounts, list[SharedClaim]]", gang.least[1])
    return amounts + amounts_of_claims(session.snapshot, session.claims.new(claims, gang.queue)) if claims else amounts


def members_of(session: Session, gang: GangView, wanted: Mapping[str, int]) -> dict[str, dict[PodClass, int]]:
    """Return by pod set the classes of so many members, with the number of each: of those that are chosen first.

    Pods of one set may be unlike, and of a sub-group all are chosen or none.
    """
    slots = gang.open_slots()
    found = {}
    for pod_set in gang.pod_sets:
        count = wanted.get(pod_set.name, 0)
        alike = not pod_set.mixed and not united(gang, pod_set)
        ranks = range(count) if alike else first_ranks(session, gang, pod_set, slots[pod_set.name], count)
        found[pod_set.name] = pod_set.classes_of(ranks)
    return found


def amounts_of(session: Session, gang: GangView, wanted: Mapping[str, int]) -> Amounts:
    """Return the sum of so many members of each pod set, as `amounts_with_claims`."""
    return amounts_with_claims(session, gang, members_of(session, gang, wanted))


def amounts_with_claims(session: Session, gang: GangView, members: Mapping[str, Mapping[PodClass, int]]) -> Amounts:
    """Return the sum of so many members of each class, by pod set, int64 of shape (resources,).

    The devices of a claim that they share count once, and not at all if others of their queue use it.
    """
    claims = session.claims.new(named_claims(members), gang.queue)
    return amounts_of_members(session.snapshot, gang, members) + amounts_of_claims(session.snapshot, claims)


def named_claims(members: Mapping[str, Mapping[PodClass, int]]) -> list[SharedClaim]:
    """Return the claims that these members name, each once."""
    named = (cls.needs.named for classes in members.values() for cls, count in classes.items() if count)
    return list(dict.fromkeys(chain.from_iterable(named)))


def amounts_of_claims(snapshot: Snapshot, claims: Iterable[SharedClaim]) -> Amounts:
    """Return the devices that these claims take, as amounts, int64 of shape (resources,)."""
    total = np.zeros(snapshot.free.shape[0], dtype=np.int64)
    for claim in claims:
        total += row_along(snapshot.axis, len(total), dict(claim.rows))
    return total


def amounts_of_members(snapshot: Snapshot, gang: GangView, members: Mapping[str, Mapping[PodClass, int]]) -> Amounts:
    """Return the sum without shared claims; of unknown pods, the PodGroup's minResources."""
    total = np.zeros(snapshot.free.shape[0], dtype=np.int64)
    for classes in members.values():
        for cls, count in classes.items():
            total = np.minimum(total + times(snapshot.row_of(cls), count), MAX_SUM)
    known = any(pod_set.cls is not None for pod_set in gang.pod_sets)
    if not known and gang.group.spec.min_resources:
        try:
            return sum_along(snapshot.axis, len(total), vector(gang.group.spec.min_resources))
        except ValueError:  # admission refuses it; queues are compared by this, and one gang must not end the cycle
            return total
    return total


def shortage(
    session: Session, gang: GangView | None, pod_set: PodSetView, wanted: int, placed: int, *,
    kind: Wanted = "together", cls: PodClass | None = None,
) -> Shortage:  # fmt: skip
    """Count why `wanted` pods of this set do not all fit into the free room (kind `ever`: into the empty cluster).

    `cls` is the class of those that do not, where pods of the set are unlike.
    """
    cls, order = cls or pod_set.cls, session.snapshot.order
    if cls is None:
        return Shortage(pod_set.name, kind, wanted, placed, {}, len(order), 0, (), None)
    free = session.snapshot.allocatable if kind == "ever" else session.snapshot.free
    refused = np.zeros(len(order), dtype=np.int16) if kind == "ever" else _refused(session, gang, cls, wanted)[order]
    given = free if kind == "ever" else None
    scarce = session.scarce(cls, given)[order]
    room = session.room(cls, given, ports=kind != "ever")[order]
    causes = _causes(session, np.where(refused == 0, scarce, refused), np.where(refused == 0, 0, room))
    resource = _scarcest(session, cls, scarce[refused == 0])
    levels = _levels(session, cls, resource, free, order[(refused == 0) & (scarce != 0)])
    largest = session.room(cls, session.snapshot.allocatable)[order].max(initial=0)
    miss = NearestMiss(wanted - placed, resource, cls.requests.get(resource, 0), bool(largest <= 1), levels)
    roomy = int(np.count_nonzero((refused == 0) & (room > 0)))
    unseen = cls.needs.unseen
    there = len(pod_set.taken)
    return Shortage(
        pod_set.name, kind, wanted, placed, cls.requests, len(order), roomy, causes, miss, unseen, running=there
    )


def _refused(session: Session, gang: GangView | None, cls: PodClass, wanted: int) -> Codes:
    """Return the code of refusal per node; where a plugin or a claim refuses the pods as such, no node takes them."""
    reason = session.hooks.pre_predicate.call(gang, cls) if gang else ""
    if full := session.claims.full(cls, wanted):
        reason = reasons.devices.claim_too_full(claim=full, used=session.claims.of(full), most=MOST_PODS)
    codes = session.codes(cls, gang)
    return np.full_like(codes, session.causes.code(str(reason))) if reason else codes


def _causes(session: Session, codes: Codes, room: Amounts) -> tuple[Cause, ...]:
    """`codes` and `room` are in the order of the nodes' names."""
    found: dict[str, Cause] = {}
    for code in np.unique(codes[codes != 0]):
        places = np.flatnonzero(codes == code)
        examples = tuple(session.snapshot.name(int(session.snapshot.order[place])) for place in places[:EXAMPLES])
        words = session.causes.words[code]
        found[words] = Cause(words, len(places), int(np.count_nonzero(room[places] > 0)), examples)
    return tuple(sorted(found.values(), key=lambda cause: (-cause.nodes, cause.words)))


def _scarcest(session: Session, cls: PodClass, scarce: Codes) -> str:
    """Return the resource that most nodes lack, or else the one of which a pod takes the largest share."""
    codes, counts = np.unique(scarce[scarce != 0], return_counts=True)
    if len(codes):
        words = session.causes.words[codes[counts.argmax()]]
        found = next((name for name in cls.requests if reasons.cause.scarce(name) == words), "")
        return GPU if words == reasons.cause.GPU_PARTS else found
    totals = session.snapshot.allocatable.sum(axis=1)
    axis = session.snapshot.axis

    def share(name: str) -> float:
        return cls.requests[name] / max(float(totals[axis[name]]), 1.0) if name in axis else float(cls.requests[name])

    return max((name for name in cls.requests if name != PODS and cls.requests[name]), key=share, default="")


def _levels(session: Session, cls: PodClass, resource: str, free: Amounts, columns: Amounts) -> tuple[Level, ...]:
    position = session.snapshot.axis.get(resource)
    if position is None:
        return ()
    amounts = free[position, columns]
    near = amounts[(amounts > 0) & (amounts < cls.requests.get(resource, 0))]
    values, counts = np.unique(near, return_counts=True)
    return tuple(
        Level(int(value), int(count)) for value, count in list(zip(values, counts, strict=True))[: -LEVELS - 1 : -1]
    )
