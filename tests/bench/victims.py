"""How long a victim search takes."""

from collections.abc import Iterator

from extender_world import World

from extender.planner.actions.allocate import Allocate
from extender.planner.actions.displace import Preempt
from extender.planner.framework.decisions import MakeRoom
from muster.api.kubernetes.core import PriorityClass
from muster.api.kubernetes.meta import ObjectMeta
from tests.bench.timing import Result, cpu_ms

GANGS = 2000
MEMBERS = 512
BUDGET_MS = 50.0


def run() -> Iterator[Result]:
    """A gang of 512 pods among 2,000 running gangs of 8 pods each, on 2,000 nodes that are full."""
    for scattered, gpus in ((False, 1), (True, 1), (False, 8)):
        world = world_of(scattered=scattered)
        pods = MEMBERS if gpus == 1 else MEMBERS // 2
        world.gang("asker", {"worker": (pods, {"nvidia.com/gpu": gpus})}, priority_class="high")
        assert not world.session(Allocate()).decided(MakeRoom)
        warm = Preempt()
        world.session(Allocate(), warm)  # it knows what of every gang can go, as from one cycle to the next
        without = cpu_ms(lambda world=world: world.session(Allocate()), runs=5)
        cold = cpu_ms(lambda world=world: world.session(Allocate(), Preempt()), runs=5) - without
        kept = cpu_ms(lambda world=world, warm=warm: world.session(Allocate(), fresh(warm)), runs=5) - without
        found = world.session(Allocate(), Preempt()).decided(MakeRoom)
        assert found, "nothing was found"
        what = f"{pods}-pod gang of {gpus} GPUs each, {GANGS} gangs {'scattered' if scattered else 'packed'}"
        yield Result(f"victim search, {what}, first one ({len(found[0].victims)} victims)", cold)
        yield Result(f"victim search, {what}", kept, BUDGET_MS)


def fresh(action: Preempt) -> Preempt:
    """The action, without what it knows to be of no use."""
    action._hopeless.clear()
    return action


def world_of(*, scattered: bool) -> World:
    """2,000 nodes of 8 GPUs, each used up by members of running gangs."""
    world = World(checked=False)
    world.nodes(GANGS)
    for name, value in (("low", 1), ("high", 10)):
        world.state.on_priority_class(None, PriorityClass(metadata=ObjectMeta(name=name, uid=name), value=value))
    requests = {"nvidia.com/gpu": 1}
    for number in range(GANGS):
        key = world.gang(f"g{number}", {"worker": (8, requests)}, phase="Running", priority_class="low")
        for rank in range(8):
            column = (number + rank * 251) % GANGS if scattered else number
            world.pod(key, "worker", rank, requests, node=f"node-{column}", phase="Running")
    return world
