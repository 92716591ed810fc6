"""One topology as arrays: the domain of every node at each level, and sums over domains.

Domains are nested: nodes that share a domain of one level also share a domain of each level above. A node without a
domain in a level has -1 in this level and all levels below. Gangs without a topology request may use nodes without a
domain.

HyperNode trees need not be balanced. The levels of a HyperNode tree are the tiers in use, the highest first. At the
level of tier t, a node's domain is its topmost HyperNode ancestor whose tier is at most t, as Volcano interprets
highestTierAllowed. One HyperNode may therefore be a domain of several nested levels.
"""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from extender.planner.state.amounts import Amounts, Mask

Domains = NDArray[np.int32]
"""The number of each node's domain; -1 means that the node has no domain."""

HYPER_NODES = "hypernodes"
"""Name of the tree of HyperNodes."""
DEFAULT = "default"
"""Name of the tree of configured levels."""


@dataclass(frozen=True, slots=True, eq=False)
class Tree:
    """A topology over the columns of a node table, compared by identity."""

    name: str
    """Name of the tree: `default`, a configured topology, a Kueue Topology, or `hypernodes`."""
    levels: tuple[str, ...]
    """Label keys, outermost first; for HyperNodes, one text per tier for users, such as `tier 2`."""
    domains: tuple[tuple[str, ...], ...]
    """Names of each level's domains, in the order of their numbers. A domain need not have nodes. The name of a domain
    of labels is a path, such as `block-a/rack-3`."""
    domain_of: Domains
    """Number of each node's domain, int32 of shape (levels, columns of the node table); -1 for no domain."""
    tiers: tuple[int, ...] = ()
    """The tier of each level of the tree of HyperNodes, highest first; empty for other trees."""
    tier_names: tuple[str, ...] = ()
    """The tierName (or an empty text) of each level of the tree of HyperNodes; empty for other trees."""
    parents: tuple[Domains, ...] = field(init=False)
    """For each level, the parent of each domain in the level above, int32 of shape (domains,); -1 for no parent."""

    def __post_init__(self) -> None:
        self.domain_of.flags.writeable = False
        object.__setattr__(self, "parents", tuple(self._parents(level) for level in range(len(self.levels))))

    def _parents(self, level: int) -> Domains:
        parents = np.full(len(self.domains[level]), -1, dtype=np.int32)
        if level:
            inner, outer = self.domain_of[level], self.domain_of[level - 1]
            inside = inner >= 0
            parents[inner[inside]] = outer[inside]
        return parents

    def level(self, key: str) -> int | None:
        """Return the number of the level with this label key or tier name; None if there is no such level."""
        if key in self.levels:
            return self.levels.index(key)
        return self.tier_names.index(key) if key and key in self.tier_names else None


class Geometry:
    """Sums over the domains of a tree, and the tree's order of nodes and domains."""

    def __init__(self, tree: Tree, order: Amounts) -> None:
        self.tree = tree
        self.places = along(tree, order)
        self._numbers: dict[int, Amounts] = {}
        self._first: dict[int, Amounts] = {}

    def sums(self, level: int, amounts: Amounts) -> Amounts:
        """Return the sum of `amounts`, int64 of shape (nodes,), over the nodes of each domain of a level."""
        if level not in self._numbers:
            self._numbers[level] = self.tree.domain_of[level].astype(np.int64) + 1
        domains = len(self.tree.domains[level])
        return np.bincount(self._numbers[level], weights=amounts, minlength=domains + 1)[1:].astype(np.int64)

    def lifted(self, level: int, counts: Amounts) -> Amounts:
        """Return, for each domain of the level above, the sum of its child domains' counts."""
        parents = self.tree.parents[level]
        inside = parents >= 0
        total = np.bincount(parents[inside], weights=counts[inside], minlength=len(self.tree.domains[level - 1]))
        return total.astype(np.int64)

    def first(self, level: int) -> Amounts:
        """Return the lowest position of a node in each domain of a level, int64 of shape (domains,)."""
        if level not in self._first:
            self._first[level] = _lowest(self.tree, level, self.places)
        return self._first[level]

    def members(self, level: int, domain: int) -> Mask:
        """Return the mask of a domain's nodes, bool of shape (nodes,); all nodes for the level `WHOLE`."""
        if level < 0:
            return np.ones(self.tree.domain_of.shape[1], dtype=np.bool_)
        inside: Mask = self.tree.domain_of[level] == domain
        return inside


def along(tree: Tree, order: Amounts) -> Amounts:
    """Return each node's position in the order of the tree, domain by domain, int64 of shape (columns,).

    `order` contains the columns of the known nodes in the order of their names. Domains are in the order of their first
    nodes; nodes without a domain in a level come last.
    """
    columns = tree.domain_of.shape[1]
    by_name = np.full(columns, columns, dtype=np.int64)
    by_name[order] = np.arange(len(order))
    keys = [by_name]
    for level in reversed(range(len(tree.levels))):
        of = tree.domain_of[level]
        first = np.append(_lowest(tree, level, by_name), columns + 1)
        keys.append(first[of])
    places = np.empty(columns, dtype=np.int64)
    places[np.lexsort(keys)] = np.arange(columns)
    return places


def _lowest(tree: Tree, level: int, numbers: Amounts) -> Amounts:
    lowest = np.full(len(tree.domains[level]), np.iinfo(np.int64).max, dtype=np.int64)
    of = tree.domain_of[level]
    inside = of >= 0
    np.minimum.at(lowest, of[inside], numbers[inside])
    return lowest
