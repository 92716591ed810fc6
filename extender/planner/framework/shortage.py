"""Why pods of one shape do not all find a place: causes, the nearest miss, and both in one sentence.

`shortage` counts it over the arrays of a session. PodGroup conditions, `muster explain` and `muster simulate` all say
it so. The sentence changes only when one of its numbers does, so that it can stand in a condition.
"""

from typing import Literal

import numpy as np
from msgspec import Struct

from extender.planner.framework.causes import GPU_PARTS, Codes, scarcity
from extender.planner.framework.closest import Closest
from extender.planner.framework.session import Session
from extender.planner.state.amounts import Amounts
from extender.planner.state.gangs import GangView
from extender.planner.state.podclass import PodClass
from extender.planner.state.podset import PodSetView
from muster.resources.vector import GPU, PODS, Vector
from muster.resources.words import amount_words

Wanted = Literal["together", "extra", "ever"]
"""Pods that start together now; pods above the minimum; pods that would have to fit into the empty cluster."""
CORDONED = "cordoned"
"""The one cause that an operator takes away with one command."""
EXAMPLES = 3
"""Nodes that are named for each cause."""
LEVELS = 2
"""How many amounts of free resources are told of nodes that nearly fit."""


class Cause(Struct, frozen=True, rename="camel"):
    """Nodes that are lost to one cause; every node counts once, for the first cause that it meets."""

    words: str
    nodes: int
    roomy: int
    """How many of them have room for a pod, so that nothing else keeps the pod out."""
    examples: tuple[str, ...]
    """The first of them, in natural order of their names."""


class Level(Struct, frozen=True, rename="camel"):
    """So many nodes have this much free of the scarce resource."""

    free: int
    nodes: int


class NearestMiss(Struct, frozen=True, rename="camel"):
    """What is missing, in terms of the resource that is scarcest."""

    pods: int
    """Pods that still lack a place."""
    resource: str
    """The scarcest resource; empty if room is not the question."""
    amount: int
    """What one pod needs of it, in milli-CPU or base units."""
    whole_nodes: bool
    """No node has room for more than one such pod, even when it is empty."""
    levels: tuple[Level, ...]
    """Nodes that come nearest: too little free, but not nothing; most first."""


class Shortage(Struct, frozen=True, rename="camel"):
    """One pod set that does not fit."""

    pod_set: str
    kind: Wanted
    wanted: int
    placed: int
    requests: Vector
    nodes: int
    roomy: int
    """Nodes that have room for at least one more pod of this shape."""
    causes: tuple[Cause, ...]
    """Most nodes first."""
    miss: NearestMiss | None
    unseen: tuple[str, ...] = ()
    """What of its claims to devices is not counted, in words: kube-scheduler decides it."""
    alike: tuple[str, ...] = ()
    """Other pod sets whose pods are of the same shape and are counted along."""
    closest: Closest | None = None
    """There are nodes enough, but no domain holds all who must be in one; this one came closest."""

    @property
    def message(self) -> str:
        """One sentence: what is needed, what there is, which causes cost how many nodes, and what is missing."""
        if self.closest is not None:
            ever = "; even were all nodes empty" if self.kind == "ever" and not self.closest.why else ""
            return f"{self.closest.message}{ever}"
        if self.miss is None:
            return f"{self.pod_set}: there is neither a pod nor a template that says what its pods need"
        listed = ", ".join(f"{cause.nodes} {cause.words}" for cause in self.causes)
        who = " and ".join([self.pod_set, *self.alike])
        parts = [f"{who}: {self.need}", f"of {self.nodes} nodes: {listed}" if listed else ""]
        if not self.nodes:
            parts.append("the cluster has no nodes")
        left = f"kube-scheduler decides, not counted: {', '.join(self.unseen)}" if self.unseen else ""
        return "; ".join(part for part in [*parts, self.nearest, left] if part)

    @property
    def need(self) -> str:
        """What is wanted and how much of it there is."""
        pods = "1 pod" if self.wanted == 1 else f"{self.wanted} pods"
        if self.kind == "ever":
            return f"{pods} must start together, but even an empty cluster has room for {self.placed} of them"
        if self.kind == "extra":
            return f"{pods} above the minimum {'waits' if self.wanted == 1 else 'wait'} for room"
        more = "1 more pod" if self.wanted == 1 else f"{self.wanted} more pods"
        return f"{more} must start together and {self.placed} of them {_verb(self.placed, 'find')} a place"

    @property
    def nearest(self) -> str:
        """The nearest miss in words; empty if nothing is known."""
        if self.miss is None:
            return ""
        text = _missing(self.miss)
        near = [f"{level.nodes} {_verb(level.nodes, 'hold')} {self._free(level)} free" for level in self.miss.levels]
        near += [f"{cause.roomy} {CORDONED}" for cause in self.causes if cause.roomy and cause.words == CORDONED]
        return f"{text} ({', '.join(near)})" if near else text

    def _free(self, level: Level) -> str:
        return amount_words(self.miss.resource, level.free) if self.miss else ""


UNTOLD = Shortage("", "together", 0, 0, {}, 0, 0, (), None)
"""Of a trial that failed and of which nobody is told."""


def shortage(
    session: Session,
    gang: GangView | None,
    pod_set: PodSetView,
    wanted: int,
    placed: int,
    *,
    kind: Wanted = "together",
) -> Shortage:
    """Counts why `wanted` pods of this set do not all fit into what is free now (`ever`: into the empty cluster)."""
    cls, order = pod_set.cls, session.snapshot.order
    if cls is None:
        return Shortage(pod_set.name, kind, wanted, placed, {}, len(order), 0, (), None)
    free = session.snapshot.allocatable if kind == "ever" else session.snapshot.free
    refused = np.zeros(len(order), dtype=np.int16) if kind == "ever" else _refused(session, gang, cls)[order]
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
    return Shortage(pod_set.name, kind, wanted, placed, cls.requests, len(order), roomy, causes, miss, unseen)


def _refused(session: Session, gang: GangView | None, cls: PodClass) -> Codes:
    """Per node, why it does not take the pod; where a plugin refuses the pod as such, no node does."""
    reason = session.hooks.pre_predicate.call(gang, cls) if gang else ""
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
    """The resource that most nodes lack; where no node lacks any, the one of which a pod takes the largest share."""
    codes, counts = np.unique(scarce[scarce != 0], return_counts=True)
    if len(codes):
        words = session.causes.words[codes[counts.argmax()]]
        return GPU if words == GPU_PARTS else next((name for name in cls.requests if scarcity(name) == words), "")
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


def _missing(miss: NearestMiss) -> str:
    many = miss.pods != 1
    amount = f"{amount_words(miss.resource, miss.amount)} {miss.resource}"
    if miss.whole_nodes and miss.resource not in {"", PODS}:
        nodes = f"{miss.pods} more nodes" if many else "1 more node"
        needed = amount.replace(" ", " free ", 1)
        return f"{nodes} with {needed} {'are' if many else 'is'} needed"
    pods = f"{miss.pods} more pods" if many else "1 more pod"
    each = f" of {amount}{' each' if many else ''}" if miss.resource not in {"", PODS} else ""
    return f"room for {pods}{each} is needed"


def _verb(count: int, verb: str) -> str:
    return f"{verb}s" if count == 1 else verb
