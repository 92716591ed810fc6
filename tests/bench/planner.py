"""How long the planner thinks."""

from collections.abc import Iterator
from typing import Any

from extender_world import World

from extender.planner.actions.allocate import Allocate
from extender.planner.actions.enqueue import Enqueue
from extender.planner.actions.progress import TrackPlacements
from tests.bench.timing import Result, cpu_ms

NODES = 5000
ITSELF = {"matchLabels": {"volcano.sh/job-name": "a"}}
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
DEMANDS: dict[str, dict[str, Any]] = {
    "one per host": {"affinity": {"podAntiAffinity": {REQUIRED: [{"topologyKey": "host", "labelSelector": ITSELF}]}}},
    "one zone": {"affinity": {"podAffinity": {REQUIRED: [{"topologyKey": "zone", "labelSelector": ITSELF}]}}},
    "spread over zones": {"topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "zone",
        "whenUnsatisfiable": "DoNotSchedule", "labelSelector": ITSELF}]},
    "a host port": {"hostNetwork": True, "containers": [{"name": "main", "ports": [{"containerPort": 80}]}]},
}  # fmt: skip
"""What the pods of a gang demand of each other."""


def run() -> Iterator[Result]:
    """Plan time by gang size, and the cost of a cycle in which nothing can be done."""
    for nodes in (500, NODES, 15_000):
        for members in (8, 64, 512, 1024):
            world = world_of(nodes)
            world.gang("a", {"worker": (members, {"cpu": 4, "nvidia.com/gpu": 8 if members <= nodes else 1})})
            budget = 3.0 if (nodes, members) == (NODES, 512) else None
            world.session(Allocate())  # the masks of the class are made once and kept
            ms = cpu_ms(lambda world=world: world.session(Allocate()))
            yield Result(f"plan of one {members}-pod gang, {nodes} nodes", ms, budget)
    for what, demand in DEMANDS.items():
        world = world_of(NODES)
        for index in range(NODES):
            world.node(f"node-{index}", labels={"zone": f"zone-{index % 10}", "host": f"node-{index}"})
        world.gang("a", {"worker": (512, {"cpu": 4, "nvidia.com/gpu": 8})}, spec=demand)
        world.session(Allocate())
        ms = cpu_ms(lambda world=world: world.session(Allocate()), runs=5)
        yield Result(f"plan of one 512-pod gang, {what}", ms)
    world = world_of(NODES)
    for number in range(1000):
        world.gang(f"g{number}", {"worker": (64, {"cpu": 4, "nvidia.com/gpu": 9})})
    actions = (TrackPlacements(), Enqueue(), Allocate())
    world.session(*actions)
    ms = cpu_ms(lambda: world.session(*actions), runs=5)
    yield Result(f"cycle, {NODES} nodes, 1000 waiting gangs, no change", ms, 20.0)


def world_of(nodes: int) -> World:
    """A cluster of equal nodes."""
    world = World(checked=False)
    world.nodes(nodes)
    return world
