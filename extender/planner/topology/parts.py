"""Parts of a gang that are placed together, as a tree.

An inner part is placed on nodes of its outer part, as in KAI-Scheduler's trees of sub-groups. `requests` reads the
gang's topology requests.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby

from extender.planner.state.gangs import GangView
from extender.planner.topology.requests import RequestKind, TopologyRequest
from muster.resources.topology import NOTHING, Nearness, Slices

Ranks = Collection[int] | None
"""Ranks of one pod set; None means all ranks of the pod set."""


@dataclass(frozen=True, slots=True, eq=False)
class SlotGroup:
    """A part of a gang: slots that are placed together."""

    name: str
    """Name of the part for users: empty for the whole gang, otherwise a name such as `worker` or `worker 8-15`."""
    slots: Mapping[str, Sequence[int]]
    """Maps a pod set to the ranks that are to be placed now."""
    members: Mapping[str, Ranks]
    """Maps a pod set to all ranks of the part."""
    near: Nearness = NOTHING
    children: tuple["SlotGroup", ...] = ()
    """Inner parts that together contain all slots to place; empty if the part has `slices` or has no inner parts."""
    slices: tuple[Slices, ...] = ()
    """Layers of slices (consecutive ranks that belong together), outermost first. Only parts with one pod set and
    without children have slices."""
    places: Mapping[int, int] | None = None
    """Maps a rank to its position in the part, from which slices are computed; None if each position equals its
    rank."""
    all_slots: int = 0
    """Number of all pods in the part, including pods above the minimum."""
    least: int | None = None
    """Number of slots that must be placed, because fewer slots would be useless; None means all slots."""
    unit: bool = False
    """True for a slice: one of several equal parts that are placed one after another."""
    there: Mapping[str, Mapping[int, int]] = field(default_factory=dict)
    """Maps a pod set and a rank of the whole gang to the column of the member's node."""

    @property
    def wanted(self) -> int:
        """Number of slots that are to be placed now."""
        return sum(map(len, self.slots.values()))

    @property
    def needed(self) -> int:
        """Number of slots that must be placed."""
        return self.wanted if self.least is None else self.least

    @property
    def asks(self) -> bool:
        """True if the part or an inner part has a topology request."""
        return bool(self.near or self.slices or self.children)

    @property
    def columns(self) -> list[int]:
        """Columns of the nodes on which members of the part are, one entry for each member."""
        found: list[int] = []
        for pod_set, placed in self.there.items():
            ranks = self.members.get(pod_set, ())
            found += [column for rank, column in placed.items() if ranks is None or rank in ranks]
        return found

    @property
    def regular(self) -> bool:
        """True if the slots to place are whole slices, which can be placed in one step."""
        if not self.slices or self.least is not None or len(self.slots) != 1:
            return False
        (ranks,) = self.slots.values()
        size = self.slices[0].size
        places = [self.places[rank] for rank in ranks] if self.places is not None else ranks
        if len(ranks) % size or any(size % inner.size for inner in self.slices[1:]):
            return False
        firsts = places[::size]
        return all(first % size == 0 for first in firsts) and all(
            last == first + size - 1 for first, last in zip(firsts, places[size - 1 :: size], strict=True)
        )

    def units(self) -> Iterator["SlotGroup"]:
        """Yield the slices that have slots to place; slices with placed members come first."""
        (pod_set, ranks), (outer, *inner) = next(iter(self.slots.items())), self.slices
        place = self.places.__getitem__ if self.places is not None else int
        at = None if self.places is None else {each: rank for rank, each in self.places.items()}
        units = []
        for number, group in groupby(ranks, key=lambda rank: place(rank) // outer.size):
            first, last = number * outer.size, (number + 1) * outer.size
            own: Collection[int] = range(first, last)
            if at is not None:
                own = frozenset(at[each] for each in own if each in at)
            name = f"{self.name} {first}-{last - 1}"
            slots = {pod_set: list(group)}
            parted: dict[str, Ranks] = {pod_set: own}
            units.append(
                replace(
                    self, name=name, slots=slots, members=parted, near=outer.near, slices=tuple(inner),
                    all_slots=outer.size, unit=True,
                )
            )  # fmt: skip
        yield from sorted(units, key=lambda unit: len(unit.slots[pod_set]) == outer.size)


class SlotsLeft:
    """Slots that do not belong to a part yet, in order.

    The cost of taking slots is proportional to the number of taken slots.
    """

    def __init__(self, slots: Mapping[str, Sequence[int]]) -> None:
        self._left = {name: {rank: place for place, rank in enumerate(ranks)} for name, ranks in slots.items()}

    def take_ranks(self, pod_set: str, ranks: frozenset[int] | None) -> list[int]:
        """Take and return these ranks (None: all ranks) of a pod set, except ranks that have already been taken."""
        left = self._left.get(pod_set, {})
        if ranks is None:
            taken = list(left)
            left.clear()
            return taken
        taken = sorted((rank for rank in ranks if rank in left), key=left.__getitem__)
        for rank in taken:
            del left[rank]
        return taken


def part_of(
    gang: GangView,
    request: TopologyRequest,
    slots: Mapping[str, Sequence[int]],
    there: Mapping[str, Mapping[int, int]] | None = None,
    *,
    least: int | None = None,
) -> SlotGroup:
    """Build the tree of a gang's parts from these open slots.

    `there` maps a pod set and a rank to the column of the member's node.
    """
    members: dict[str, Ranks] = {pod_set.name: None for pod_set in gang.pod_sets}
    everyone = sum(pod_set.replicas for pod_set in gang.pod_sets)
    root = SlotGroup("", slots, members, request.near, (), all_slots=everyone, least=least, there=there or {})
    if request.also:
        return replace(root, children=(_with_children(gang, request, replace(root, near=request.also)),))
    return _with_children(gang, request, root)


def _with_children(gang: GangView, request: TopologyRequest, root: SlotGroup) -> SlotGroup:
    children = _children(gang, request, root)
    if not any(child.asks for child in children):
        return root
    alone = children[0]
    if len(children) == 1 and not (root.near and alone.near):
        return replace(alone, near=alone.near or root.near)
    return replace(root, children=children)


def _children(gang: GangView, request: TopologyRequest, root: SlotGroup) -> tuple[SlotGroup, ...]:
    """Return the gang's parts: sub-groups by labels, then kinds of pods; kinds of one topology group share a part."""
    left = SlotsLeft(root.slots)
    replicas = {pod_set.name: pod_set.replicas for pod_set in gang.pod_sets}
    parts: list[SlotGroup] = []
    for name, near, members in request.sub_groups:
        own = {each: ranks for each, inside in members.items() if (ranks := left.take_ranks(each, inside))}
        if own:
            whole = sum(map(len, members.values()))
            part = replace(root, name=name, slots=own, members=members, near=near, all_slots=whole)
            inside = _kind_parts(request, part, SlotsLeft(own), replicas)
            parts.append(replace(part, children=inside) if any(each.asks for each in inside) else part)
    return (*parts, *_kind_parts(request, root, left, replicas))


def _kind_parts(
    request: TopologyRequest, root: SlotGroup, left: SlotsLeft, replicas: Mapping[str, int]
) -> tuple[SlotGroup, ...]:
    parts: list[SlotGroup] = []
    groups: dict[str, list[SlotGroup]] = {}
    kinds: dict[str, list[RequestKind]] = {}
    for kind in request.kinds:
        kinds.setdefault(kind.topology.group, []).append(kind)
        ranks = left.take_ranks(kind.pod_set, kind.ranks)
        if ranks:
            part = _kind_part(root, kind, ranks, replicas[kind.pod_set])
            (groups.setdefault(kind.topology.group, []) if kind.topology.group else parts).append(part)
    return (*parts, *(_group_part(root, name, kinds[name], own) for name, own in groups.items()))


def _kind_part(root: SlotGroup, kind: RequestKind, ranks: list[int], replicas: int) -> SlotGroup:
    members: dict[str, Ranks] = {kind.pod_set: kind.ranks}
    return replace(
        root,
        name=kind.topology.kind or kind.pod_set,
        slots={kind.pod_set: ranks},
        members=members,
        near=NOTHING if kind.topology.group else kind.topology.near,
        slices=tuple(each for each in kind.slices if each.size > 1),
        places=kind.places,
        all_slots=replicas if kind.ranks is None else len(kind.ranks),
    )


def _group_part(root: SlotGroup, name: str, kinds: list[RequestKind], children: list[SlotGroup]) -> SlotGroup:
    """Return the part of a topology group; a request of one kind of pods applies to all kinds of the group."""
    members: dict[str, Ranks] = {}
    for kind in kinds:
        known: Ranks = members.get(kind.pod_set, frozenset())
        members[kind.pod_set] = None if kind.ranks is None or known is None else {*known, *kind.ranks}
    slots: dict[str, list[int]] = {}
    for child in children:
        for pod_set, ranks in child.slots.items():
            slots.setdefault(pod_set, []).extend(ranks)
    everyone = sum(child.all_slots for child in children)
    nears = list(dict.fromkeys(kind.topology.near for kind in kinds if kind.topology.near)) or [NOTHING]
    part = replace(
        root, name=name, slots=slots, members=members, near=nears[-1], children=tuple(children), all_slots=everyone
    )
    for near in reversed(nears[:-1]):
        part = replace(part, near=near, children=(part,))
    return part
