"""Shortage of room for pods of one shape: causes, the nearest miss, and both in one sentence.

`planner.framework.shortage` counts it; PodGroup conditions, `muster explain` and `muster simulate` have the sentence.
"""

from typing import Literal

from msgspec import Struct

from extender.planner.reasons.cause import CORDONED, GPU_PARTS, SCARCE
from extender.planner.reasons.topology import Closest
from muster.api.grammar import be, have, many, verb
from muster.api.muster.gang import DEFAULT_POD_SET
from muster.api.muster.reason import Reason, worded
from muster.resources.vector import PODS, Vector, amount_text

NO_ROOM = "no-room"
"""Code of the reason; what is stored of it are the parameters of `Shortage.data`."""

_OF_ROOM = frozenset({SCARCE, GPU_PARTS.code})
"""Codes of causes that are a lack of room; others are for example taints and affinities."""
Wanted = Literal["together", "lost", "extra", "ever"]
"""Pods that start together now; members that a gang which started has lost; pods above the minimum; pods that would
have to fit into the empty cluster."""


class Cause(Struct, frozen=True, rename="camel"):
    """Nodes that are lost to one cause; every node counts once, for the first cause that it meets."""

    words: str
    why: Reason
    nodes: int
    roomy: int
    """Those of them with room for a pod."""
    examples: tuple[str, ...]
    """Names of the first nodes, in natural order."""

    @property
    def counted(self) -> str:
        """The nodes and the cause: `1 has the taint gpu=yes`, `2 have the taint gpu=yes`."""
        first, _, rest = self.words.partition(" ")
        plural = {"has": "have", "does": "do", "lacks": "lack", "is": "are"}
        return f"{self.nodes} {first if self.nodes == 1 else plural.get(first, first)}{f' {rest}' if rest else ''}"


class Level(Struct, frozen=True, rename="camel"):
    """Nodes with the same free amount of the scarce resource."""

    free: int
    nodes: int


class NearestMiss(Struct, frozen=True, rename="camel"):
    """The missing room, in terms of the scarcest resource."""

    pods: int
    resource: str
    """The scarcest resource; empty if room is not the question."""
    amount: int
    """Request of one pod, in milli-CPU or base units."""
    whole_nodes: bool
    """No node has room for more than one such pod, even when it is empty."""
    levels: tuple[Level, ...]
    """Nodes with too little free, but not nothing; most first."""

    def each(self, pods: int) -> str:
        """Return the size of one of so many pods, ` of 8 nvidia.com/gpu each`; empty if room is not the question."""
        if self.resource in {"", PODS}:
            return ""
        return f" of {amount_text(self.resource, self.amount)} {self.resource}{' each' if pods != 1 else ''}"

    @property
    def words(self) -> str:
        """Return the need as text."""
        if self.whole_nodes and self.resource not in {"", PODS}:
            amount = amount_text(self.resource, self.amount)
            return f"{many(self.pods, 'more node')} with {amount} free {self.resource} {be(self.pods)} needed"
        return f"room for {many(self.pods, 'more pod')}{self.each(self.pods)} is needed"


class Shortage(Struct, frozen=True, rename="camel"):
    """A pod set that does not fit."""

    pod_set: str
    kind: Wanted
    wanted: int
    placed: int
    requests: Vector
    nodes: int
    roomy: int
    """Nodes that have room for at least one more pod of this shape."""
    causes: tuple[Cause, ...]
    miss: NearestMiss | None
    unseen: tuple[str, ...] = ()
    """Demands of its claims to devices that are not counted, in words: kube-scheduler decides them."""
    alike: tuple[str, ...] = ()
    """Other pod sets whose pods are of the same shape and are counted along."""
    closest: Closest | None = None
    """The domain that came closest, if there are nodes enough and no domain holds all pods that must be in one."""
    running: int = 0
    """Pods of the set that have a node."""

    @property
    def message(self) -> str:
        """One sentence: the need, the nodes lost to each cause, and the nearest miss."""
        if self.closest is not None:
            ever = "; even were all nodes empty" if self.kind == "ever" and not self.closest.why else ""
            return f"{self.closest.message}{ever}"
        if self.miss is None:
            return f"{self.pod_set}: there is neither a pod nor a template that says what its pods need"
        parts = [f"{self._who}{self.need}", f"of {many(self.nodes, 'node')}: {self.lost}" if self.causes else ""]
        if not self.nodes:
            parts.append("the cluster has no nodes")
        left = f"kube-scheduler decides, not counted: {', '.join(self.unseen)}" if self.unseen else ""
        near = self.nearest
        if self.kind == "together" and not self.miss.whole_nodes:
            near = f"nearest: {', '.join(self._levels)}" if self._levels else ""
        return "; ".join(part for part in [*parts, near, left] if part)

    @property
    def data(self) -> Reason:
        """Return the data for lists of gangs: the pods without room, and the request of one of them."""
        miss, closest = self.miss, self.closest
        if closest and closest.why:
            return Reason(code=NO_ROOM, params={"kind": self.kind})
        asked = {"resource": miss.resource, "amount": miss.amount} if miss else {}
        near = {"level": closest.level, "pods": closest.wanted} if closest else {}
        return Reason(code=NO_ROOM, params={"kind": self.kind, "pods": self.wanted, **asked, **near})

    @property
    def _who(self) -> str:
        """The pod sets, unless the gang has one without a name of its own."""
        sets = [self.pod_set, *self.alike]
        return "" if sets == [DEFAULT_POD_SET] else f"{' and '.join(sets)}: "

    @property
    def lost(self) -> str:
        """Nodes lost to each cause, in words."""
        return ", ".join(cause.counted for cause in self.causes)

    @property
    def need(self) -> str:
        """Pods that are wanted, and those of them that find room, in words."""
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
        """The nearest miss in words; empty if nothing is known, and without room if no node lacks it."""
        if self.miss is None:
            return ""
        lacks_room = self.roomy or not self.causes or any(each.why.code in _OF_ROOM for each in self.causes)
        if not (lacks_room or self.miss.whole_nodes):
            return ", ".join(self._levels)
        return self.miss.words + (f" ({', '.join(self._levels)})" if self._levels else "")

    @property
    def _levels(self) -> list[str]:
        """Nodes that nearly have room."""
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
    """Too little room is free."""
    return lacks.message


UNTOLD = Shortage("", "together", 0, 0, {}, 0, 0, (), None)
"""Of a failed trial that is not reported."""
