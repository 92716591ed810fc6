"""How long a cycle takes, and how much memory, with many queues and gangs that wait in them."""

import resource
from collections.abc import Iterator

from extender_world import World

from extender.planner.actions.allocate import Allocate
from extender.planner.actions.enqueue import Enqueue
from extender.planner.actions.progress import TrackPlacements
from extender.planner.plugins.order import Elastic, GangPlugin, Priority
from extender.planner.plugins.predicates import Predicates
from extender.planner.plugins.proportion import Proportion
from tests.bench.timing import Result, cpu_ms

QUEUES = 1000
PER_DEPARTMENT = 10
GANGS = 10_000
NODES = 5000


def run() -> Iterator[Result]:
    """A cycle in which nothing fits, with one queue and with many; the first one adds everything up."""
    actions = (TrackPlacements(), Enqueue(), Allocate())
    for queues in (1, QUEUES):
        world = world_of(queues)
        ms = cpu_ms(lambda world=world: world.session(*actions), runs=3)
        yield Result(f"cycle, {queues} queues, {GANGS} waiting gangs, no change", ms)
    mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    yield Result("memory in MiB, objects of the test included", mib)


def world_of(queues: int) -> World:
    """Full nodes, and gangs of one GPU each that wait in queues of two levels."""
    world = World(checked=False)
    world.plugins = [GangPlugin({}), Priority({}), Elastic({}), Proportion({}), Predicates({})]
    world.nodes(NODES, gpus=8)
    for number in range(queues):
        if number % PER_DEPARTMENT == 0:
            world.queue(f"department-{number}")
        department = number - number % PER_DEPARTMENT
        world.queue(f"queue-{number}", parent=f"department-{department}", weight=number % 7 + 1)
    for number in range(NODES):
        key = world.gang(f"running-{number}", {"worker": (1, {"nvidia.com/gpu": 8})}, queue=f"queue-{number % queues}")
        world.pod(key, "worker", 0, {"nvidia.com/gpu": 8}, node=f"node-{number}", phase="Running")
    for number in range(GANGS):
        world.gang(f"g{number}", {"worker": (4, {"cpu": 4, "nvidia.com/gpu": 1})}, queue=f"queue-{number % queues}")
    return world
