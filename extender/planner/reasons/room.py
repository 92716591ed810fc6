"""Why pods of one shape do not all find a place: causes, the nearest miss, and both in one sentence.

`planner.framework.demand` counts it. PodGroup conditions, `muster explain` and `muster simulate` all say it so. The
sentence changes only when one of its numbers does, so that it can stand in a condition.
"""

from typing import Literal

from msgspec import Struct

from extender.planner.reasons.cause import CORDONED
from extender.planner.reasons.grammar import be, many, verb
from extender.planner.reasons.topology import Closest
from muster.resources.vector import PODS, Vector
from muster.resources.words import amount_words

NO_ROOM = "NotEnoughResources"
"""Reason of a condition."""
Wanted = Literal["together", "extra", "ever"]
"""Pods that start together now; pods above the minimum; pods that would have to fit into the empty cluster."""


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
        who = " and ".join([self.pod_set, *self.alike])
        parts = [f"{who}: {self.need}", f"of {self.nodes} nodes: {self.lost}" if self.causes else ""]
        if not self.nodes:
            parts.append("the cluster has no nodes")
        left = f"kube-scheduler decides, not counted: {', '.join(self.unseen)}" if self.unseen else ""
        return "; ".join(part for part in [*parts, self.nearest, left] if part)

    @property
    def lost(self) -> str:
        """How many nodes are lost to which cause."""
        return ", ".join(f"{cause.nodes} {cause.words}" for cause in self.causes)

    @property
    def need(self) -> str:
        """What is wanted and how much of it there is."""
        pods = many(self.wanted, "pod")
        if self.kind == "ever":
            return f"{pods} must start together, but even an empty cluster has room for {self.placed} of them"
        if self.kind == "extra":
            return f"{pods} above the minimum {verb(self.wanted, 'wait')} for room"
        more = many(self.wanted, "more pod")
        return f"{more} must start together and {self.placed} of them {verb(self.placed, 'find')} a place"

    @property
    def nearest(self) -> str:
        """The nearest miss in words; empty if nothing is known."""
        if self.miss is None:
            return ""
        text = _missing(self.miss)
        near = [f"{level.nodes} {verb(level.nodes, 'hold')} {self._free(level)} free" for level in self.miss.levels]
        near += [f"{cause.roomy} {CORDONED}" for cause in self.causes if cause.roomy and cause.words == CORDONED]
        return f"{text} ({', '.join(near)})" if near else text

    def _free(self, level: Level) -> str:
        return amount_words(self.miss.resource, level.free) if self.miss else ""


UNTOLD = Shortage("", "together", 0, 0, {}, 0, 0, (), None)
"""Of a trial that failed and of which nobody is told."""


def _missing(miss: NearestMiss) -> str:
    amount, told = amount_words(miss.resource, miss.amount), miss.resource not in {"", PODS}
    if miss.whole_nodes and told:
        return f"{many(miss.pods, 'more node')} with {amount} free {miss.resource} {be(miss.pods)} needed"
    each = f" of {amount} {miss.resource}{' each' if miss.pods != 1 else ''}" if told else ""
    return f"room for {many(miss.pods, 'more pod')}{each} is needed"
