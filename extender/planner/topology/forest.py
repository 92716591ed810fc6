"""All topologies of one cluster, and the levels to which a topology request refers.

Trees of labels come from the configuration and from Kueue's Topologies. Each level is a label key. A domain is a path
of label values, so equal values under different parents are different domains. A node without one of the labels is in
no domain of that level and of the levels below. HyperNodes form another tree. If no tree has the label keys of a
request, a tree of just these keys is built. Requests for `topology.kubernetes.io/zone` therefore need no configuration.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from extender.planner import reasons
from extender.planner.state.amounts import Amounts
from extender.planner.topology.tree import DEFAULT, HYPER_NODES, Domains, Tree
from muster.api.grammar import any_of
from muster.api.kubernetes.core import Node
from muster.resources.topology import Level, Nearness

SPARSE, FEW = 2, 64
"""Domains are renumbered when the number of used numbers exceeds `SPARSE` times the number of domains with nodes, plus
`FEW`."""


class LabelTree:
    """Tree of the domains for a list of label keys, updated when nodes change."""

    def __init__(self, name: str, levels: Sequence[str]) -> None:
        self._name, self._levels = name, tuple(levels)
        none = np.full((len(self._levels), 0), -1, dtype=np.int32)
        self._known = Tree(self._name, self._levels, tuple(() for _ in self._levels), none)
        self._generation = -1
        self._numbers: list[dict[str, int]] = [{} for _ in self._levels]
        """For each level, maps a path of label values (without slashes) to the index of the domain."""

    def tree_over(self, nodes: Sequence[Node | None], changed: Amounts, generation: int) -> Tree:
        """Return the tree of the domains of these nodes.

        `changed` contains the generation in which each node last changed; only nodes that have changed since the last
        call are read.
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
        if sum(map(len, self._numbers)) > SPARSE * used + FEW:
            self._numbers = [{} for _ in self._levels]
            self._number(nodes, range(len(nodes)), domain_of)
        self._known = Tree(self._name, self._levels, tuple(map(tuple, self._numbers)), domain_of)

    def _number(self, nodes: Sequence[Node | None], columns: Sequence[int], domain_of: Domains) -> None:
        for column in columns:
            node = nodes[column]
            domain_of[:, column] = self._path(node.metadata.labels) if node else -1

    def _path(self, labels: dict[str, str]) -> list[int]:
        domains, path = [-1] * len(self._levels), ""
        for level, (key, numbers) in enumerate(zip(self._levels, self._numbers, strict=True)):
            value = labels.get(key)
            if value is None:
                break
            path = f"{path}/{value}" if level else value
            domains[level] = numbers.setdefault(path, len(numbers))
        return domains


WHOLE = -1
"""The level above the outermost level: all nodes, including nodes without a domain."""


@dataclass(frozen=True, slots=True, eq=False)
class LevelRange:
    """Levels of a tree at which a domain may hold the pods of a request, from `inner` outwards to `outer`."""

    tree: Tree
    inner: int
    outer: int
    """The outermost allowed level; WHOLE if the request does not require a level."""

    @property
    def hard(self) -> bool:
        """True if the pods must wait until a single domain can hold them."""
        return self.outer != WHOLE

    @property
    def words(self) -> str:
        """The name of the required level, as shown to users."""
        return level_text(self.tree, self.outer)


@dataclass(frozen=True, slots=True)
class Unknown:
    """A topology request that no tree can satisfy, with the reason; the gang waits if the level is required."""

    why: str
    hard: bool


class Forest:
    """The trees of a cluster; each tree is built when it is first needed."""

    def __init__(self, levels: Mapping[str, Sequence[str]]) -> None:
        self._configured = {name: tuple(keys) for name, keys in levels.items()}
        self._kept: dict[tuple[str, tuple[str, ...]], LabelTree] = {}
        self._used: set[tuple[str, tuple[str, ...]]] = set()
        self._nodes: Sequence[Node | None] = ()
        self._changed: Amounts = np.zeros(0, dtype=np.int64)
        self._generation = 0
        self._levels: dict[str, tuple[str, ...]] = {}
        self._hyper_nodes: Tree | None = None
        self._reaches: dict[Nearness, LevelRange | Unknown] = {}

    def renew(
        self,
        nodes: Sequence[Node | None],
        changed: Amounts,
        generation: int,
        *,
        topologies: Mapping[str, Sequence[str]] | None = None,
        hyper_nodes: Tree | None = None,
    ) -> None:
        """Use the nodes of a new snapshot; `changed` contains the generation in which each node last changed.

        `topologies` maps Kueue's Topologies to their levels; a configured topology of the same name takes precedence.
        """
        self._kept = {key: self._kept[key] for key in self._used if key in self._kept}
        self._used = set()
        self._nodes, self._changed, self._generation = nodes, changed, generation
        self._levels = {name: tuple(keys) for name, keys in (topologies or {}).items()} | self._configured
        self._hyper_nodes = hyper_nodes
        self._reaches = {}

    @property
    def names(self) -> list[str]:
        """Names of the topologies, in the order of the search for a level."""
        of_labels = sorted(self._levels, key=lambda name: (name != DEFAULT, name))
        return [*of_labels, *([HYPER_NODES] if self._hyper_nodes is not None else [])]

    def tree(self, name: str) -> Tree | None:
        """Return the tree of this name; None if no such tree exists."""
        if name == HYPER_NODES and name not in self._levels:
            return self._hyper_nodes
        return self._of_labels(name, self._levels[name]) if name in self._levels else None

    def trees(self) -> dict[str, Tree]:
        """Return all topologies, keyed by name."""
        return {name: tree for name in self.names if (tree := self.tree(name)) is not None}

    def levels_near(self, near: Nearness) -> LevelRange | Unknown:
        """Return the levels to which a topology request refers."""
        if near not in self._reaches:
            self._reaches[near] = self._find(near)
        return self._reaches[near]

    def within(self, near: Nearness, tree: Tree) -> LevelRange | Unknown:
        """Return the levels to which the request of an inner part refers, preferably in the tree of the outer part."""
        keys = [level for level in (near.required, near.preferred) if level is not None]
        if near.topology or not keys or not all(isinstance(key, str) and tree.level(key) is not None for key in keys):
            return self.levels_near(near)
        return self._in(tree, near)

    def _find(self, near: Nearness) -> LevelRange | Unknown:
        hard = near.required is not None
        tree = self.tree(near.topology) if near.topology else self._with(near)
        if tree is None and near.topology == HYPER_NODES:
            tree = Tree(HYPER_NODES, (), (), np.zeros((0, len(self._nodes)), dtype=np.int32))  # no HyperNodes
        if tree is None:
            return Unknown(reasons.topology.no_topology(name=near.topology, known=any_of(self.names)), hard)
        return self._in(tree, near)

    @staticmethod
    def _in(tree: Tree, near: Nearness) -> LevelRange | Unknown:
        hard = near.required is not None
        outer = WHOLE if near.required is None else _level(tree, near.required)
        if outer is None:
            return Unknown(_no_level(tree, near.required), hard)
        inner = len(tree.levels) - 1
        if near.preferred is not None:
            wanted = _level(tree, near.preferred)
            if wanted is None and not hard:
                return Unknown(_no_level(tree, near.preferred), hard)
            inner = inner if wanted is None else wanted
        return LevelRange(tree, WHOLE if near.anywhere else max(inner, outer), outer)

    def _with(self, near: Nearness) -> Tree | None:
        """Return the first tree with the levels of a request; a new tree if no tree has them."""
        keys = [level for level in (near.required, near.preferred) if isinstance(level, str)]
        if not keys:
            return self.tree(next(iter(self.names), DEFAULT))
        for name in self.names:
            levels = self._levels.get(name, ()) if name != HYPER_NODES else ()
            if all(key in levels for key in keys):
                return self.tree(name)
        hyper = self._hyper_nodes
        if hyper is not None and all(hyper.level(key) is not None for key in keys):
            return hyper
        return self._of_labels(", ".join(dict.fromkeys(keys)), tuple(dict.fromkeys(keys)))

    def _of_labels(self, name: str, levels: tuple[str, ...]) -> Tree:
        key = name, levels
        if key not in self._kept:
            self._kept[key] = LabelTree(name, levels)
        self._used.add(key)
        return self._kept[key].tree_over(self._nodes, self._changed, self._generation)


def level_text(tree: Tree, level: int) -> str:
    """Return a level as text for users."""
    if level == WHOLE:
        return reasons.topology.CLUSTER
    name = tree.tier_names[level] if tree.tier_names else ""
    return f"{tree.levels[level]} ({name})" if name else tree.levels[level]


def _level(tree: Tree, level: Level) -> int | None:
    """Return the number of a level; WHOLE for a tier above all other tiers, at which Volcano has a root HyperNode."""
    if isinstance(level, str):
        return tree.level(level)
    lower = (number for number, tier in enumerate(tree.tiers) if tier <= level)
    return WHOLE if level > max(tree.tiers, default=0) else next(lower, None)


def _no_level(tree: Tree, level: Level | None) -> str:
    if isinstance(level, int):
        return reasons.topology.no_tier(tier=level, known=any_of(tree.levels))
    known = any_of([*tree.levels, *filter(None, tree.tier_names)])
    return reasons.topology.no_level(topology=tree.name, level=level, known=known)
