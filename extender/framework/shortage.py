"""Why pods of one shape do not all find a place: causes, the nearest miss, and both in one sentence.

`extender.framework.counting` makes it. PodGroup conditions, `muster explain` and `muster simulate` all say it so. The
sentence changes only when one of its numbers does, so that it can stand in a condition.
"""

from typing import Literal

from msgspec import Struct

from muster.resources.vector import PODS, Vector
from muster.resources.words import amount_words

Wanted = Literal["together", "extra", "ever"]
"""Pods that start together now; pods above the minimum; pods that would have to fit into the empty cluster."""
CORDONED = "cordoned"
"""The one cause that an operator takes away with one command."""


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
    alike: tuple[str, ...] = ()
    """Other pod sets whose pods are of the same shape and are counted along."""

    @property
    def message(self) -> str:
        """One sentence: what is needed, what there is, which causes cost how many nodes, and what is missing."""
        if self.miss is None:
            return f"{self.pod_set}: there is neither a pod nor a template that says what its pods need"
        listed = ", ".join(f"{cause.nodes} {cause.words}" for cause in self.causes)
        who = " and ".join([self.pod_set, *self.alike])
        parts = [f"{who}: {self.need}", f"of {self.nodes} nodes: {listed}" if listed else ""]
        if not self.nodes:
            parts.append("the cluster has no nodes")
        return "; ".join(part for part in [*parts, self.nearest] if part)

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
