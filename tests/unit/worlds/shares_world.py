"""A cluster whose queues have the same share each, by a plugin."""

import numpy as np
from victims_world import Cluster

from extender.planner.actions.displace import Preempt, Reclaim
from extender.planner.framework.operations import Eviction, Operation, Scenario
from extender.planner.framework.registry import Action, PlainPlugin
from extender.planner.framework.session import Session
from extender.planner.plugins.proportion import Proportion
from extender.planner.state.amounts import Amounts
from extender.planner.state.gangs import GangView


class Shares(PlainPlugin):
    """So many GPUs for each queue; one that has more may lose gangs until it has that."""

    name = "shares"

    def __init__(self, gpus: int) -> None:
        super().__init__({})
        self.gpus = 1000 * gpus
        self.used: dict[str, Amounts] = {}

    def on_session_open(self, session: Session) -> None:
        """Counts, and registers all hooks about shares."""
        snapshot = session.snapshot
        self.row = snapshot.axis["nvidia.com/gpu"]
        self.used = {name: np.zeros(snapshot.free.shape[0]) for name in snapshot.queues}
        for gang in snapshot.gangs:
            for pod in gang.pods:
                if pod.alive:
                    self.used[gang.queue] += snapshot.row_of(pod.cls)
        session.hooks.evicted.add(lambda eviction: self._count(eviction, -1))
        session.hooks.unevicted.add(lambda eviction: self._count(eviction, 1))
        session.hooks.allocated.add(lambda operation: self._count(operation, 1))
        session.hooks.deallocated.add(lambda operation: self._count(operation, -1))
        session.hooks.can_reclaim_resources.add(self._may)
        session.hooks.reclaim_scenario_validator.add(self._agrees)
        session.hooks.get_queue_allocated_resources.add(lambda name: self.used[name])
        session.hooks.get_queue_fair_share.add(lambda name: np.full_like(self.used[name], self.gpus))

    def _count(self, entry: Operation | Eviction, sign: int) -> None:
        self.used[entry.gang.queue] += sign * entry.amount

    def _may(self, gang: GangView, amounts: Amounts) -> bool:
        return bool(self.used[gang.queue][self.row] + amounts[self.row] <= self.gpus)

    def _agrees(self, scenario: Scenario) -> bool:
        left = {name: used[self.row] for name, used in self.used.items()}
        for chunk in scenario.chunks:
            left[chunk.gang.queue] += chunk.amounts[self.row]  # the session counts without them
        for chunk in scenario.chunks:
            if left[chunk.gang.queue] <= self.gpus:
                return False
            left[chunk.gang.queue] -= chunk.amounts[self.row]
        return True


def deserving(nodes: int, *actions: Action, **deserved: int) -> Cluster:
    """Queues that deserve so many GPUs of nodes with 8 each, by the plugin proportion."""
    world = Cluster(nodes, checked=False)
    world.actions = list(actions)
    world.plugins = [Proportion({}), *world.plugins]
    for name, gpus in deserved.items():
        world.queue(name, deserved={"nvidia.com/gpu": gpus})
    return world


def one_node(gpus: int, **deserved: int) -> Cluster:
    """One node, whose queues deserve so many GPUs of it."""
    world = deserving(0, Reclaim(), Preempt(), **deserved)
    world.node("node-0", gpus=gpus)
    return world


def cluster(nodes: int, gpus: int) -> Cluster:
    """Queues a, b and c that have so many GPUs each."""
    world = Cluster(nodes)
    for name in "abc":
        world.queue(name)
    world.plugins.append(Shares(gpus))
    world.actions = [Reclaim()]
    return world
