"""Counts why pods of one shape do not all find a place, over the arrays of a session."""

import numpy as np

from extender.framework.hooks import Codes, scarcity
from extender.framework.session import Session
from extender.framework.shortage import Cause, Level, NearestMiss, Shortage, Wanted
from extender.state.gangs import GangView, PodSetView
from extender.state.nodes import Amounts
from extender.state.podclass import PodClass
from muster.resources.vector import PODS

EXAMPLES = 3
"""Nodes that are named for each cause."""
LEVELS = 2
"""How many amounts of free resources are told of nodes that nearly fit."""


def shortage(
    session: Session,
    gang: GangView | None,
    pod_set: PodSetView,
    wanted: int,
    placed: int,
    *,
    kind: Wanted = "together",
) -> Shortage:
    """Count why `wanted` pods of this set do not all fit into what is free now (`ever`: into the empty cluster)."""
    cls, order = pod_set.cls, session.snapshot.order
    if cls is None:
        return Shortage(pod_set.name, kind, wanted, placed, {}, len(order), 0, (), None)
    free = session.snapshot.allocatable if kind == "ever" else session.snapshot.free
    refused = (session.node_codes(cls) if kind == "ever" else session.codes(cls, gang))[order]
    scarce = session.scarce(cls, free)[order]
    room = session.room(cls, free)[order]
    causes = _causes(session, np.where(refused == 0, scarce, refused), np.where(refused == 0, 0, room))
    resource = _scarcest(session, cls, scarce[refused == 0])
    levels = _levels(session, cls, resource, free, order[(refused == 0) & (scarce != 0)])
    largest = session.room(cls, session.snapshot.allocatable)[order].max(initial=0)
    miss = NearestMiss(wanted - placed, resource, cls.requests.get(resource, 0), bool(largest <= 1), levels)
    roomy = int(np.count_nonzero((refused == 0) & (room > 0)))
    return Shortage(pod_set.name, kind, wanted, placed, cls.requests, len(order), roomy, causes, miss)


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
    """The resource that most nodes lack; where no node lacks any, the one of which a pod takes the largest share."""
    codes, counts = np.unique(scarce[scarce != 0], return_counts=True)
    if len(codes):
        words = session.causes.words[codes[counts.argmax()]]
        return next((name for name in cls.requests if scarcity(name) == words), "")
    totals = session.snapshot.allocatable.sum(axis=1)
    axis = session.snapshot.table.axis

    def share(name: str) -> float:
        position = axis.get(name, len(totals))
        return (
            cls.requests[name] / max(int(totals[position]), 1) if position < len(totals) else float(cls.requests[name])
        )

    return max((name for name in cls.requests if name != PODS and cls.requests[name]), key=share, default="")


def _levels(session: Session, cls: PodClass, resource: str, free: Amounts, columns: Amounts) -> tuple[Level, ...]:
    position = session.snapshot.table.axis.get(resource)
    if position is None or position >= free.shape[0]:
        return ()
    amounts = free[position, columns]
    near = amounts[(amounts > 0) & (amounts < cls.requests.get(resource, 0))]
    values, counts = np.unique(near, return_counts=True)
    return tuple(
        Level(int(value), int(count)) for value, count in list(zip(values, counts, strict=True))[: -LEVELS - 1 : -1]
    )
