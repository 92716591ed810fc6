"""A gang as a tree of parts: the gang, its pod sets, groups of them and sub-groups, as far as they ask for a domain.

Each part is given nodes within those of the part around it (the trees of sub-groups of KAI-Scheduler). New members of
a part join those that have a node.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby

from muster.resources.topology import NOTHING, Nearness, Slices

Ranks = Collection[int] | None
"""Ranks of one pod set; None: all of them."""


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """Slots that are filled together."""

    name: str
    """For people: empty for the gang, else `worker`, or `worker 8-15`."""
    slots: Mapping[str, Sequence[int]]
    """Pod set → ranks to be placed now."""
    members: Mapping[str, Ranks]
    """Pod set → all ranks of the part."""
    near: Nearness = NOTHING
    children: tuple["Part", ...] = ()
    """Parts with slots to fill, together all slots of the part; empty above `slices` and at the bottom."""
    slices: tuple[Slices, ...] = ()
    """Consecutive ranks that belong together, outermost first; of parts with one pod set and without children."""
    places: Mapping[int, int] | None = None
    """Rank → its place in the part, by which slices count; None: ranks are places."""
    all_slots: int = 0
    """Pods of the part, whether they must start together or not."""
    least: int | None = None
    """Slots that must be filled for the rest to be of use; None: all of them."""
    unit: bool = False
    """It is a slice: one of several alike, which are placed one after the other."""
    there: Mapping[str, Mapping[int, int]] = field(default_factory=dict)
    """Of the whole gang: pod set → rank → column of the node that the member has."""

    @property
    def wanted(self) -> int:
        """Slots to fill."""
        return sum(map(len, self.slots.values()))

    @property
    def needed(self) -> int:
        """Slots that must be filled."""
        return self.wanted if self.least is None else self.least

    @property
    def columns(self) -> list[int]:
        """Columns of the nodes that members have, one for each member."""
        found: list[int] = []
        for pod_set, placed in self.there.items():
            ranks = self.members.get(pod_set, ())
            found += [column for rank, column in placed.items() if ranks is None or rank in ranks]
        return found

    @property
    def regular(self) -> bool:
        """True if the slots to fill are whole slices, which can be placed in one go."""
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

    def units(self) -> Iterator["Part"]:
        """Yield the slices that have slots to fill, those with placed members first."""
        (pod_set, ranks), (outer, *inner) = next(iter(self.slots.items())), self.slices
        place = self.places.__getitem__ if self.places is not None else int
        units = []
        for number, group in groupby(ranks, key=lambda rank: place(rank) // outer.size):
            first, last = number * outer.size, (number + 1) * outer.size
            own: Collection[int] = range(first, last)
            if self.places is not None:
                own = frozenset(rank for rank, at in self.places.items() if first <= at < last)
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
