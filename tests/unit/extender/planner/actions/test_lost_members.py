"""A gang in one rack loses a node, and nothing else in the rack is free."""

from extender_world import of
from topology_world import Racks, racks_of

from extender.planner.actions.allocate import Allocate
from extender.planner.actions.enqueue import Enqueue
from extender.planner.actions.stalegangeviction import StaleGangEviction
from extender.planner.framework import decisions
from extender.planner.framework.config import SchedulerConfig

GPU8 = {"nvidia.com/gpu": 8}


def dead_node() -> tuple[Racks, str]:
    """A gang of two in one rack of two nodes; one node dies, its pod is made anew. Another rack is empty."""
    world = Racks(1, 2, 2)
    world.growth_delay_s = 0.0
    key = world.asks("a", 2, 8, required="rack", phase="Running")
    world.plan()
    nodes = world.placed(key)["worker"]
    assert racks_of(nodes) == ["b0r0", "b0r0"]
    for rank, node in enumerate(nodes):
        world.pod(key, "worker", rank, GPU8, node=node, pin=node, epoch=1, phase="Running")
    world.close(world.plan())
    dead = world.state.nodes.nodes[world.state.nodes.index[nodes[1]]]
    world.state.on_node(dead, None)
    world.state.on_pod(world.pod(key, "worker", 1, GPU8, node=nodes[1], phase="Failed"), None)
    world.pod(key, "worker", 1, GPU8, gated=True)
    return world, key


def test_it_is_told_what_the_rack_lacks() -> None:
    """No pod is above the minimum, and no other gang waits for which room would be kept."""
    world, _ = dead_node()
    (why,) = of(world.plan(), decisions.Unschedulable)
    assert why.message == "1 pod must be in one domain of level rack; b0/r0, the closest of 2, has room for 0: 1 short"


def test_without_topology_it_is_told_what_all_nodes_lack() -> None:
    """The pod is one that the gang has lost."""
    world = Racks(1, 1, 2)
    key = world.asks("a", 2, 8, phase="Running")
    world.plan()
    nodes = world.placed(key)["worker"]
    for rank, node in enumerate(nodes):
        world.pod(key, "worker", rank, GPU8, node=node, pin=node, epoch=1, phase="Running")
    world.close(world.plan())
    world.node(nodes[1], gpus=0)
    world.state.on_pod(world.pod(key, "worker", 1, GPU8, node=nodes[1], phase="Failed"), None)
    world.pod(key, "worker", 1, GPU8, gated=True)
    (why,) = of(world.plan(), decisions.Unschedulable)
    assert why.message.startswith("worker: 1 pod that the gang has lost waits for room; of 2 nodes: ")


def test_it_moves_to_another_rack_after_the_grace_period() -> None:
    """By the actions that run unless others are configured: the rest is evicted, and all are placed together."""
    assert "stalegangeviction" in SchedulerConfig().actions.split(", ")
    world, key = dead_node()
    actions = Enqueue(), Allocate(), StaleGangEviction()
    assert not of(world.session(*actions), decisions.Evict)
    world.now += 61
    (evict,) = of(world.session(*actions), decisions.Evict)
    assert evict.pod.name == "a-worker-0"
    world.state.on_pod(world.pod(key, "worker", 0, GPU8, node=evict.pod.node, phase="Failed"), None)
    world.pod(key, "worker", 0, GPU8, gated=True)
    world.plan()
    assert racks_of(world.placed(key)["worker"]) == ["b0r1", "b0r1"]
