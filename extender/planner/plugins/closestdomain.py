"""Which domain came closest to holding a gang that must be in one."""

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from extender.planner.framework.answers import ClosestDomain
from extender.planner.framework.nodeset import EVERYWHERE
from extender.planner.framework.session import Session
from extender.planner.plugins.domains import Look, looks_of
from extender.planner.reasons.topology import Closest
from extender.planner.state.amounts import Amounts
from extender.planner.state.gangs import GangView
from extender.planner.topology.fit import held
from extender.planner.topology.forest import Forest, Unknown
from extender.planner.topology.requests import Part, part_of, request_of
from extender.planner.topology.tree import Geometry, Tree

GeometryOf = Callable[[Session, Tree], Geometry]


def closest_domain(
    session: Session,
    forest: Forest,
    geometry_of: GeometryOf,
    gang: GangView,
    slots: Mapping[str, Sequence[int]],
    *,
    ever: bool = False,
) -> ClosestDomain | None:
    """The domain that came closest for the first part that finds none; of `ever`, were the cluster empty."""
    request = request_of(gang)
    if request is None or not request.required:
        return None
    there = {
        pod_set.name: {
            rank: session.snapshot.index[node] for rank, node in pod_set.taken.items() if node in session.snapshot.index
        }
        for pod_set in gang.pod_sets
    }
    found = [
        _closest_of(session, forest, geometry_of, gang, part, ever=ever) for part in _every(part_of(gang, slots, there))
    ]
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
    """Pods of the part that each domain of a level holds, by the kind that is worst off; those inside count whole."""
    shares = [held(look.wanted, level) * part.wanted // look.wanted.least for look in looks]
    counts: Amounts = np.minimum.reduce(shares)
    return counts


def _every(part: Part) -> Iterator[Part]:
    yield part
    for child in part.children:
        yield from _every(child)
    if part.slices:
        yield from _every(next(iter(part.units())))
