"""The tree of HyperNodes from their direct members, and the problems found on the way.

As in Volcano a HyperNode has one parent at most, of a higher tier; where several name it as a member it has none, and
its nodes are still together. A node in two HyperNodes of one tier is in no domain of that tier and of those below.
Neither are the nodes of a HyperNode that lie in several domains of the level above. All else stays usable.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from extender.planner import reasons
from extender.planner.state.amounts import Amounts
from extender.planner.topology.members import Members, Numbers
from extender.planner.topology.tree import HYPER_NODES, Domains, Tree
from muster.api.grammar import listed, some
from muster.api.limits import PLACES

MOST: Final = 8


@dataclass(frozen=True, slots=True)
class Problem:
    """One problem of a HyperNode; `reason` is a word for machines, `message` a sentence."""

    reason: str
    message: str


class Problems:
    """Problems by HyperNode, each once."""

    def __init__(self) -> None:
        self._found: dict[str, list[Problem]] = {}

    def add(self, hyper_node: str, reason: str, message: str) -> None:
        """Keep a problem, unless the HyperNode has `MOST` already."""
        found, problem = self._found.setdefault(hyper_node, []), Problem(reason, message)
        if problem not in found and len(found) < MOST:
            found.append(problem)

    def all(self) -> Mapping[str, tuple[Problem, ...]]:
        """Return problems by name of the HyperNode; HyperNodes without any are left out."""
        return {name: tuple(found) for name, found in sorted(self._found.items())}


@dataclass(frozen=True, slots=True)
class Described:
    """A HyperNode that can be evaluated."""

    name: str
    tier: int
    tier_name: str
    members: Members


def parents_of(described: Mapping[int, Described], problems: Problems) -> dict[int, int]:
    """Return number of a HyperNode → number of its parent; those without one are left out."""
    numbers = {each.name: number for number, each in described.items()}
    claims: dict[int, list[int]] = {}
    in_order = sorted(described.items(), key=lambda each: each[1].name)  # problems are told in this order
    for number, parent in in_order:
        for name in parent.members.children:
            child = numbers.get(name)
            if child is None:
                continue
            if described[child].tier < parent.tier:
                claims.setdefault(child, []).append(number)
            else:
                message = reasons.topology.tier_order(
                    child=name, child_tier=described[child].tier, parent=parent.name, parent_tier=parent.tier
                )
                problems.add(name, "TierOrder", message)
                problems.add(parent.name, "TierOrder", message)
    for child, claimed in claims.items():
        if len(claimed) > 1:
            parents = sorted(described[each].name for each in claimed)
            message = reasons.topology.several_parents(name=described[child].name, parents=listed(parents))
            for name in (described[child].name, *parents):
                problems.add(name, "SeveralParents", message)
    return {child: claimed[0] for child, claimed in claims.items() if len(claimed) == 1}


def ancestors(described: Mapping[int, Described], parents: Mapping[int, int], tiers: tuple[int, ...]) -> Domains:
    """Return the ancestor of each HyperNode, or itself, of exactly each tier, int32 of shape (tiers, numbers)."""
    found: Domains = np.full((len(tiers), max(described, default=-1) + 1), -1, dtype=np.int32)
    level_of = {tier: level for level, tier in enumerate(tiers)}
    for number in sorted(described, key=lambda each: -described[each].tier):  # parents first
        if number in parents:
            found[:, number] = found[:, parents[number]]
        found[level_of[described[number].tier], number] = number
    return found


NONE, SEVERAL = -1, -2
EXAMPLES = 3
"""Nodes that are named where many have the same problem."""
TOLD = 16
"""Parents that a problem of a HyperNode is noted at."""


def nest(
    described: Mapping[int, Described],
    members: tuple[Numbers, Numbers],
    size: int,
    node_name: Callable[[int], str],
    problems: Problems,
) -> Tree:
    """Make the tree over `size` columns; `members` are pairs of numbers of HyperNodes and columns of direct nodes."""
    tiers = tuple(sorted({each.tier for each in described.values()}, reverse=True))
    above = ancestors(described, parents_of(described, problems), tiers)
    numbers, columns = members
    crowded = np.bincount(columns, minlength=size) > PLACES.value
    of_level = np.full((len(tiers), size), NONE, dtype=np.int32)
    for level, tier in enumerate(tiers):
        row = of_level[level]
        its = above[level][numbers]
        inside = its >= 0
        its, where = its[inside], columns[inside]
        row[where] = its
        clash = row[where] != its
        if clash.any():
            twice = np.zeros(size, dtype=np.bool_)
            twice[where[clash]] = True
            row[twice] = SEVERAL
            disputed = twice[where] & ~crowded[where]
            _tell_nodes(described, tier, its[disputed], where[disputed], node_name, problems)
    if crowded.any():
        of_level[:, crowded] = SEVERAL
        _tell_crowded(described, numbers, columns, crowded, node_name, problems)
    for level in range(len(of_level) - 2, -1, -1):  # a node of no HyperNode of a tier is in that of the next lower one
        np.copyto(of_level[level], of_level[level + 1], where=of_level[level] == NONE)
    _keep_nested(described, of_level, tiers, problems)
    return _numbered(described, of_level, tiers, problems)


def _keep_nested(
    described: Mapping[int, Described], of_level: Domains, tiers: tuple[int, ...], problems: Problems
) -> None:
    """Remove, level by level and with all below, domains that lie in no domain above or in several ones."""
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
                its = described[number]
                over = sorted({described[each].name for each in np.unique(outer[inner == number]).tolist()})
                message = reasons.topology.torn(
                    name=its.name, above=tiers[level - 1], parents=listed(over), tier=tiers[level]
                )
                for name in (its.name, *over[:TOLD]):
                    problems.add(name, "Torn", message)
            row[inside[np.isin(inner, torn)]] = NONE
        unclear = row < 0


def _numbered(
    described: Mapping[int, Described], of_level: Domains, tiers: tuple[int, ...], problems: Problems
) -> Tree:
    """Number the domains of each level: those of its tier, with nodes or without, and those carried up."""
    by_name = sorted(described, key=lambda each: described[each].name)
    rank = np.zeros(max(described, default=-1) + 1, dtype=np.int32)
    rank[by_name] = np.arange(len(by_name), dtype=np.int32)
    domains = []
    domain_of = np.full_like(of_level, NONE)
    for level, row in enumerate(of_level):
        here = np.zeros(len(by_name), dtype=np.bool_)
        inside = row >= 0
        here[rank[row[inside]]] = True
        here[[rank[number] for number, each in described.items() if each.tier == tiers[level]]] = True
        place = np.cumsum(here, dtype=np.int32) - 1
        domain_of[level, inside] = place[rank[row[inside]]]
        domains.append(tuple(described[by_name[each]].name for each in np.flatnonzero(here).tolist()))
    levels = tuple(f"tier {tier}" for tier in tiers)
    names = _tier_names(described, tiers, problems)
    return Tree(HYPER_NODES, levels, tuple(domains), domain_of, tiers=tiers, tier_names=names)


def _tier_names(described: Mapping[int, Described], tiers: tuple[int, ...], problems: Problems) -> tuple[str, ...]:
    """Return one name per tier, empty if it has none; a name of several tiers means the lowest."""
    users: dict[tuple[str, int], list[str]] = {}
    for each in described.values():
        if each.tier_name:
            users.setdefault((each.tier_name, each.tier), []).append(each.name)
    found: dict[int, str] = {}
    taken: dict[str, int] = {}
    for tier in reversed(tiers):
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
                problems.add(user, "TierName", why)
        if found[tier]:
            taken[found[tier]] = tier
    return tuple(found[tier] for tier in tiers)


def _tell_nodes(
    described: Mapping[int, Described],
    tier: int,
    numbers: Numbers,
    columns: Numbers,
    node_name: Callable[[int], str],
    problems: Problems,
) -> None:
    """Note the nodes that are in several HyperNodes of a tier, at each of these HyperNodes."""
    width = int(numbers.max(initial=0)) + 1
    pairs = np.unique(columns.astype(np.int64) * width + numbers)  # by column
    where, whose = pairs // width, pairs % width
    starts, ends = np.searchsorted(where, where), np.searchsorted(where, where, side="right")
    for mine, rows in _grouped(whose):
        examples = []
        for row in rows[:EXAMPLES]:
            others = [described[each].name for each in whose[starts[row] : ends[row]].tolist() if each != mine]
            examples.append(f"{node_name(int(where[row]))} (in {listed(sorted(others))})")
        message = reasons.topology.overlap(tier=tier, nodes=some(examples, len(rows)))
        problems.add(described[mine].name, "Overlap", message)


def _tell_crowded(
    described: Mapping[int, Described],
    numbers: Numbers,
    columns: Numbers,
    crowded: NDArray[np.bool_],
    node_name: Callable[[int], str],
    problems: Problems,
) -> None:
    inside = crowded[columns]
    numbers, columns = numbers[inside], columns[inside]
    for number, rows in _grouped(numbers):
        its = columns[rows]
        names = [node_name(column) for column in its[:EXAMPLES].tolist()]
        message = reasons.topology.crowded(most=PLACES.value, limit=PLACES.name, nodes=some(names, len(its)))
        problems.add(described[number].name, "TooMany", message)


def _grouped(numbers: NDArray[Any]) -> Iterator[tuple[int, Amounts]]:
    """Yield each number with its positions."""
    order = np.argsort(numbers, kind="stable")
    starts = np.flatnonzero(np.diff(numbers[order], prepend=-1)).tolist()
    for start, end in pairwise([*starts, len(order)]):
        yield int(numbers[order[start]]), order[start:end]
