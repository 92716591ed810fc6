"""Trees of node labels, and the tree and the levels that a wish is about."""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypernode_world import path_of
from hypothesis import given
from hypothesis import strategies as st

from extender.planner.topology.forest import WHOLE, Forest, LabelTree, _level
from extender.planner.topology.tree import Tree, along
from muster.api.kubernetes.core import Node
from muster.api.kubernetes.meta import ObjectMeta
from muster.resources.topology import Nearness

LEVELS = ("block", "rack", "host")


def node(labels: dict[str, str]) -> Node:
    """A node with these labels."""
    return Node(metadata=ObjectMeta(name="n", labels=labels))


def tree_of(name: str, levels: Sequence[str], nodes: Sequence[Node | None]) -> Tree:
    """The tree of these nodes, made at once."""
    return LabelTree(name, levels).tree_over(nodes, np.ones(len(nodes), dtype=np.int64), 1)


def paths(tree: Tree) -> list[tuple[str, ...]]:
    """The path of every column."""
    return [path_of(tree, column) for column in range(tree.domain_of.shape[1])]


def test_equal_values_under_different_parents_are_different_domains() -> None:
    """Racks of one name in two blocks are two racks."""
    tree = tree_of("default", LEVELS, [node({"block": "a", "rack": "1"}), node({"block": "b", "rack": "1"})])
    assert tree.domains[:2] == (("a", "b"), ("a/1", "b/1"))
    assert tree.parents[1][1] == 1
    assert not tree.domain_of.flags.writeable


def test_a_node_without_a_label_is_in_no_domain_from_there_down() -> None:
    """What is below a missing label does not count, whatever the node says of it."""
    tree = tree_of("default", LEVELS, [node({"block": "a", "host": "h"}), node({"rack": "1"}), None])
    assert paths(tree) == [("a",), (), ()]


def test_a_tree_costs_nothing_while_nothing_changes() -> None:
    """The same object, so that what depends on it can be kept too."""
    kept = LabelTree("default", LEVELS)
    nodes, changed = [node({"block": "a"})], np.array([1])
    assert kept.tree_over(nodes, changed, 1) is kept.tree_over(nodes, changed, 1)


LABELS = st.fixed_dictionaries({}, optional={key: st.sampled_from("abc") for key in LEVELS})


@given(st.lists(st.lists(st.one_of(st.none(), LABELS), max_size=6), max_size=12))
def test_a_tree_kept_by_changes_is_the_one_made_at_once(states: list[list[dict[str, str] | None]]) -> None:
    """Paths are the same, and parents agree with the nodes."""
    kept, size = LabelTree("default", LEVELS), 0
    nodes: list[Node | None] = []
    changed = np.zeros(0, dtype=np.int64)
    for generation, labels in enumerate(states, start=1):
        size = max(size, len(labels))
        after = [None if each is None else node(each) for each in labels] + [None] * (size - len(labels))
        before = nodes + [None] * (size - len(nodes))
        changed = np.pad(changed, (0, size - len(changed)))
        for column, (old, new) in enumerate(zip(before, after, strict=True)):
            if old != new:
                changed[column] = generation
        nodes = after
        tree = kept.tree_over(nodes, changed, generation)
        assert paths(tree) == paths(tree_of("default", LEVELS, nodes))
        for level in range(1, len(LEVELS)):
            inside = tree.domain_of[level] >= 0
            assert np.array_equal(tree.parents[level][tree.domain_of[level][inside]], tree.domain_of[level - 1][inside])


@pytest.mark.parametrize(("others", "most"), [(0, 66), (100, 266)])
def test_domains_that_are_gone_are_forgotten(others: int, most: int) -> None:
    """Nodes that are replaced for ever do not fill the memory; numbers of domains in use stay until many are gone."""
    kept, sizes = LabelTree("default", ("host",)), []
    nodes = [node({"host": f"h{number}"}) for number in range(others + 1)]
    changed = np.ones(others + 1, dtype=np.int64)
    for generation in range(1, 1000):
        nodes[0], changed[0] = node({"host": f"new{generation}"}), generation
        tree = kept.tree_over(nodes, changed, generation)
        sizes.append(len(tree.domains[0]))
    assert max(sizes) == most
    assert sizes[: most - others] == list(range(others + 1, most + 1))
    assert paths(tree) == [("new999",), *((f"h{number}",) for number in range(1, others + 1))]


def test_nodes_in_no_domain_stand_behind_the_others() -> None:
    """At each level; domains stand in the order of their first nodes."""
    levels = ("block", "rack")
    labels = [{}, {"block": "b", "rack": "y"}, {"block": "b"}, {"block": "b", "rack": "x"}, {"block": "a", "rack": "x"}]
    tree = tree_of("default", levels, [node(each) for each in labels])
    assert along(tree, np.arange(5)).tolist() == [4, 0, 2, 1, 3]
    assert along(tree, np.array([4, 3, 2, 1, 0])).tolist() == [4, 2, 3, 1, 0]


SWITCHES = Tree(
    "hypernodes", ("tier 3", "tier 1"), ((), ()), np.full((2, 1), -1, dtype=np.int32), tiers=(3, 1),
    tier_names=("spine", ""),
)  # fmt: skip
CABLE = "example.com/cable"


@pytest.mark.parametrize(("near", "found"), [
    (Nearness(required="rack"), ("default", 2, 1)),
    (Nearness(required="rack", preferred="host"), ("default", 2, 1)),
    (Nearness(required="rack", preferred="block"), ("default", 1, 1)),
    (Nearness(required="rack", preferred=9), ("default", 1, 1)),
    (Nearness(required="rack", preferred=3, topology="default"), ("default", 1, 1)),
    (Nearness(preferred="rack"), ("default", 1, WHOLE)),
    (Nearness(anywhere=True), ("default", WHOLE, WHOLE)),
    (Nearness(topology="pod"), ("pod", 1, WHOLE)),
    (Nearness(required="row"), ("pod", 1, 0)),
    (Nearness(required="row", topology="pod"), ("pod", 1, 0)),
    (Nearness(required="row", preferred="rack"), ("row, rack", 1, 0)),
    (Nearness(required=CABLE), (CABLE, 0, 0)),
    (Nearness(required="spine"), ("hypernodes", 1, 0)),
    (Nearness(required="spine", preferred="rack"), ("spine, rack", 1, 0)),
    (Nearness(required=4, topology="hypernodes"), ("hypernodes", 1, WHOLE)),
    (Nearness(required=3, topology="hypernodes"), ("hypernodes", 1, 0)),
    (Nearness(required=2, topology="hypernodes"), ("hypernodes", 1, 1)),
    (Nearness(required=0, topology="hypernodes"), "no HyperNode has a tier of at most 0; there are tier 3, tier 1"),
    (Nearness(preferred=0, topology="hypernodes"), "no HyperNode has a tier of at most 0"),
    (Nearness(required="leaf", topology="hypernodes"), "has no level 'leaf'; its levels are tier 3, tier 1, spine"),
    (Nearness(required="rack", topology="pod"), "topology 'pod' has no level 'rack'; its levels are row, host"),
    (Nearness(preferred="rack", topology="pod"), "topology 'pod' has no level 'rack'"),
    (Nearness(topology="none"), "there is no topology 'none'; there are default, pod, hypernodes"),
])  # fmt: skip
def test_a_wish_is_of_levels_of_the_first_tree_that_has_them(near: Nearness, found: tuple[str, int, int] | str) -> None:
    """The innermost level that is tried, and the required one; label keys that no tree has make a tree."""
    forest = Forest({"default": LEVELS, "pod": ("row", "host")})
    forest.renew([node({"host": "h"})], np.array([1]), 1, hyper_nodes=SWITCHES)
    reach = forest.levels_near(near)
    if isinstance(found, str):
        assert (found in reach.why, reach.hard) == (True, near.required is not None)
    else:
        assert (reach.tree.name, reach.inner, reach.outer) == found
        assert (reach.hard, forest.levels_near(near) is reach) == (found[2] != WHOLE, True)


@pytest.mark.parametrize(("near", "name"), [
    (Nearness(required="host"), "pod"),
    (Nearness(required="rack"), "default"),
    (Nearness(required="host", preferred="rack"), "default"),
    (Nearness(required="host", topology="default"), "default"),
    (Nearness(anywhere=True), "default"),
])  # fmt: skip
def test_a_wish_of_a_part_is_about_the_tree_around_it_if_that_has_its_levels(near: Nearness, name: str) -> None:
    """Else it is about the tree that it would be about by itself."""
    forest = Forest({"default": LEVELS, "pod": ("row", "host")})
    forest.renew([node({"host": "h"})], np.array([1]), 1)
    assert forest.within(near, forest.tree("pod")).tree.name == name
    assert [*forest.trees()] == ["default", "pod"]


@pytest.mark.parametrize(("tiers", "tier", "level"), [
    ((), 0, None), ((), 1, WHOLE), ((2, 1), 0, None), ((2, 1), 1, 1), ((2, 1), 2, 0), ((2, 1), 3, WHOLE)
])  # fmt: skip
def test_a_tier_above_all_others_is_the_whole_cluster(tiers: tuple[int, ...], tier: int, level: int | None) -> None:
    """Also without any HyperNode; tier 0 has no level."""
    tree: Any = SimpleNamespace(tiers=tiers)
    assert _level(tree, tier) == level
