"""A tree over the nodes of one snapshot, prepared for sums: numbers, the order of nodes and of domains along it."""

import numpy as np
from numpy.typing import NDArray

from extender.planner.state.amounts import Amounts
from extender.planner.topology.tree import Tree

Mask = NDArray[np.bool_]


class Geometry:
    """Made once per tree and order of the nodes' names."""

    def __init__(self, tree: Tree, order: Amounts) -> None:
        self.tree = tree
        self.places = along(tree, order)
        """Position of each column if nodes stand along the tree, those of one domain together."""
        self._numbers: dict[int, Amounts] = {}
        self._first: dict[int, Amounts] = {}

    def sums(self, level: int, amounts: Amounts) -> Amounts:
        """Amounts per node, int64 of shape (nodes,), added up by the domains of a level."""
        if level not in self._numbers:
            self._numbers[level] = self.tree.domain_of[level].astype(np.int64) + 1
        domains = len(self.tree.domains[level])
        return np.bincount(self._numbers[level], weights=amounts, minlength=domains + 1)[1:].astype(np.int64)

    def lifted(self, level: int, counts: Amounts) -> Amounts:
        """Counts per domain of a level, added up by the domains of the level above."""
        parents = self.tree.parents[level]
        inside = parents >= 0
        total = np.bincount(parents[inside], weights=counts[inside], minlength=len(self.tree.domains[level - 1]))
        return total.astype(np.int64)

    def first(self, level: int) -> Amounts:
        """The lowest position of a node of each domain of a level, int64 of shape (domains,)."""
        if level not in self._first:
            self._first[level] = _lowest(self.tree, level, self.places)
        return self._first[level]

    def members(self, level: int, domain: int) -> Mask:
        """The nodes of a domain, bool of shape (nodes,); all of them for the level around all, which is below 0."""
        if level < 0:
            return np.ones(self.tree.domain_of.shape[1], dtype=np.bool_)
        inside: Mask = self.tree.domain_of[level] == domain
        return inside


def along(tree: Tree, order: Amounts) -> Amounts:
    """Position of each column if nodes stand along the tree, int64 of shape (columns,).

    `order` has the columns of the known nodes by their names: domains stand in the order of their first nodes, and
    nodes in no domain of a level behind those that are in one.
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
