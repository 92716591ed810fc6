"""Nodes that refused a member are left out for a while, and the placement says so."""

from extender_world import World, of, slots

from extender.placementcontent import closed
from extender.planner.actions.allocate import Allocate
from extender.planner.actions.progress import AVOID_S
from extender.planner.framework import decisions
from extender.planner.state.avoided import avoided_nodes
from muster.api.kubernetes.meta import format_time
from muster.api.muster.placement import AvoidedNode
from muster.api.muster.reason import reason_of

GPU8 = {"cpu": 4, "nvidia.com/gpu": 8}


def abandoned(world: World, node: str, until: float) -> None:
    """Gang `a` had a placement; `node` refused a member."""
    world.gang("a", {"worker": (2, GPU8)})
    world.plan()
    placement = world.state.placements["ns/a"]
    placement.status.phase = "Abandoned"
    placement.status.avoided = [AvoidedNode(node=node, until=format_time(until))]
    world.state.on_placement(None, placement)


def test_what_a_placement_says_is_avoided_until_its_time() -> None:
    """Also by a planner that was not there when the node refused."""
    world = World().nodes(3)
    abandoned(world, "node-0", world.now + 30)
    gangs = [world.view("ns/a")]
    assert avoided_nodes(gangs, world.now) == {"ns/a": {"node-0"}}
    assert avoided_nodes(gangs, world.now + 30) == {}
    [place] = of(world.session(Allocate()), decisions.Place)
    assert slots(place) == {"worker": ["node-1", "node-2"]}


def test_a_node_that_is_avoided_already_keeps_its_time() -> None:
    """A second refusal elsewhere does not make the first one longer."""
    world = World().nodes(3)
    abandoned(world, "node-0", world.now + 30)
    close = decisions.ClosePlacement(world.view("ns/a"), "Abandoned", reason_of("node-1 refused a member"))
    assert closed(close, now=world.now, avoided={"node-0", "node-1"}).status.avoided == [
        AvoidedNode(node="node-0", until=format_time(world.now + 30)),
        AvoidedNode(node="node-1", until=format_time(world.now + AVOID_S)),
    ]
