"""Which HyperNode is in which: one parent each, of a higher tier; the rest is told and left out.

As in Volcano a HyperNode has one parent at most. Where several name it as a member it has none, since nobody can say
which is right; its nodes are still together. A member must be of a lower tier than the HyperNode that it is in, so that
none can contain itself (Volcano refuses circles, and lets a child have its parent's tier).
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from extender.planner import reasons
from extender.planner.reasons.grammar import listed
from extender.planner.topology.members import Members
from extender.planner.topology.problems import Problems
from extender.planner.topology.tree import Domains


@dataclass(frozen=True, slots=True)
class Described:
    """One HyperNode that can be evaluated."""

    name: str
    tier: int
    tier_name: str
    members: Members


def parents_of(described: Mapping[int, Described], problems: Problems) -> dict[int, int]:
    """Number of a HyperNode → that of its parent; those without one are left out."""
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
                _tell_tiers(described[child], parent, problems)
    for child, claimed in claims.items():
        if len(claimed) > 1:
            parents = sorted(described[each].name for each in claimed)
            message = reasons.topology.several_parents(name=described[child].name, parents=listed(parents))
            for name in (described[child].name, *parents):
                problems.add(name, "SeveralParents", message)
    return {child: claimed[0] for child, claimed in claims.items() if len(claimed) == 1}


def _tell_tiers(child: Described, parent: Described, problems: Problems) -> None:
    message = reasons.topology.tier_order(
        child=child.name, child_tier=child.tier, parent=parent.name, parent_tier=parent.tier
    )
    for name in (child.name, parent.name):
        problems.add(name, "TierOrder", message)


def ancestors(described: Mapping[int, Described], parents: Mapping[int, int], tiers: tuple[int, ...]) -> Domains:
    """Per tier, int32 of shape (tiers, numbers): the HyperNode of exactly that tier that each is in or is; -1: none.

    `tiers` fall.
    """
    found: Domains = np.full((len(tiers), max(described, default=-1) + 1), -1, dtype=np.int32)
    level_of = {tier: level for level, tier in enumerate(tiers)}
    for number in sorted(described, key=lambda each: -described[each].tier):  # parents first
        if number in parents:
            found[:, number] = found[:, parents[number]]
        found[level_of[described[number].tier], number] = number
    return found
