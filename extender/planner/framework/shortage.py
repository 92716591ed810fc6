"""Counts of the reasons why a pod set of a gang does not fit, as input for the messages in `reasons.shortages`."""

from collections.abc import Mapping, Sequence

import numpy as np
from msgspec import structs

from extender.planner import reasons
from extender.planner.framework.answers import Codes
from extender.planner.framework.session import Session
from extender.planner.reasons.shortages import Cause, Level, NearestMiss, Shortage, Wanted
from extender.planner.reasons.topology import Closest
from extender.planner.state.amounts import Amounts
from extender.planner.state.gangs import GangView
from extender.planner.state.podclass import PodClass
from extender.planner.state.podset import PodSetView
from muster.api.kubernetes.devices import MOST_PODS
from muster.api.muster.reason import Reason
from muster.resources.vector import GPU, PODS

EXAMPLES = 3
"""Maximum number of nodes that a message names as examples of each cause."""
LEVELS = 2
"""Maximum number of distinct free amounts in a message about nodes on which the pods nearly fit."""
_NO_POD = reasons.cause.scarce(PODS)


def shortage(
    session: Session, gang: GangView | None, pod_set: PodSetView, wanted: int, placed: int, *,
    kind: Wanted = "together", cls: PodClass | None = None, full: Codes | None = None,
) -> Shortage:  # fmt: skip
    """Count the reasons why not all `wanted` pods of a set fit; kind `ever` assumes an empty cluster.

    `cls` is the class of the pods that do not fit, if the set has pods of several classes. `full` contains the codes of
    `closed_nodes`, for nodes that can take a first pod but no further pods.
    """
    cls, order = cls or pod_set.cls, session.snapshot.order
    if cls is None:
        return Shortage(pod_set.name, kind, wanted, placed, {}, len(order), 0, (), None)
    free = session.snapshot.allocatable if kind == "ever" else session.snapshot.free
    refused = np.zeros(len(order), dtype=np.int16) if kind == "ever" else _refused(session, gang, cls, wanted)[order]
    given = free if kind == "ever" else None
    scarce = session.scarce(cls, given)[order]
    room = session.room(cls, given, ports=kind != "ever")[order]
    codes = np.where(refused == 0, scarce, refused)
    codes = codes if full is None else np.where(codes == 0, full[order], codes)
    causes = _causes(session, codes, np.where(refused == 0, 0, room))
    resource = _scarcest(session, cls, scarce[refused == 0])
    levels = _levels(session, cls, resource, free, order[(refused == 0) & (scarce != 0)])
    largest = session.room(cls, session.snapshot.allocatable)[order].max(initial=0)
    miss = NearestMiss(wanted - placed, resource, cls.requests.get(resource, 0), bool(largest <= 1), levels)
    roomy = int(np.count_nonzero((refused == 0) & (room > 0)))
    unseen = cls.needs.unseen
    there = len(pod_set.taken)
    return Shortage(
        pod_set.name, kind, wanted, placed, cls.requests, len(order), roomy, causes, miss, unseen, running=there,
        also=_also(session, cls, resource, free, order[(refused == 0) & (scarce != 0)]),
    )  # fmt: skip


def together(
    session: Session, gang: GangView, pod_sets: Sequence[PodSetView], slots: Mapping[str, Sequence[int]],
    pod_set: PodSetView, placed: int, *, cls: PodClass | None, full: Codes | None,
) -> Shortage:  # fmt: skip
    """Return the shortage of pod sets that must start together; `pod_set` is the first pod set that does not fit.

    Pod sets of the same pod class are counted together with `pod_set`; other later pod sets are only named.
    """
    same = {each.name for each in pod_sets if each is pod_set or each.cls is cls}
    before = [each.name for each in pod_sets[: pod_sets.index(pod_set)]]
    wanted = sum(len(slots[name]) for name in same)
    placed += sum(len(slots[name]) for name in before if name in same)
    return structs.replace(
        shortage(session, gang, pod_set, wanted, placed, cls=cls, full=full),
        alike=tuple(each.name for each in pod_sets if each.name in same - {pod_set.name}),
        rest=tuple((each.name, len(slots[each.name])) for each in pod_sets if each.name not in {*same, *before}),
    )


def near(
    session: Session, gang: GangView, slots: Mapping[str, Sequence[int]], closest: Closest, *, ever: bool = False
) -> Shortage:
    """Return the shortage in the closest domain, for a gang that fits into no domain of the required topology."""
    known = [each for each in gang.pod_sets if slots.get(each.name)]
    pod_set = next((each for each in known if closest.part.startswith(each.name)), known[0])
    wanted = sum(map(len, slots.values()))
    kind: Wanted = "ever" if ever else "together"
    lacks = shortage(session, gang, pod_set, wanted, min(closest.held, wanted), kind=kind)
    return structs.replace(lacks, closest=closest)


def lost(session: Session, gang: GangView, pod_set: PodSetView, slots: Mapping[str, Sequence[int]]) -> Shortage:
    """Return the shortage for the lost members of a gang, on all nodes or in the domain of its other members."""
    closest = session.hooks.closest_domain.call(gang, slots)
    lacks = shortage(session, gang, pod_set, len(slots[pod_set.name]), 0, kind="lost")
    if closest is None or not lacks.roomy or (closest.report.held >= closest.report.wanted and not closest.report.why):
        return lacks
    return structs.replace(lacks, closest=closest.report)


def closed_nodes(session: Session, gang: GangView, cls: PodClass) -> Codes:
    """Return, for each node, the code of the rule that excludes one more pod than the trial has placed there."""
    codes, position = session.codes(cls, gang), session.snapshot.axis.get(PODS)
    if position is None:
        return codes
    return np.where((codes == 0) & (session.snapshot.free[position] < 1), session.causes.code(_NO_POD), codes)


def _refused(session: Session, gang: GangView | None, cls: PodClass, wanted: int) -> Codes:
    """Return the code of the cause why each node refuses the pods; 0 for other nodes.

    If a plugin or a claim rejects the pods on every node, all nodes have the same code.
    """
    reason: Reason | str | None = session.hooks.pre_predicate.call(gang, cls) if gang else ""
    if full := session.claims.full(cls, wanted):
        reason = reasons.devices.claim_too_full(claim=full, used=session.claims.user_count(full), most=MOST_PODS)
    codes = session.codes(cls, gang)
    return np.full_like(codes, session.causes.code(reason)) if reason else codes


def _causes(session: Session, codes: Codes, capacities: Amounts) -> tuple[Cause, ...]:
    """Return the causes with their numbers of nodes; `codes` and `capacities` are in the order of node names."""
    found: dict[str, Cause] = {}
    for code in np.unique(codes[codes != 0]):
        places = np.flatnonzero(codes == code)
        examples = tuple(session.snapshot.name(int(session.snapshot.order[place])) for place in places[:EXAMPLES])
        why = session.causes.of[code]
        found[str(why)] = Cause(str(why), why, len(places), int(np.count_nonzero(capacities[places] > 0)), examples)
    return tuple(sorted(found.values(), key=lambda cause: (-cause.nodes, cause.words)))


def _scarcest(session: Session, cls: PodClass, scarce: Codes) -> str:
    """Return the resource that most nodes lack, or else the resource of which the pod requests the largest fraction."""
    codes, counts = np.unique(scarce[scarce != 0], return_counts=True)
    if len(codes):
        cause = session.causes.of[codes[counts.argmax()]]
        if cause == reasons.cause.GPU_PARTS:
            return GPU
        return str(cause.params["resource"]) if cause.code == reasons.cause.SCARCE else ""
    totals = session.snapshot.allocatable.sum(axis=1)
    axis = session.snapshot.axis

    def share(name: str) -> float:
        return cls.requests[name] / max(float(totals[axis[name]]), 1.0) if name in axis else float(cls.requests[name])

    return max((name for name in cls.requests if name != PODS and cls.requests[name]), key=share, default="")


def _also(session: Session, cls: PodClass, first: str, free: Amounts, columns: Amounts) -> tuple[tuple[str, int], ...]:
    """Return the resources other than `first` that these nodes lack, each with the number of nodes that lack it."""
    axis = session.snapshot.axis
    lacking = (
        (name, int(np.count_nonzero(free[axis[name], columns] < amount)))
        for name, amount in sorted(cls.requests.items())
        if name != first and name in axis
    )
    return tuple((name, nodes) for name, nodes in lacking if nodes)


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
