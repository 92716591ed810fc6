"""HyperNodes and nodes for tests of trees."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from extender.planner.state.state import PlannerState
from extender.planner.topology.tree import Tree
from muster.api.kubernetes.core import Node
from muster.api.kubernetes.meta import LabelSelector, ObjectMeta
from muster.api.volcano.topology import (
    ExactMatch,
    HyperNode,
    HyperNodeMember,
    HyperNodeSpec,
    MemberSelector,
    RegexMatch,
)


def named(*names: str) -> list[HyperNodeMember]:
    """Nodes by name."""
    return [HyperNodeMember(type="Node", selector=MemberSelector(exact_match=ExactMatch(name=name))) for name in names]


def matching(pattern: str) -> list[HyperNodeMember]:
    """Nodes by a pattern."""
    return [HyperNodeMember(type="Node", selector=MemberSelector(regex_match=RegexMatch(pattern=pattern)))]


def labelled(**labels: str) -> list[HyperNodeMember]:
    """Nodes by labels."""
    return [HyperNodeMember(type="Node", selector=MemberSelector(label_match=LabelSelector(match_labels=labels)))]


def within(*names: str) -> list[HyperNodeMember]:
    """HyperNodes by name."""
    selectors = [MemberSelector(exact_match=ExactMatch(name=name)) for name in names]
    return [HyperNodeMember(type="HyperNode", selector=each) for each in selectors]


def hyper_node(
    name: str, tier: int, members: list[HyperNodeMember], tier_name: str = "", created: str = ""
) -> HyperNode:
    """A HyperNode."""
    spec = HyperNodeSpec(tier=tier, tier_name=tier_name, members=members)
    return HyperNode(metadata=ObjectMeta(name=name, creation_timestamp=created or None), spec=spec)


def node(name: str, **labels: str) -> Node:
    """A node; `a_b` stands for the label `a/b`."""
    return Node(metadata=ObjectMeta(name=name, labels={key.replace("_", "/"): value for key, value in labels.items()}))


def path_of(tree: Tree, column: int) -> tuple[str, ...]:
    """The names of the domains of a node, outermost first; it ends at the first level without one."""
    return tuple(tree.domains[level][number] for level, number in enumerate(tree.domain_of[:, column]) if number >= 0)


def paths(world: "HyperNodeWorld", tree: Tree) -> dict[str, tuple[str, ...]]:
    """The path of each node by its name."""
    return {name: path_of(tree, column) for name, column in world.index.items()}


@dataclass
class HyperNodeWorld:
    """What `HyperNodeTree.of` looks at, kept by the state as in the process."""

    state: PlannerState = field(default_factory=PlannerState)
    pool: str = ""

    def tell(self, *objects: Node | HyperNode) -> "HyperNodeWorld":
        """Adds or changes objects."""
        for each in objects:
            (self.state.on_node if isinstance(each, Node) else self.state.on_hyper_node)(None, each)
        return self

    def forget(self, *objects: Node | HyperNode) -> None:
        """Takes objects away."""
        for each in objects:
            (self.state.on_node if isinstance(each, Node) else self.state.on_hyper_node)(each, None)

    def name(self, column: int) -> str:
        """The node in a column; empty if there is none."""
        found = self.nodes[column]
        return found.metadata.name if found else ""

    @property
    def hyper_nodes(self) -> Mapping[str, HyperNode]:
        """By name."""
        return dict(self.state.hyper_nodes)

    @property
    def hyper_nodes_version(self) -> int:
        """Of their specs."""
        return self.state.hyper_nodes_version

    @property
    def nodes(self) -> list[Node | None]:
        """By column."""
        return list(self.state.nodes.nodes)

    @property
    def index(self) -> Mapping[str, int]:
        """Name → column."""
        return dict(self.state.nodes.index)

    @property
    def changed(self) -> NDArray[np.int64]:
        """When each last changed."""
        return self.state.nodes.changed.copy()

    @property
    def generation(self) -> int:
        """Of the nodes."""
        return self.state.nodes.generation
