"""The wants of one part of a gang as arrays: the room for each kind of its pods, and how many are needed."""

from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np

from extender.planner.framework.nodeset import NodeSet
from extender.planner.framework.session import Session
from extender.planner.state.amounts import Amounts
from extender.planner.state.gangs import GangView
from extender.planner.state.podclass import PodClass
from extender.planner.topology.fit import Wanted
from extender.planner.topology.forest import Forest, Reach
from extender.planner.topology.requests import Part
from extender.planner.topology.tree import Geometry, Mask
from muster.resources.topology import Slices

MOST_PER_NODE = 2**31
"""Pods that ask for nothing fit without end; sums over all nodes must stay exact."""


@dataclass(slots=True)
class Look:
    """Pods of one class."""

    cls: PodClass
    wanted: Wanted
    inside: list[tuple[int, int]] = field(default_factory=list)
    """Parts inside that need a domain of their own: its level, and the pods that it must hold."""

    def within(self, inside: Mask) -> None:
        """Leaves only these nodes."""
        self.wanted = replace(self.wanted, room=np.where(inside, self.wanted.room, 0))


def looks_of(
    session: Session,
    gang: GangView,
    part: Part,
    nodes: NodeSet,
    forest: Forest,
    reach: Reach,
    geometry: Geometry,
    *,
    ever: bool = False,
) -> list[Look]:
    """One look per class of pods, the one that needs most nodes first; `ever`: as if the cluster were empty."""
    pods: dict[bytes, tuple[PodClass, int]] = {}
    for pod_set in gang.pod_sets:
        ranks = part.slots.get(pod_set.name, ())
        if not pod_set.mixed and pod_set.cls is not None:
            if ranks:
                pods[pod_set.cls.key] = pod_set.cls, pods.get(pod_set.cls.key, (None, 0))[1] + len(ranks)
            continue
        for rank in ranks:
            cls = pod_set.class_of(rank)
            if cls is not None:
                pods[cls.key] = cls, pods.get(cls.key, (None, 0))[1] + 1
    looks = []
    slices = _sliced(part, forest, reach)
    for cls, count in pods.values():
        room = nodes.limit(_room(session, gang, cls, ever=ever))
        least = count if part.least is None else min(part.least, count)
        most = max(count, part.all_slots - (part.wanted - count))
        looks.append(Look(cls, Wanted(geometry, room, least, most, slices if len(pods) == 1 else ())))
    if len(looks) > 1:
        largest = [int(look.wanted.room.sum()) / look.wanted.least for look in looks]
        looks = [looks[place] for place in np.argsort(largest, kind="stable")]
    elif part.children and looks:
        looks[0].inside = _inside(part, forest, reach)
    return looks


def alone(session: Session, cls: PodClass) -> bool:
    """True if pods of this class do not mind where the others are, so that all can be placed at once."""
    return not session.snapshot.one_by_one(cls)


def _room(session: Session, gang: GangView, cls: PodClass, *, ever: bool) -> Amounts:
    if ever:
        room = session.room(cls, session.snapshot.allocatable, ports=False)
    else:
        room = np.where(session.codes(cls, gang) == 0, session.room(cls), 0)
    least: Amounts = np.minimum(room, MOST_PER_NODE)
    return least


def _sliced(part: Part, forest: Forest, reach: Reach) -> tuple[tuple[int, int], ...]:
    """Level and size of the slices that must be whole, of the part or of the only one in it."""
    while len(part.children) == 1 and not part.slices:
        part = part.children[0]
    if part.least is not None or not part.regular:
        return ()
    found = [level for each in part.slices if (level := _level(each, forest, reach)) is not None]
    nested = all(outer < inner for (outer, _), (inner, _) in pairwise(found))
    return tuple(found) if nested and len(found) == len(part.slices) else ()


def _level(slices: Slices, forest: Forest, reach: Reach) -> tuple[int, int] | None:
    found = forest.find(slices.near)
    if isinstance(found, Reach) and found.tree is reach.tree and found.hard:
        return found.outer, slices.size
    return None


def _inside(part: Part, forest: Forest, reach: Reach) -> list[tuple[int, int]]:
    found = []
    for child in part.children:
        own = forest.find(child.near) if child.near else None
        if isinstance(own, Reach) and own.tree is reach.tree and own.hard:
            found.append((own.outer, child.needed))
    return found
