"""Room for gangs that must sit together is made in one domain."""

import pytest
from extender_world import of, only, slots
from victims_world import Cluster, victims

from extender.planner.actions.consolidate import Consolidate
from extender.planner.actions.displace import Preempt
from extender.planner.actions.evicting import Evicting
from extender.planner.framework.decisions import MakeRoom, Place, Reserve
from extender.planner.plugins.topology import TopologyPlugin

RACK = {"muster.dev/topology-required": "rack"}


def racks(nodes: int, size: int) -> Cluster:
    """Racks of so many nodes."""
    world = Cluster(nodes)
    world.plugins = [*world.plugins, TopologyPlugin({"levels": ["rack"]})]
    for number in range(nodes):
        world.node(f"node-{number}", labels={"rack": f"r{number // size}"})
    return world


def near(world: Cluster, key: str) -> str:
    """The gang must be in one rack."""
    world.annotate(key, "muster.dev/topology-required", "rack")
    return key


@pytest.mark.parametrize("action", [Preempt, Consolidate])
def test_victims_are_neighbours(action: type[Evicting]) -> None:
    """Each rack has one free node; the cheapest victims are spread, and of use only in one rack."""
    world = racks(6, 2)
    world.actions = [action()]
    for index in range(3):
        world.runs(f"g{index}", 1, gpus=4, first=2 * index)
    near(world, world.asks("a", 2, gpus=8))
    session = world.cycle()
    assert len(only(session, MakeRoom).victims) == 1
    place = next(place for place in of(session, Place) if place.gang.key == "ns/a")
    assert len({int(node.removeprefix("node-")) // 2 for node in slots(place)["worker"]}) == 1


def test_the_domain_that_lacks_least_is_made_free() -> None:
    """A node that takes nobody is no room: one victim makes the second rack free, where the first needs two."""
    world = racks(6, 3)
    for number in (0, 1, 4, 5):
        world.runs(f"g{number}", 1, first=number)
    world.node("node-2", labels={"rack": "r0"}, unschedulable=True)
    near(world, world.asks("a", 2))
    assert len(victims(world.cycle())) == 1


def test_nobody_goes_where_no_domain_would_do() -> None:
    """Three nodes in a rack of two: whoever left, it would be in vain."""
    world = racks(6, 2)
    for index in range(6):
        world.runs(f"g{index}", 1, gpus=8, first=index)
    near(world, world.asks("a", 3, gpus=8))
    assert not victims(world.cycle())


def test_a_gang_that_moves_stays_together() -> None:
    """Room for one is made by moving another, which must be in one rack itself: not into the scattered gaps."""
    world = racks(8, 2)
    world.actions = [Consolidate()]
    near(world, world.runs("small", 2, gpus=4, first=0))
    world.runs("x", 1, gpus=4, first=2)
    world.runs("y", 1, gpus=8, first=3)
    world.runs("z", 2, gpus=8, first=4)
    world.runs("u", 1, gpus=4, first=6)
    world.runs("v", 1, gpus=8, first=7)
    near(world, world.asks("a", 2, gpus=8))
    moved = [place for place in of(world.cycle(), Place) if place.gang.key == "ns/small"]
    for place in moved:
        assert len({int(node.removeprefix("node-")) // 2 for node in slots(place)["worker"] if node}) == 1


def test_what_is_reserved_is_one_domain() -> None:
    """The head of a queue gets a rack reserved for it, as soon as one is known to become free."""
    world = racks(4, 2)
    for index, left in enumerate((600.0, 900.0, 700.0, 800.0)):
        key = world.gang(f"g{index}", {"worker": (1, {"nvidia.com/gpu": 8})}, phase="Running", runtime=f"{left:.0f}s")
        world.pod(key, "worker", 0, {"nvidia.com/gpu": 8}, node=f"node-{index}", phase="Running", since=world.now)
    near(world, world.asks("a", 2, gpus=8))
    (nodes,) = ([run.node for run in pod_set.runs] for pod_set in only(world.plan(), Reserve).pod_sets)
    assert nodes == ["node-2", "node-3"]
