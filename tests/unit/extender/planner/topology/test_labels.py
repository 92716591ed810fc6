"""Trees of node labels."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypernode_world import path_of
from hypothesis import given
from hypothesis import strategies as st

from extender.planner.topology.forest import LabelTree
from extender.planner.topology.tree import Tree
from muster.api.kubernetes.core import Node
from muster.api.kubernetes.meta import ObjectMeta

LEVELS = ("block", "rack", "host")


def node(labels: dict[str, str]) -> Node:
    """A node with these labels."""
    return Node(metadata=ObjectMeta(name="n", labels=labels))


def tree_of(name: str, levels: Sequence[str], nodes: Sequence[Node | None]) -> Tree:
    """The tree of these nodes, made at once."""
    return LabelTree(name, levels).of(nodes, np.ones(len(nodes), dtype=np.int64), 1)


def paths(tree: Tree) -> list[tuple[str, ...]]:
    """The path of every column."""
    return [path_of(tree, column) for column in range(tree.domain_of.shape[1])]


def test_equal_values_under_different_parents_are_different_domains() -> None:
    """Racks of one name in two blocks are two racks."""
    tree = tree_of("default", LEVELS, [node({"block": "a", "rack": "1"}), node({"block": "b", "rack": "1"})])
    assert tree.domains[1] == ("a/1", "b/1")
    assert tree.parents[1][1] == 1
    assert tree.domains[0] == ("a", "b")


def test_a_node_without_a_label_is_in_no_domain_from_there_down() -> None:
    """What is below a missing label does not count, whatever the node says of it."""
    tree = tree_of("default", LEVELS, [node({"block": "a", "host": "h"}), node({"rack": "1"}), None])
    assert paths(tree) == [("a",), (), ()]


def test_a_tree_costs_nothing_while_nothing_changes() -> None:
    """The same object, so that what depends on it can be kept too."""
    kept = LabelTree("default", LEVELS)
    nodes, changed = [node({"block": "a"})], np.array([1])
    assert kept.of(nodes, changed, 1) is kept.of(nodes, changed, 1)


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
        tree = kept.of(nodes, changed, generation)
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
        tree = kept.of(nodes, changed, generation)
        sizes.append(len(tree.domains[0]))
    assert max(sizes) == most
    assert sizes[: most - others] == list(range(others + 1, most + 1))
    assert paths(tree) == [("new999",), *((f"h{number}",) for number in range(1, others + 1))]
