"""Topology-aware placement: yields the domains that can hold a part of a gang, the best domain first.

`planner.topology.requests` reads the requests, `planner.topology.forest` reads the levels from the configuration and
the cluster, and `planner.topology.fit` has the arithmetic. An action tries to place the pods in the first domain,
checking every predicate, and tries the next domain after a failure.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any, cast

import numpy as np
from cachetools import LRUCache

from extender.planner.framework.answers import NodeSet
from extender.planner.framework.registry import PlainPlugin, refuse_arguments
from extender.planner.framework.session import Session
from extender.planner.plugins.domains import Demand, TopologyDemands
from extender.planner.state.amounts import Amounts
from extender.planner.state.gangs import GangView
from extender.planner.topology.fit import Filling, Profile, Tie, WantedPods, best_first, held, whole
from extender.planner.topology.forest import WHOLE, Forest, LevelRange, Unknown
from extender.planner.topology.parts import SlotGroup
from extender.planner.topology.tree import DEFAULT, HYPER_NODES, Geometry

MIXED = "mixed"
PROFILES: dict[str, Profile | str] = {
    "best-fit": "best-fit",
    "least-free": "least-free",
    "balanced": "balanced",
    MIXED: MIXED,
    # KAI-Scheduler's and Kueue's names of the profiles
    "binpack": "best-fit",
    "BestFit": "best-fit",
    "LeastFreeCapacity": "least-free",
    "BalancedPlacement": "balanced",
    "Mixed": MIXED,
}
"""Maps a profile to its order of inner domains; `mixed` is best-fit, or least-free for unconstrained pods."""
MOST_LEVELS = 16
MOST_TOPOLOGIES = 64
SCORE_STEPS = 1000.0
"""Steps per point of a node's score, so that sums over the nodes of a domain are in thousandths of a point."""
MOST_SCORE = 1e6
"""Largest absolute score of a node, so that sums over the nodes of a domain do not overflow."""


class TopologyPlugin(PlainPlugin):
    """Plugin that splits node sets into domains, for gangs with a topology request.

    The arguments are `levels` (label keys, outermost first), `topologies` (levels by name) and `profile`.
    """

    name = "topology"

    def __init__(self, arguments: Mapping[str, Any]) -> None:
        refuse_arguments(self.name, arguments, ("levels", "topologies", "profile"))
        named = arguments.get("topologies") or {}
        if not isinstance(named, dict) or len(named) > MOST_TOPOLOGIES:
            raise ValueError(
                f"plugin 'topology': topologies must be at most {MOST_TOPOLOGIES} names, each with its levels; "
                f"it is {named!r}"
            )
        levels = {str(name): _levels(f"topologies[{name}]", keys) for name, keys in named.items()}
        if HYPER_NODES in levels:
            raise ValueError(f"plugin 'topology': topologies: {HYPER_NODES!r} is the name of the tree of HyperNodes")
        if "levels" in arguments:
            if DEFAULT in levels:
                raise ValueError(
                    f"plugin 'topology': topologies: {DEFAULT!r} is the name of the topology under `levels`"
                )
            levels[DEFAULT] = _levels("levels", arguments["levels"])
        profile = arguments.get("profile", MIXED)
        if profile not in PROFILES:
            raise ValueError(f"plugin 'topology': profile is {profile!r}; valid: {', '.join(PROFILES)}")
        self._profile = PROFILES[profile]
        self.forest = Forest(levels)
        self._geometries: LRUCache[int, Geometry] = LRUCache(16)
        """Maps the id of a tree to its geometry; trees are re-created when nodes change."""

    def on_session_open(self, session: Session) -> None:
        """Register functions that return node sets, the closest domain, and the trees of domains."""
        snapshot = session.snapshot
        self.forest.renew(
            snapshot.nodes,
            snapshot.changed,
            snapshot.generation,
            topologies=snapshot.topologies,
            hyper_nodes=session.hyper_nodes.tree if snapshot.hyper_nodes else None,
        )
        demands = TopologyDemands(session, self.forest, self._geometries)
        session.hooks.topologies.add(self.forest.trees)
        session.hooks.subset_nodes.add(partial(self._subsets, demands))
        session.hooks.closest_domain.add(demands.closest_domain)

    def _subsets(self, demands: TopologyDemands, nodes: NodeSet, gang: GangView, part: SlotGroup) -> Iterable[NodeSet]:
        if not part.near and not part.slices:
            return (nodes,)
        reach = self.forest.levels_near(part.near or part.slices[0].near)
        if isinstance(reach, Unknown):
            return () if reach.hard and part.near else (nodes,)
        by_class = demands.demands_of(gang, part, nodes, reach)
        if not by_class:
            return (nodes,)
        profile = self._profile
        if profile == MIXED:
            profile = "least-free" if part.near.anywhere else "best-fit"
        choice = DomainChoice(demands.session, nodes, part, by_class, reach, cast("Profile", profile))
        if not part.near:  # only the part's slices have a topology request
            ordered = nodes.ranked and not part.regular
            return (nodes if ordered else choice.filled(WHOLE, 0),)
        if part.unit and nodes.ranked and reach.hard and not part.columns:
            return choice.next()
        return choice.near()


@dataclass(frozen=True, slots=True, eq=False)
class DomainChoice:
    """The domains for one part of a gang, in the order in which they are tried."""

    session: Session
    nodes: NodeSet
    part: SlotGroup
    demands: list[Demand]
    reach: LevelRange
    profile: Profile

    def near(self) -> Iterator[NodeSet]:
        """Yield domains that can hold the part, members' domains first; then all nodes, if no domain is required."""
        there = np.array(self.part.columns, dtype=np.int64)
        if len(there):
            yield from self._with_members(there)
        ties = _ties(self.session, self.demands[0])
        for level in range(self.reach.inner, max(self.reach.outer, 0) - 1, -1):
            for domain in self._candidates(level, ties):
                if not len(there) or not (self.reach.tree.domain_of[level][there] == domain).any():
                    yield self.filled(level, domain)
        if not self.reach.hard:
            yield self.filled(WHOLE, 0)

    def next(self) -> Iterator[NodeSet]:
        """Yield domains with free capacity for a slice, in the order of the node set."""
        columns, outer, tree = cast("Amounts", self.nodes.columns), self.reach.outer, self.reach.tree
        of = tree.domain_of[outer]
        enough = np.append(held(self.demands[0].wanted, outer) >= self.part.needed, [False])
        for domain in dict.fromkeys(of[columns[enough[of[columns]]]].tolist()):
            name = tree.domains[outer][domain]
            yield NodeSet(columns[of[columns] == domain], ranked=True, along=self.nodes.along, name=name)

    def filled(self, level: int, domain: int) -> NodeSet:
        """Return one domain as a node set that contains the order in which the domain's nodes are filled."""
        demand, part = self.demands[0], self.part
        wanted, tree = demand.wanted, demand.wanted.geometry.tree
        inside = wanted.geometry.members(level, domain)
        name = tree.domains[level][domain] if level != WHOLE else self.nodes.name
        columns = np.flatnonzero(inside & np.logical_or.reduce([each.wanted.room > 0 for each in self.demands]))
        if part.children:
            return NodeSet(columns, along=wanted.geometry.places, name=name)
        sliced = bool(wanted.slices) and not self.session.snapshot.one_by_one(demand.cls)
        scores = self.session.scores(demand.cls)
        filling = Filling(
            wanted,
            self.profile if not wanted.slices or self.profile == "balanced" else "best-fit",
            scores if isinstance(scores, np.ndarray) else None,
            _ties(self.session, demand),
        )
        pods = min(wanted.most, part.wanted, held(wanted, level)[domain] if level != WHOLE else whole(wanted))
        ordered, numbers = filling.order(level, columns, int(pods))
        most = None
        if sliced or (self.profile == "balanced" and not part.slices):
            most = np.zeros_like(wanted.room)
            most[ordered] = numbers
        if not sliced:
            ordered = np.concatenate([ordered, _others(wanted, columns, ordered)])
        along, of = wanted.geometry.places, demand.cls.key if len(self.demands) > 1 else b""
        return NodeSet(ordered, ranked=True, along=along, most=most, most_of=of, sliced=sliced, name=name)

    def _with_members(self, there: Amounts) -> Iterator[NodeSet]:
        """Yield domains with placed members, the innermost level first; within a level, most members first.

        If a domain is required, domains without members are not yielded, because new pods must join the existing
        members. Members on nodes without a domain are ignored.
        """
        part, hard, tree = self.part, self.reach.hard, self.reach.tree
        if hard:
            outer = tree.domain_of[self.reach.outer]
            own = np.unique(outer[there])
            own = own[own >= 0]
            if len(own):
                inside = np.isin(outer, own)
                for demand in self.demands:
                    demand.wanted = replace(demand.wanted, room=np.where(inside, demand.wanted.room, 0))
        nearest = range(len(tree.levels) - 1, max(self.reach.outer, 0) - 1, -1)
        for (
            level
        ) in nearest:  # the levels that hold all members; for pods that may be placed singly, the widest level first
            yield from self._around(level, there, part.wanted)
        if part.least is not None and hard:
            for level in reversed(nearest):
                yield from self._around(level, there, part.least)

    def _around(self, level: int, there: Amounts, pods: int) -> Iterator[NodeSet]:
        """Yield domains of one level with members and capacity for `pods` pods, domains with most members first."""
        domains, counts = np.unique(self.reach.tree.domain_of[level][there], return_counts=True)
        fits = np.logical_and.reduce([held(each.wanted, level) >= min(pods, each.wanted.most) for each in self.demands])
        for domain in domains[np.argsort(-counts, kind="stable")]:
            if domain >= 0 and fits[domain]:
                yield self.filled(level, int(domain))

    def _candidates(self, level: int, ties: Sequence[Tie]) -> Iterator[int]:
        """Yield the domains of a level that can hold all classes of pods, the best domain for the first class first."""
        first, *others = self.demands
        tree = self.reach.tree
        fits = np.ones(len(tree.domains[level]), dtype=np.bool_)
        for demand in others:
            fits &= held(demand.wanted, level) >= demand.wanted.least
        for inner, need in first.inside:
            if inner > level:
                most = np.zeros(len(fits), dtype=np.int64)
                counts, at = held(first.wanted, inner), np.arange(len(tree.domains[inner]))
                for step in range(inner, level, -1):
                    at = np.where(at >= 0, tree.parents[step][at], -1)
                np.maximum.at(most, at[at >= 0], counts[at >= 0])
                fits &= most >= need
        order = (ties[1], None, ties[0]) if tree.name == HYPER_NODES else (None, *ties)  # as Volcano does
        return best_first(first.wanted, level, fits, profile=self.profile, order=order)


def _ties(session: Session, demand: Demand) -> Sequence[Tie]:
    """Return criteria for choosing among domains that can hold equally many pods: scores first, then free capacity."""
    return cache(partial(_disfavour, session, demand)), cache(partial(_left_over, session, demand))


def _disfavour(session: Session, demand: Demand) -> Amounts | None:
    """Return inverted node scores (low is good), multiplied by the number of pods on each node.

    The result is int64 of shape (nodes,), or None if no plugin distinguishes nodes.
    """
    scores = session.scores(demand.cls)
    if not isinstance(scores, np.ndarray):
        return None
    disfavour: Amounts = np.rint(-SCORE_STEPS * np.clip(scores, -MOST_SCORE, MOST_SCORE)).astype(np.int64)
    return disfavour * demand.wanted.room


def _left_over(session: Session, demand: Demand) -> Amounts | None:
    """Return each node's free amount of the resource of which a pod requests the largest fraction of the total."""
    row = session.snapshot.row_of(demand.cls)
    asked = np.flatnonzero(row)
    if not len(asked):
        return None
    free = session.usable()
    shares = [row[each] / max(float(free[each].sum()), 1.0) for each in asked]
    left: Amounts = free[asked[int(np.argmax(shares))]]
    return left


def _others(wanted: WantedPods, columns: Amounts, ordered: Amounts) -> Amounts:
    """Return a domain's nodes that are not filled, beginning with the neighbours of filled nodes."""
    chosen = np.zeros(len(wanted.room), dtype=np.bool_)
    chosen[ordered] = True
    left = columns[~chosen[columns]]
    if not len(wanted.geometry.tree.levels):
        return left[np.argsort(wanted.geometry.places[left], kind="stable")]
    inner = wanted.geometry.tree.domain_of[-1]
    beside = np.isin(inner[left], inner[ordered])
    return left[np.lexsort([wanted.geometry.places[left], ~beside])]


def _levels(where: str, value: object) -> tuple[str, ...]:
    if (
        not isinstance(value, list)
        or not 0 < len(value) <= MOST_LEVELS
        or not all(isinstance(key, str) and key for key in value)
        or len(set(value)) < len(value)
    ):
        raise ValueError(
            f"plugin 'topology': {where} must be a list of 1 to {MOST_LEVELS} different label keys, the outermost "
            f"first; it is {value!r}"
        )
    return tuple(value)
