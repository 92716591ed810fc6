"""Demands of one part of a gang: the room for each class of its pods, and the domain closest to holding it."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from extender.planner.framework.answers import EVERYWHERE, ClosestDomain, NodeSet
from extender.planner.framework.session import Session
from extender.planner.reasons.topology import Closest
from extender.planner.state.amounts import Amounts
from extender.planner.state.gangs import GangView
from extender.planner.state.podclass import PodClass
from extender.planner.topology.fit import Wanted, held
from extender.planner.topology.forest import Forest, Reach, Unknown
from extender.planner.topology.parts import Part
from extender.planner.topology.tree import Geometry, Tree
from muster.resources.topology import Nearness

MOST_PER_NODE = 2**31
"""Limit for pods that ask for nothing; sums over all nodes must stay exact."""
GeometryOf = Callable[[Session, Tree], Geometry]


@dataclass(slots=True)
class Look:
    """The demand of pods of one class."""

    cls: PodClass
    wanted: Wanted
    inside: list[tuple[int, int]] = field(default_factory=list)
    """Parts inside that need a domain of their own: its level, and the pods that it must hold."""


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
    """Return a look per class of pods, the one that needs most nodes first; `ever`: as if the cluster were empty."""
    classes: dict[bytes, PodClass] = {}
    pods: Counter[bytes] = Counter()
    for pod_set in gang.pod_sets:
        ranks = part.slots.get(pod_set.name, ())
        uniform = bool(ranks) and pod_set.cls is not None and not pod_set.mixed
        for cls, count in ({pod_set.cls: len(ranks)} if uniform else Counter(map(pod_set.class_of, ranks))).items():
            if cls is not None:
                classes[cls.key] = cls
                pods[cls.key] += count
    looks = []
    slices = _sliced(part, forest, reach) if len(pods) == 1 else ()
    for key, count in pods.items():
        cls = classes[key]
        room = nodes.limit(_room(session, gang, cls, ever=ever))
        least = count if part.least is None else min(part.least, count)
        most = max(count, part.all_slots - (part.wanted - count))
        looks.append(Look(cls, Wanted(geometry, room, least, most, slices)))
    if len(looks) > 1:
        largest = [int(look.wanted.room.sum()) / look.wanted.least for look in looks]
        looks = [looks[place] for place in np.argsort(largest, kind="stable")]
    elif part.children and looks:
        inside = [(_level(child.near, forest, reach), child.needed) for child in part.children if child.near]
        looks[0].inside = [(level, needed) for level, needed in inside if level is not None]
    return looks


def _room(session: Session, gang: GangView, cls: PodClass, *, ever: bool) -> Amounts:
    if ever:
        room = session.room(cls, session.snapshot.allocatable, ports=False)
    else:
        room = np.where(session.codes(cls, gang) == 0, session.room(cls), 0)
    least: Amounts = np.minimum(room, MOST_PER_NODE)
    return least


def _sliced(part: Part, forest: Forest, reach: Reach) -> tuple[tuple[int, int], ...]:
    """Return level and size of the slices that must be whole, of the part or of the only one in it.

    Empty if there are none, or if they cannot all be kept whole in the part's own tree: then they are placed one after
    the other, each in the tree that has its level.
    """
    while len(part.children) == 1 and not part.slices:
        part = part.children[0]
    if part.least is not None or not part.regular:
        return ()
    found = [(level, each.size) for each in part.slices if (level := _level(each.near, forest, reach)) is not None]
    nested = all(outer < inner for (outer, _), (inner, _) in pairwise(found))
    return tuple(found) if nested and len(found) == len(part.slices) else ()


def _level(near: Nearness, forest: Forest, reach: Reach) -> int | None:
    """Return the required level in the same tree; None without one. A tree that has it comes before others that do."""
    found = forest.within(near, reach.tree)
    return found.outer if isinstance(found, Reach) and found.tree is reach.tree and found.hard else None


def closest_domain(
    session: Session,
    forest: Forest,
    geometry_of: GeometryOf,
    gang: GangView,
    slots: Mapping[str, Sequence[int]],
    *,
    ever: bool = False,
) -> ClosestDomain | None:
    """Return the closest domain for the first part that finds none; with `ever`, were the cluster empty."""
    ask = session.ask(gang)
    if ask.request is None or not ask.request.required:
        return None
    there = {
        pod_set.name: {
            rank: session.snapshot.index[node] for rank, node in pod_set.taken.items() if node in session.snapshot.index
        }
        for pod_set in gang.pod_sets
    }
    parts = _every(ask.part(slots, there))
    found = [_closest_of(session, forest, geometry_of, gang, part, ever=ever) for part in parts]
    known = [each for each in found if each is not None]
    lacking = [each for each in known if each.said.why or each.said.held < each.said.wanted]
    return next(iter(lacking), None if ever else next(iter(known), None))


def _closest_of(
    session: Session, forest: Forest, geometry_of: GeometryOf, gang: GangView, part: Part, *, ever: bool
) -> ClosestDomain | None:
    if part.near.required is None:
        return None
    reach = forest.find(part.near)
    nothing = np.zeros(len(session.snapshot.nodes), dtype=np.bool_)
    if isinstance(reach, Unknown):
        said = Closest(part.name, part.near.topology, "", "", 0, part.wanted, 0, reach.why)
        return ClosestDomain(said, nothing)
    if not reach.hard:
        return None
    geometry = geometry_of(session, reach.tree)
    looks = looks_of(session, gang, part, EVERYWHERE, forest, reach, geometry, ever=ever)
    if not looks:
        return None
    counts = _pods_held(looks, part, reach.outer)
    some = np.unique(reach.tree.domain_of[reach.outer])
    some = some[some >= 0]
    there = reach.tree.domain_of[reach.outer][np.array(part.columns, dtype=np.int64)]
    own = np.intersect1d(some, there)
    candidates = own if len(own) and not ever else some
    if not len(candidates):
        said = Closest(part.name, reach.tree.name, reach.words, "", 0, part.wanted, 0)
        return ClosestDomain(said, nothing)
    best = int(candidates[counts[candidates].argmax()])
    domain = reach.tree.domains[reach.outer][best]
    said = Closest(part.name, reach.tree.name, reach.words, domain, int(counts[best]), part.wanted, len(some))
    return ClosestDomain(said, geometry.members(reach.outer, best))


def _pods_held(looks: list[Look], part: Part, level: int) -> Amounts:
    """Return the pods of the part that each domain of a level holds, by the scarcest class."""
    counts: Amounts = np.minimum.reduce([held(each.wanted, level) * part.wanted // each.wanted.least for each in looks])
    return counts


def _every(part: Part) -> Iterator[Part]:
    yield part
    for child in part.children:
        yield from _every(child)
    if part.slices:
        yield from _every(next(iter(part.units())))
