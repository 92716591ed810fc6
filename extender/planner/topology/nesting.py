"""Builder of the tree of HyperNodes from their direct members, which also reports problems.

As in Volcano, a HyperNode has at most one parent, which has a higher tier. A HyperNode that several other HyperNodes
name as a member has no parent, but is still a domain. A node in two HyperNodes of one tier is in no domain of this tier
or of a lower tier. If a HyperNode is in several domains of the level above, its nodes are in no domain of its tier or
of a lower tier, either. The rest of the tree stays usable.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from extender.planner import reasons
from extender.planner.state.amounts import Amounts
from extender.planner.topology.members import HyperNodeMembers, Numbers
from extender.planner.topology.tree import HYPER_NODES, Domains, Tree
from muster.api.grammar import listed, some
from muster.api.limits import PLACES

MOST: Final = 8


@dataclass(frozen=True, slots=True)
class HyperNodeProblem:
    """A problem with a HyperNode: a machine-readable `reason`, and a `message` for users."""

    reason: str
    message: str


class Problems:
    """Problems with HyperNodes, keyed by HyperNode, without duplicates."""

    def __init__(self) -> None:
        self._found: dict[str, list[HyperNodeProblem]] = {}

    def add(self, hyper_node: str, reason: str, message: str) -> None:
        """Add a problem, unless the HyperNode already has this problem or has `MOST` problems."""
        found, problem = self._found.setdefault(hyper_node, []), HyperNodeProblem(reason, message)
        if problem not in found and len(found) < MOST:
            found.append(problem)

    def all(self) -> Mapping[str, tuple[HyperNodeProblem, ...]]:
        """Return the problems, keyed by HyperNode; HyperNodes without problems are left out."""
        return {name: tuple(found) for name, found in sorted(self._found.items())}


@dataclass(frozen=True, slots=True)
class Described:
    """A HyperNode whose spec contains no errors."""

    name: str
    tier: int
    tier_name: str
    members: HyperNodeMembers


NONE, SEVERAL = -1, -2
EXAMPLES = 3
"""Maximum number of nodes that a message about a problem with many nodes names."""
NOTED = 16
"""Maximum number of outer HyperNodes for which a problem with an inner HyperNode is also reported."""


@dataclass(frozen=True, slots=True, eq=False)
class Nesting:
    """Builder of the tree from numbered HyperNodes and their direct nodes."""

    described: Mapping[int, Described]
    numbers: Numbers
    """Indexes of HyperNodes; together with `columns`, these are pairs of a HyperNode and one of its direct nodes."""
    columns: Numbers
    size: int
    """Number of columns of the node table."""
    node_name: Callable[[int], str]
    problems: Problems
    """The problems that the builder finds."""
    tiers: tuple[int, ...] = field(init=False)
    """The tiers in use, highest first."""

    def __post_init__(self) -> None:
        tiers = sorted({each.tier for each in self.described.values()}, reverse=True)
        object.__setattr__(self, "tiers", tuple(tiers))

    def tree(self) -> Tree:
        """Build the tree of HyperNodes."""
        above = self._ancestors(self._parents())
        crowded = np.bincount(self.columns, minlength=self.size) > PLACES.value
        of_level = np.full((len(self.tiers), self.size), NONE, dtype=np.int32)
        for level, tier in enumerate(self.tiers):
            row = of_level[level]
            its = above[level][self.numbers]
            inside = its >= 0
            its, where = its[inside], self.columns[inside]
            row[where] = its
            clash = row[where] != its
            if clash.any():
                twice = np.zeros(self.size, dtype=np.bool_)
                twice[where[clash]] = True
                row[twice] = SEVERAL
                disputed = twice[where] & ~crowded[where]
                self._note_overlaps(tier, its[disputed], where[disputed])
        if crowded.any():
            of_level[:, crowded] = SEVERAL
            self._note_crowded(crowded)
        for level in range(len(of_level) - 2, -1, -1):  # a node without a domain uses the next lower domain
            np.copyto(of_level[level], of_level[level + 1], where=of_level[level] == NONE)
        self._keep_nested(of_level)
        return self._numbered(of_level)

    def _parents(self) -> dict[int, int]:
        """Return a mapping from a HyperNode's index to its parent's; HyperNodes without a parent are left out."""
        numbers = {each.name: number for number, each in self.described.items()}
        claims: dict[int, list[int]] = {}
        in_order = sorted(self.described.items(), key=lambda each: each[1].name)  # the order of the reported problems
        for number, parent in in_order:
            for name in parent.members.children:
                child = numbers.get(name)
                if child is None:
                    continue
                if self.described[child].tier < parent.tier:
                    claims.setdefault(child, []).append(number)
                else:
                    message = reasons.topology.tier_order(
                        child=name, child_tier=self.described[child].tier, parent=parent.name, parent_tier=parent.tier
                    )
                    self.problems.add(name, "TierOrder", message)
                    self.problems.add(parent.name, "TierOrder", message)
        for child, claimed in claims.items():
            if len(claimed) > 1:
                parents = sorted(self.described[each].name for each in claimed)
                message = reasons.topology.several_parents(name=self.described[child].name, parents=listed(parents))
                for name in (self.described[child].name, *parents):
                    self.problems.add(name, "SeveralParents", message)
        return {child: claimed[0] for child, claimed in claims.items() if len(claimed) == 1}

    def _ancestors(self, parents: Mapping[int, int]) -> Domains:
        """Return, for each tier, each HyperNode's ancestor or the HyperNode itself, int32 of shape (tiers, numbers)."""
        found: Domains = np.full((len(self.tiers), max(self.described, default=-1) + 1), -1, dtype=np.int32)
        level_of = {tier: level for level, tier in enumerate(self.tiers)}
        for number in sorted(self.described, key=lambda each: -self.described[each].tier):  # parents first
            if number in parents:
                found[:, number] = found[:, parents[number]]
            found[level_of[self.described[number].tier], number] = number
        return found

    def _keep_nested(self, of_level: Domains) -> None:
        """Remove domains that are not in exactly one domain of the level above, together with their inner domains."""
        unclear = np.zeros(of_level.shape[1], dtype=np.bool_)
        for level, row in enumerate(of_level):
            row[unclear] = NONE
            row[row < 0] = NONE
            if level:
                inside = np.flatnonzero(row >= 0)
                inner, outer = row[inside], of_level[level - 1][inside]
                parent = np.full(int(inner.max(initial=-1)) + 1, NONE, dtype=np.int32)
                parent[inner] = outer
                torn = np.unique(inner[parent[inner] != outer])
                for number in torn.tolist():
                    its = self.described[number]
                    over = sorted({self.described[each].name for each in np.unique(outer[inner == number]).tolist()})
                    message = reasons.topology.torn(
                        name=its.name, above=self.tiers[level - 1], parents=listed(over), tier=self.tiers[level]
                    )
                    for name in (its.name, *over[:NOTED]):
                        self.problems.add(name, "Torn", message)
                row[inside[np.isin(inner, torn)]] = NONE
            unclear = row < 0

    def _numbered(self, of_level: Domains) -> Tree:
        """Number the domains of each level.

        The domains of a level are the HyperNodes of its tier, with or without nodes, and HyperNodes of lower tiers that
        have no parent up to this tier.
        """
        by_name = sorted(self.described, key=lambda each: self.described[each].name)
        rank = np.zeros(max(self.described, default=-1) + 1, dtype=np.int32)
        rank[by_name] = np.arange(len(by_name), dtype=np.int32)
        domains = []
        domain_of = np.full_like(of_level, NONE)
        for level, row in enumerate(of_level):
            here = np.zeros(len(by_name), dtype=np.bool_)
            inside = row >= 0
            here[rank[row[inside]]] = True
            here[[rank[number] for number, each in self.described.items() if each.tier == self.tiers[level]]] = True
            place = np.cumsum(here, dtype=np.int32) - 1
            domain_of[level, inside] = place[rank[row[inside]]]
            domains.append(tuple(self.described[by_name[each]].name for each in np.flatnonzero(here).tolist()))
        levels = tuple(f"tier {tier}" for tier in self.tiers)
        return Tree(HYPER_NODES, levels, tuple(domains), domain_of, tiers=self.tiers, tier_names=self._tier_names())

    def _tier_names(self) -> tuple[str, ...]:
        """Return one name per tier, or an empty text; a name of several tiers belongs to the lowest of them."""
        users: dict[tuple[str, int], list[str]] = {}
        for each in self.described.values():
            if each.tier_name:
                users.setdefault((each.tier_name, each.tier), []).append(each.name)
        found: dict[int, str] = {}
        taken: dict[str, int] = {}
        for tier in reversed(self.tiers):
            mine = sorted(name for name, known in users if known == tier)
            free = [name for name in mine if name not in taken]
            found[tier] = min(free, key=lambda name: (-len(users[name, tier]), name)) if free else ""
            for name in mine:
                if name in taken:
                    why = reasons.topology.tier_name_taken(name=name, other=taken[name])
                elif name != found[tier]:
                    why = reasons.topology.tier_name_unused(tier=tier, known=found[tier], name=name)
                else:
                    continue
                for user in users[name, tier]:
                    self.problems.add(user, "TierName", why)
            if found[tier]:
                taken[found[tier]] = tier
        return tuple(found[tier] for tier in self.tiers)

    def _note_overlaps(self, tier: int, numbers: Numbers, columns: Numbers) -> None:
        """Report nodes in several HyperNodes of one tier as a problem with each of these HyperNodes."""
        width = int(numbers.max(initial=0)) + 1
        pairs = np.unique(columns.astype(np.int64) * width + numbers)  # by column
        where, whose = pairs // width, pairs % width
        starts, ends = np.searchsorted(where, where), np.searchsorted(where, where, side="right")
        for mine, rows in _grouped(whose):
            examples = []
            for row in rows[:EXAMPLES]:
                others = [self.described[each].name for each in whose[starts[row] : ends[row]].tolist() if each != mine]
                examples.append(f"{self.node_name(int(where[row]))} (in {listed(sorted(others))})")
            message = reasons.topology.overlap(tier=tier, nodes=some(examples, len(rows)))
            self.problems.add(self.described[mine].name, "Overlap", message)

    def _note_crowded(self, crowded: NDArray[np.bool_]) -> None:
        inside = crowded[self.columns]
        numbers, columns = self.numbers[inside], self.columns[inside]
        for number, rows in _grouped(numbers):
            its = columns[rows]
            names = [self.node_name(column) for column in its[:EXAMPLES].tolist()]
            message = reasons.topology.crowded(most=PLACES.value, limit=PLACES.name, nodes=some(names, len(its)))
            self.problems.add(self.described[number].name, "TooMany", message)


def _grouped(numbers: NDArray[Any]) -> Iterator[tuple[int, Amounts]]:
    """Yield each distinct number with the positions at which it occurs."""
    order = np.argsort(numbers, kind="stable")
    starts = np.flatnonzero(np.diff(numbers[order], prepend=-1)).tolist()
    for start, end in pairwise([*starts, len(order)]):
        yield int(numbers[order[start]]), order[start:end]
