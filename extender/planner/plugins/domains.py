"""Demand of one part of a gang per pod class, and the domain that comes closest to holding the part."""

from collections import Counter
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from extender.planner.framework.answers import EVERYWHERE, ClosestDomain, NodeSet
from extender.planner.framework.session import Session
from extender.planner.reasons.topology import Closest
from extender.planner.state.amounts import Amounts
from extender.planner.state.gangs import GangView
from extender.planner.state.podclass import PodClass
from extender.planner.topology.fit import WantedPods, held
from extender.planner.topology.forest import Forest, LevelRange, Unknown
from extender.planner.topology.parts import SlotGroup
from extender.planner.topology.tree import Geometry, Tree
from muster.resources.topology import Nearness

MOST_PER_NODE = 2**31
"""Maximum number of pods counted on one node. The limit keeps sums over all nodes exact for pods without requests."""


@dataclass(slots=True)
class Demand:
    """The demand of the pods of one class in one part of a gang."""

    cls: PodClass
    wanted: WantedPods
    inside: list[tuple[int, int]] = field(default_factory=list)
    """Level and number of pods of each inner part that needs a domain of its own."""


@dataclass(frozen=True, slots=True, eq=False)
class TopologyDemands:
    """The demands of one session's gangs in the trees of a cluster."""

    session: Session
    forest: Forest
    geometries: MutableMapping[int, Geometry]
    """Maps the id of a tree to its geometry; trees are re-created when nodes change."""

    def demands_of(
        self, gang: GangView, part: SlotGroup, nodes: NodeSet, reach: LevelRange, *, ever: bool = False
    ) -> list[Demand]:
        """Return a part's demand per pod class, the scarcest capacity first; with `ever`, for an empty cluster."""
        classes: Counter[PodClass] = Counter()
        for pod_set in gang.pod_sets:
            if ranks := part.slots.get(pod_set.name):
                classes.update(pod_set.classes_of(ranks))
        geometry = self._geometry(reach.tree)
        slices = self._sliced(part, reach) if len(classes) == 1 else ()
        demands = []
        for cls, count in classes.items():
            room = nodes.limit(self._room(gang, cls, ever=ever), cls)
            least = count if part.least is None else min(part.least, count)
            most = max(count, part.all_slots - (part.wanted - count))
            demands.append(Demand(cls, WantedPods(geometry, room, least, most, slices)))
        if len(demands) > 1:
            demands.sort(key=lambda demand: int(demand.wanted.room.sum()) / demand.wanted.least)
        elif part.children and demands:
            inside = [(self._level(child.near, reach), child.needed) for child in part.children if child.near]
            demands[0].inside = [(level, needed) for level, needed in inside if level is not None]
        return demands

    def _room(self, gang: GangView, cls: PodClass, *, ever: bool) -> Amounts:
        if ever:
            room = self.session.room(cls, self.session.snapshot.allocatable, ports=False)
        else:
            room = np.where(self.session.codes(cls, gang) == 0, self.session.room(cls), 0)
        least: Amounts = np.minimum(room, MOST_PER_NODE)
        return least

    def _sliced(self, part: SlotGroup, reach: LevelRange) -> tuple[tuple[int, int], ...]:
        """Return the level and size of slices that must not be divided, in the part or in its only inner part.

        The result is empty if the part has no slices, or if the part's own tree cannot keep all slices undivided. If
        the tree cannot keep slices undivided, they are placed one after the other, each in the tree that has the
        slice's level.
        """
        while len(part.children) == 1 and not part.slices:
            part = part.children[0]
        if not part.regular:
            return ()
        found = [(level, each.size) for each in part.slices if (level := self._level(each.near, reach)) is not None]
        nested = all(outer < inner for (outer, _), (inner, _) in pairwise(found))
        return tuple(found) if nested and len(found) == len(part.slices) else ()

    def _level(self, near: Nearness, reach: LevelRange) -> int | None:
        """Return the required level in the part's tree, preferably one that has it; None without a required level."""
        found = self.forest.within(near, reach.tree)
        return found.outer if isinstance(found, LevelRange) and found.tree is reach.tree and found.hard else None

    def _geometry(self, tree: Tree) -> Geometry:
        known = self.geometries.get(id(tree))
        if known is None or known.tree is not tree:
            known = self.geometries[id(tree)] = Geometry(tree, self.session.snapshot.order)
        return known

    def closest_domain(
        self, gang: GangView, slots: Mapping[str, Sequence[int]], *, ever: bool = False
    ) -> ClosestDomain | None:
        """Return the closest domain for the first part that fits into no domain; with `ever`, for an empty cluster."""
        ask = self.session.ask(gang)
        if ask.request is None or not ask.request.required:
            return None
        whole = ask.part(slots, self.session.snapshot.members_of(gang))
        found = [self._closest_of(gang, part, ever=ever) for part in _every(whole)]
        known = [each for each in found if each is not None]
        lacking = [each for each in known if each.report.why or each.report.held < each.report.wanted]
        return next(iter(lacking), None if ever else next(iter(known), None))

    def _closest_of(self, gang: GangView, part: SlotGroup, *, ever: bool) -> ClosestDomain | None:
        if part.near.required is None:
            return None
        reach = self.forest.levels_near(part.near)
        nothing = np.zeros(len(self.session.snapshot.nodes), dtype=np.bool_)
        if isinstance(reach, Unknown):
            report = Closest(part.name, part.near.topology, "", "", 0, part.wanted, 0, reach.why)
            return ClosestDomain(report, nothing)
        demands = self.demands_of(gang, part, EVERYWHERE, reach, ever=ever) if reach.hard else []
        if not demands:
            return None
        of = reach.tree.domain_of[reach.outer]
        some = np.unique(of[of >= 0])
        own = np.intersect1d(some, of[np.array(part.columns, dtype=np.int64)])
        candidates = own if len(own) and not ever else some
        if not len(candidates):
            report = Closest(part.name, reach.tree.name, reach.words, "", 0, part.wanted, 0)
            return ClosestDomain(report, nothing)
        by_class = [held(each.wanted, reach.outer) * part.wanted // each.wanted.least for each in demands]
        counts = np.minimum.reduce(by_class)  # the class with the least capacity decides
        best = int(candidates[counts[candidates].argmax()])
        domain = reach.tree.domains[reach.outer][best]
        report = Closest(part.name, reach.tree.name, reach.words, domain, int(counts[best]), part.wanted, len(some))
        return ClosestDomain(report, of == best)


def _every(part: SlotGroup) -> Iterator[SlotGroup]:
    yield part
    for child in part.children:
        yield from _every(child)
    if part.slices:
        yield from _every(next(iter(part.units())))
