"""Nodes are in the natural order of their names, whatever came and went."""

from extender_world import World
from hypothesis import given
from hypothesis import strategies as st

from extender.planner.state.nodes import natural

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
