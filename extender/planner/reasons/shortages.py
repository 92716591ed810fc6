"""Shortage of capacity for pods of one shape: the causes and the missing capacity, as data and as one sentence.

`planner.framework.shortage` computes a shortage; PodGroup conditions, `muster explain` and `muster simulate` show its
sentence.
"""

from typing import Literal

from msgspec import Struct

from extender.planner.reasons.cause import CORDONED, GPU_PARTS, NODE_AFFINITY, NODE_SELECTOR, SCARCE, TAINT
from extender.planner.reasons.topology import Closest
from muster.api.grammar import be, have, many, verb
from muster.api.muster.gang import DEFAULT_POD_SET
from muster.api.muster.reason import Reason, worded
from muster.resources.vector import PODS, Vector, amount_text

NO_ROOM = "no-room"
"""Code of the reason for too little free capacity; of a shortage, only the parameters in `Shortage.data` are stored."""

_OF_ROOM = frozenset({SCARCE, GPU_PARTS.code})
"""Codes of causes that mean a lack of capacity; other causes are, for example, taints and affinities."""
_OF_NODES = frozenset({NODE_SELECTOR.code, NODE_AFFINITY.code, TAINT, CORDONED.code})
"""Codes of causes that depend only on the node's own labels, taints and cordon."""
Wanted = Literal["together", "lost", "extra", "ever"]
"""The kind of pods that lack capacity: pods that start together, replacements of lost members, or pods above the
minimum. `ever` means that the pods would not fit even into an empty cluster."""


class Cause(Struct, frozen=True, rename="camel"):
    """A cause that excludes nodes, with the number of these nodes; each node counts only for its first cause."""

    words: str
    why: Reason
    nodes: int
    roomy: int
    """Number of excluded nodes that have free capacity for a pod."""
    examples: tuple[str, ...]
    """Names of the first excluded nodes, in natural order."""

    @property
    def counted(self) -> str:
        """The number of nodes and the cause, such as `1 has the taint gpu=yes` or `2 have the taint gpu=yes`."""
        first, _, rest = self.words.partition(" ")
        plural = {"has": "have", "does": "do", "lacks": "lack", "is": "are"}
        return f"{self.nodes} {first if self.nodes == 1 else plural.get(first, first)}{f' {rest}' if rest else ''}"


class Level(Struct, frozen=True, rename="camel"):
    """The number of nodes that have the same free amount of the scarcest resource."""

    free: int
    nodes: int


class NearestMiss(Struct, frozen=True, rename="camel"):
    """The capacity that the pods lack, as an amount of the scarcest resource."""

    pods: int
    resource: str
    """The scarcest resource; empty if the cause is not a lack of capacity."""
    amount: int
    """Amount of the scarcest resource that one pod requests, in milli-CPU or base units."""
    whole_nodes: bool
    """True if even an empty node holds at most one of these pods."""
    levels: tuple[Level, ...]
    """Nodes that have some but too little free capacity, grouped by the free amount, the largest amount first."""

    def each(self, pods: int) -> str:
        """Return the request of each of `pods` pods, such as ` of 8 nvidia.com/gpu each`.

        The result is empty if the scarcest resource is `pods`, or if the cause is not a lack of capacity.
        """
        if self.resource in {"", PODS}:
            return ""
        return f" of {amount_text(self.resource, self.amount)} {self.resource}{' each' if pods != 1 else ''}"

    @property
    def words(self) -> str:
        """The missing capacity as text."""
        if self.whole_nodes and self.resource not in {"", PODS}:
            amount = amount_text(self.resource, self.amount)
            return f"{many(self.pods, 'more node')} with {amount} free {self.resource} {be(self.pods)} needed"
        return f"room for {many(self.pods, 'more pod')}{self.each(self.pods)} is needed"


class Shortage(Struct, frozen=True, rename="camel"):
    """The shortage of capacity for a pod set that does not fit."""

    pod_set: str
    kind: Wanted
    wanted: int
    placed: int
    requests: Vector
    nodes: int
    roomy: int
    """Number of nodes with capacity for at least one more pod of this shape."""
    causes: tuple[Cause, ...]
    miss: NearestMiss | None
    unseen: tuple[str, ...] = ()
    """Demands of the pods' device claims that Muster does not count and only kube-scheduler checks."""
    alike: tuple[str, ...] = ()
    """Other pod sets whose pods have the same shape; the pods of these pod sets are counted, too."""
    closest: Closest | None = None
    """The closest domain, if enough nodes are free but no single domain can hold all pods that must share a domain."""
    running: int = 0
    """Number of pods of the pod set that are bound to nodes."""
    also: tuple[tuple[str, int], ...] = ()
    """Further resources that nodes lack, with the numbers of these nodes; a cause names only the first."""
    rest: tuple[tuple[str, int], ...] = ()
    """Pod sets that must start together with this pod set but were not tried, each with its number of pods. Pod sets of
    the same shape are listed in `alike`.
    """

    @property
    def message(self) -> str:
        """One sentence with the wanted pods, the nodes that each cause excludes, and the nearest miss."""
        if self.closest is not None:
            ever = "; even if all nodes were empty" if self.kind == "ever" and not self.closest.why else ""
            return f"{self.closest.message}{ever}"
        if self.miss is None:
            return f"{self.pod_set}: neither a pod nor a template shows what its pods need"
        parts = [f"{self._who}{self.need}", f"of {many(self.nodes, 'node')}: {self.lost}" if self.causes else ""]
        if not self.nodes:
            parts.append("the cluster has no nodes")
        parts += [f"{nodes} {verb(nodes, 'lack')} {name}, too" for name, nodes in self.also]
        parts += [f"{many(pods, 'pod')} of {name} {verb(pods, 'need')} room, too" for name, pods in self.rest]
        left = f"kube-scheduler decides, not counted: {', '.join(self.unseen)}" if self.unseen else ""
        near = self.nearest
        if self.kind == "together" and not self.miss.whole_nodes:
            near = f"nearest: {', '.join(self._levels)}" if self._levels else ""
        return "; ".join(part for part in [*parts, near, left] if part)

    @property
    def data(self) -> Reason:
        """The reason as stored for lists of gangs: the number of pods without a node, and the request of one pod."""
        miss, closest = self.miss, self.closest
        if closest and closest.why:
            return Reason(code=NO_ROOM, params={"kind": self.kind})
        asked = {"resource": miss.resource, "amount": miss.amount} if miss else {}
        near = {"level": closest.level, "pods": closest.wanted} if closest else {}
        lost = {"lost": self.lost} if self.unsuitable else {}
        return Reason(code=NO_ROOM, params={"kind": self.kind, "pods": self.wanted, **asked, **near, **lost})

    @property
    def unsuitable(self) -> bool:
        """True if labels, taints or cordons exclude every node, so that free capacity does not matter."""
        return bool(self.causes) and all(each.why.code in _OF_NODES for each in self.causes)

    @property
    def _who(self) -> str:
        """Names of the pod sets; empty if the gang's only pod set has the default name."""
        sets = [self.pod_set, *self.alike]
        return "" if sets == [DEFAULT_POD_SET] else f"{' and '.join(sets)}: "

    @property
    def lost(self) -> str:
        """The numbers of nodes that each cause excludes, as text."""
        return ", ".join(cause.counted for cause in self.causes)

    @property
    def need(self) -> str:
        """The numbers of wanted pods and of pods that fit, as text."""
        pods = many(self.wanted, "pod")
        if self.kind == "ever":
            return f"{pods} must start together, but even an empty cluster has room for {self.placed} of them"
        if self.kind == "extra":
            there = f"{self.running} of {many(self.running + self.wanted, 'pod')} {have(self.running)} a node"
            return f"{there}; {self.wanted} more {verb(self.wanted, 'wait')} for room"
        if self.kind == "lost":
            return f"{pods} that the gang has lost {verb(self.wanted, 'wait')} for room"
        fit = f"{self.placed or 'none'} {verb(max(1, self.placed), 'fit')} now"
        missing = f"room is missing for {pods}{self.miss.each(self.wanted) if self.miss else ''}"
        return missing if self.wanted == 1 else f"{missing}: {fit}"

    @property
    def nearest(self) -> str:
        """The missing capacity as text; empty if unknown. Missing capacity is named only if a node lacks capacity."""
        if self.miss is None:
            return ""
        lacks_room = self.roomy or not self.causes or any(each.why.code in _OF_ROOM for each in self.causes)
        if not (lacks_room or self.miss.whole_nodes):
            return ", ".join(self._levels)
        return self.miss.words + (f" ({', '.join(self._levels)})" if self._levels else "")

    @property
    def _levels(self) -> list[str]:
        """Descriptions of nodes that nearly have enough capacity."""
        miss = self.miss
        if miss is None:
            return []
        near = [
            f"{level.nodes} {verb(level.nodes, 'hold')} {amount_text(miss.resource, level.free)} free"
            for level in miss.levels
        ]
        return near + [f"{cause.roomy} {CORDONED}" for cause in self.causes if cause.roomy and cause.why == CORDONED]


@worded(NO_ROOM)
def no_room(lacks: Shortage) -> str:
    """There is too little free capacity for the gang."""
    return lacks.message


UNTOLD = Shortage("", "together", 0, 0, {}, 0, 0, (), None)
"""Placeholder for the shortage of a failed trial whose shortage is not reported."""
