"""Trees of node labels: each level is a label key, and a domain is a path of values (as in KAI-Scheduler and Kueue).

A node without one of the labels is in no domain from that level down. Equal values under different parents are
different domains. A tree is made anew only as far as nodes changed: who keeps a `LabelTree` asks it every cycle.
"""

from collections.abc import Sequence

import numpy as np

from extender.planner.state.amounts import Amounts
from extender.planner.topology.tree import Domains, Tree
from muster.api.kubernetes.core import Node

SPARSE = 2
"""Once so many times more domains are known than have nodes, they are numbered anew."""
FEW = 64


class LabelTree:
    """The tree of one list of label keys, kept while nodes come, go and change."""

    def __init__(self, name: str, levels: Sequence[str]) -> None:
        self._name, self._levels = name, tuple(levels)
        none = np.full((len(self._levels), 0), -1, dtype=np.int32)
        self._known = Tree(self._name, self._levels, tuple(() for _ in self._levels), none)
        self._generation = -1
        self._numbers: list[dict[tuple[int, str], int]] = [{} for _ in self._levels]
        """Per level (number of the parent, value) → number of the domain."""
        self._names: list[list[str]] = [[] for _ in self._levels]

    def of(self, nodes: Sequence[Node | None], changed: Amounts, generation: int) -> Tree:
        """The tree over these columns; `changed` is the generation in which each last changed, up to `generation`.

        Costs the nodes that changed since it was asked last, and a copy of the array.
        """
        if generation != self._generation or len(nodes) != self._known.domain_of.shape[1]:
            self._update(nodes, np.flatnonzero(changed > self._generation))
            self._generation = generation
        return self._known

    def _update(self, nodes: Sequence[Node | None], columns: Amounts) -> None:
        old = self._known.domain_of
        domain_of: Domains = np.full((len(self._levels), len(nodes)), -1, dtype=np.int32)
        domain_of[:, : old.shape[1]] = old[:, : len(nodes)]
        self._number(nodes, columns.tolist(), domain_of)
        used = sum(len(np.unique(row[row >= 0])) for row in domain_of)
        if sum(map(len, self._names)) > SPARSE * used + FEW:
            self._numbers = [{} for _ in self._levels]
            self._names = [[] for _ in self._levels]
            self._number(nodes, range(len(nodes)), domain_of)
        self._known = Tree(self._name, self._levels, tuple(map(tuple, self._names)), domain_of)

    def _number(self, nodes: Sequence[Node | None], columns: Sequence[int], domain_of: Domains) -> None:
        for column in columns:
            node = nodes[column]
            domain_of[:, column] = self._path(node.metadata.labels) if node else -1

    def _path(self, labels: dict[str, str]) -> list[int]:
        path, parent = [-1] * len(self._levels), -1
        for level, key in enumerate(self._levels):
            value = labels.get(key)
            if value is None:
                break
            numbers, names = self._numbers[level], self._names[level]
            number = numbers.get((parent, value))
            if number is None:
                number = numbers[parent, value] = len(names)
                names.append(f"{self._names[level - 1][parent]}/{value}" if level else value)
            path[level] = parent = number
        return path
