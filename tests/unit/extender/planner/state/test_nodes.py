"""The table of nodes: their order, its growth, and which changes of a node are news."""

from typing import Any

import numpy as np
import pytest
from extender_world import World
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from muster.api.ranges import natural

NAMES = [f"{prefix}{number}" for prefix in ("node-", "rack-2-node-", "10.0.0.") for number in (1, 2, 3, 10, 20)]


@given(st.lists(st.sampled_from(NAMES), max_size=40))
def test_the_order_follows_nodes_that_come_and_go(turns: list[str]) -> None:
    """A name that is there goes, and one that is not comes; node-2 stands before node-10."""
    world = World(checked=False)
    table = world.state.nodes
    for name in turns:
        column = table.index.get(name)
        if column is None:
            world.node(name)
        else:
            world.state.on_node(table.nodes[column], None)
        ordered = [node.metadata.name for column in table.order() if (node := table.nodes[column])]
        assert ordered == sorted(table.index, key=natural)


@pytest.mark.parametrize("first", [63, 64, 65])
def test_the_table_grows_with_all_that_is_on_its_nodes(first: int) -> None:
    """Pods, shares of GPUs and pods with ports are where they were; what leaves has a column again."""
    world = World().nodes(first)
    told = {"gpu-fraction": "0.5", "muster.dev/gpu-devices": "1"}
    for number in range(0, first, 9):
        world.pod("ns/o", "t", number, {"cpu": 1}, node=f"node-{number}", phase="Running", annotations=told)
    shared = world.state.nodes.devices.shared[:first].copy()
    assert world.state.nodes.devices.pods.sum() == len(range(0, first, 9))
    for number in range(first, 150):
        world.node(f"node-{number}")
    assert world.state.differences() == []
    assert np.array_equal(world.state.nodes.devices.shared[:first], shared)
    table = world.state.nodes
    gone = table.nodes[table.index["node-3"]]
    column = table.index["node-3"]
    world.state.on_node(gone, None)
    assert (table.nodes[column], table.allocatable[:, column].any()) == (None, False)
    world.node("again")
    assert table.index["again"] == column
    assert len(table.order()) == 150


@pytest.mark.parametrize(("more", "news"), [
    ({}, False), ({"labels": {"zone": "b"}}, True), ({"unschedulable": True}, True), ({"cpu": 33}, True),
    ({"conditions": {"Ready": "False"}}, True), ({"conditions": {"Ready": "True"}}, False),
])  # fmt: skip
def test_which_changes_of_a_node_are_news(more: dict[str, Any], *, news: bool) -> None:
    """Its labels, its spec, its amounts and its faults; they change its generation, a heartbeat does not."""
    world = World().nodes(2)
    table = world.state.nodes
    before, version = table.changed.copy(), table.version
    world.node("node-0", **more)
    assert (table.changed != before).tolist() == [news, *[False] * (len(before) - 1)]
    assert (table.version > version) is news
    assert table.generation - before.max() == news
    known = table.nodes[0]
    assert world.state.on_node(None, known) is False
    other = structs.replace(known, metadata=structs.replace(known.metadata, uid="another"))
    assert world.state.on_node(None, other) is True
