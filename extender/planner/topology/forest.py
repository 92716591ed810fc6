"""All trees of one cluster, and which levels of which of them a wish is about.

Trees of labels are the configured ones and those of Kueue's Topologies; HyperNodes are another. A wish that names label
keys which no tree has gets a tree of just these keys: `topology.kubernetes.io/zone` needs no configuration.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from extender.planner import reasons
from extender.planner.reasons.grammar import any_of
from extender.planner.state.amounts import Amounts
from extender.planner.topology.labels import LabelTree
from extender.planner.topology.tree import DEFAULT, HYPER_NODES, Tree
from muster.api.kubernetes.core import Node
from muster.resources.topology import Level, Nearness

WHOLE = -1
"""The level around the outermost one: all nodes, those without a domain too."""


@dataclass(frozen=True, slots=True, eq=False)
class Reach:
    """Levels of one tree that may hold the pods of a wish: from `inner`, tried first, out to `outer`."""

    tree: Tree
    inner: int
    outer: int
    """WHOLE if nothing is required."""

    @property
    def hard(self) -> bool:
        """Whether the pods wait unless one domain holds them."""
        return self.outer != WHOLE

    @property
    def words(self) -> str:
        """What is required, for people."""
        return level_words(self.tree, self.outer)


@dataclass(frozen=True, slots=True)
class Unknown:
    """A wish that no tree can meet, and why; it waits if something is required."""

    why: str
    hard: bool


class Forest:
    """The trees of a cluster, each made when it is first asked for."""

    def __init__(self, levels: Mapping[str, Sequence[str]]) -> None:
        self._configured = {name: tuple(keys) for name, keys in levels.items()}
        self._kept: dict[tuple[str, tuple[str, ...]], LabelTree] = {}
        self._used: set[tuple[str, tuple[str, ...]]] = set()
        self._nodes: Sequence[Node | None] = ()
        self._changed: Amounts = np.zeros(0, dtype=np.int64)
        self._generation = 0
        self._levels: dict[str, tuple[str, ...]] = {}
        self._hyper_nodes: Tree | None = None
        self._reaches: dict[Nearness, Reach | Unknown] = {}

    def renew(
        self,
        nodes: Sequence[Node | None],
        changed: Amounts,
        generation: int,
        *,
        topologies: Mapping[str, Sequence[str]] | None = None,
        hyper_nodes: Tree | None = None,
    ) -> None:
        """Looks at the nodes anew; what is asked of it is then of these nodes.

        `changed` is the generation in which each node last changed. `topologies` are the levels of Kueue's Topologies
        by name; a configured topology of the same name counts before it.
        """
        self._kept = {key: self._kept[key] for key in self._used if key in self._kept}
        self._used = set()
        self._nodes, self._changed, self._generation = nodes, changed, generation
        self._levels = {name: tuple(keys) for name, keys in (topologies or {}).items()} | self._configured
        self._hyper_nodes = hyper_nodes
        self._reaches = {}

    @property
    def names(self) -> list[str]:
        """The topologies there are, in the order in which one is looked for that has a level."""
        first = [name for name in self._levels if name == DEFAULT]
        others = sorted(name for name in self._levels if name != DEFAULT)
        return [*first, *others, *([HYPER_NODES] if self._hyper_nodes is not None else [])]

    def tree(self, name: str) -> Tree | None:
        """The tree of this name; None if there is none."""
        if name == HYPER_NODES and name not in self._levels:
            return self._hyper_nodes
        return self._of_labels(name, self._levels[name]) if name in self._levels else None

    def trees(self) -> dict[str, Tree]:
        """Every topology by name."""
        return {name: tree for name in self.names if (tree := self.tree(name)) is not None}

    def find(self, near: Nearness) -> Reach | Unknown:
        """Which levels a wish is about."""
        found = self._reaches.get(near)
        if found is None:
            found = self._reaches[near] = self._find(near)
        return found

    def _find(self, near: Nearness) -> Reach | Unknown:
        hard = near.required is not None
        tree = self.tree(near.topology) if near.topology else self._with(near)
        if tree is None and near.topology == HYPER_NODES:
            tree = Tree(HYPER_NODES, (), (), np.zeros((0, len(self._nodes)), dtype=np.int32))  # there are none
        if tree is None:
            return Unknown(reasons.topology.no_topology(name=near.topology, known=any_of(self.names)), hard)
        outer = WHOLE if near.required is None else _level(tree, near.required)
        if outer is None:
            return Unknown(_no_level(tree, near.required), hard)
        inner = len(tree.levels) - 1
        if near.preferred is not None:
            wanted = _level(tree, near.preferred)
            if wanted is None and not hard:
                return Unknown(_no_level(tree, near.preferred), hard)
            inner = inner if wanted is None else wanted
        return Reach(tree, WHOLE if near.anywhere else max(inner, outer), outer)

    def _with(self, near: Nearness) -> Tree | None:
        """The first tree that has the levels of a wish; a new one if none has any of them."""
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
        kept = self._kept.get(key)
        if kept is None:
            kept = self._kept[key] = LabelTree(name, levels)
        self._used.add(key)
        return kept.of(self._nodes, self._changed, self._generation)


def level_words(tree: Tree, level: int) -> str:
    """A level for people."""
    if level == WHOLE:
        return reasons.topology.CLUSTER
    name = tree.tier_names[level] if tree.tier_names else ""
    return f"{tree.levels[level]} ({name})" if name else tree.levels[level]


def _level(tree: Tree, level: Level) -> int | None:
    """The number of a level; WHOLE for a tier above all there are, as Volcano has a root of that tier."""
    if isinstance(level, str):
        return tree.level(level)
    lower = (number for number, tier in enumerate(tree.tiers) if tier <= level)
    return WHOLE if level > max(tree.tiers, default=0) else next(lower, None)


def _no_level(tree: Tree, level: Level | None) -> str:
    if isinstance(level, int):
        return reasons.topology.no_tier(tier=level, known=any_of(tree.levels))
    known = any_of([*tree.levels, *filter(None, tree.tier_names)])
    return reasons.topology.no_level(topology=tree.name, level=level, known=known)
