"""Repairs carried out: through the Eviction API, by force where no kubelet is left, and told once."""

from types import SimpleNamespace
from typing import Any, cast

import pytest
from extender_world import NOW, cluster_of, of
from repair_world import XID, RepairWorld

from extender.gangevents import GangEvents
from extender.planner.actions.repair import SETTLE_S
from extender.planner.framework import decisions
from extender.repairs import REPAIRS, THERE_S, Repairs
from extender.writes import Writes
from muster.api.kubernetes.core import Taint
from muster.kube.errors import Conflict, TooManyRequests


class Api:
    """Answers evictions and deletions, and knows the names of some Nodes."""

    def __init__(self, *nodes: str, budget: bool = False, conflicts: int = 0) -> None:
        self.nodes = nodes
        self.budget = budget
        self.conflicts = conflicts
        self.done: list[str] = []
        self.asked: list[str] = []
        self.events: list[str] = []

    def evict(self, _namespace: str, name: str, _uid: str, *, resource_version: str) -> None:
        """As the Eviction API; a budget forbids every eviction, and the first ones may come while the pod changes."""
        assert resource_version
        if self.conflicts:
            self.conflicts -= 1
            raise Conflict("the pod has changed")
        if self.budget:
            raise TooManyRequests("the budget db needs 1 pod")
        self.done.append(f"evict {name}")

    def delete(self, _resource: Any, name: str, _namespace: str, *, uid: str, **options: Any) -> None:
        """As a DELETE."""
        assert uid
        self.done.append(f"delete {name}{' by force' if options.get('grace_period_s') == 0 else ''}")

    def list(self, _resource: Any, *, field_selector: str) -> list[str]:
        """As a list of Nodes of one name."""
        name = field_selector.removeprefix("metadata.name=")
        self.asked.append(name)
        return [name] if name in self.nodes else []

    def event(self, obj: Any, _kind: str, reason: str, message: str) -> None:
        """As the recorder."""
        self.events.append(f"{obj.metadata.name} {reason}: {message.partition(':')[0]}")


@pytest.fixture
def world() -> RepairWorld:
    """A gang of two on four nodes."""
    world = RepairWorld().nodes(4)
    world.runs("a", 2)
    return world


def carried_out(world: RepairWorld, api: Api, *, written: bool = True, times: int = 1) -> None:
    """The repairs of the cycle after the faults have settled, as often as this."""
    world.look()
    session = world.look(SETTLE_S)
    for place in of(session, decisions.Place):
        if written:
            world.place(place)
    clock = SimpleNamespace(now=NOW)
    events = GangEvents(cast("Any", api), wall_s=lambda: NOW)
    repairs = Repairs(cast("Any", api), cluster_of(world), events, wall_s=lambda: cast("float", clock.now))
    writes = Writes(active=lambda: True, wake=lambda: None, wall_s=lambda: cast("float", clock.now))
    for _ in range(times):
        repairs.carry_out(session, writes)
    writes.stop()


def count(policy: str, kind: str) -> float:
    """The repairs that the metric has counted."""
    return float(REPAIRS.labels(policy, kind)._value.get())


def test_a_member_on_a_suspect_node_is_evicted_once_and_the_gang_and_its_owner_hear_of_it(world: RepairWorld) -> None:
    """A second look at the same decision asks nobody again."""
    world.node("node-1", conditions=XID)
    api, before = Api(), count("replace", "suspect")
    carried_out(world, api, times=2)
    assert api.done == ["evict a-worker-1"]
    assert api.events == ["a NodeFault: repairs", "a NodeFault: repairs"]
    assert count("replace", "suspect") == before + 1


def test_a_member_that_has_just_changed_is_evicted_by_the_next_cycle(world: RepairWorld) -> None:
    """The kubelet or kube-scheduler has written into its status; this costs the gang no time."""
    world.node("node-1", conditions=XID)
    api = Api(conflicts=1)
    carried_out(world, api, times=2)
    assert api.done == ["evict a-worker-1"]
    assert api.events == ["a NodeFault: repairs", "a NodeFault: repairs"]


def test_nobody_goes_whose_new_node_is_not_kept(world: RepairWorld) -> None:
    """The placement could not be written; the next cycle decides again."""
    world.node("node-1", conditions=XID)
    api = Api()
    carried_out(world, api, written=False)
    assert (api.done, api.events) == ([], [])


def test_a_budget_holds_for_members_that_run_and_not_for_dead_ones(world: RepairWorld) -> None:
    """A pod on a node that does not answer is disrupted already."""
    world.node("node-1", conditions=XID)
    api = Api(budget=True)
    carried_out(world, api)
    assert (api.done, api.events) == ([], [])
    world = RepairWorld().nodes(4)
    world.runs("a", 2)
    world.node("node-1", conditions={"Ready": "Unknown"}, since=world.now - 60)
    carried_out(world, api)
    assert api.done == ["delete a-worker-1"]


def test_a_pod_is_deleted_by_force_only_where_its_node_is_gone_or_out_of_service(world: RepairWorld) -> None:
    """Anywhere else a kubelet may still run it."""
    world.node("node-1", taints=[Taint(key="node.kubernetes.io/out-of-service", effect="NoExecute")])
    api = Api("node-1")
    carried_out(world, api)
    assert (api.done, api.asked) == (["delete a-worker-1 by force"], [])
    world = RepairWorld().nodes(4)
    world.runs("a", 2)
    world.state.on_node(world.state.nodes.nodes[world.state.nodes.index["node-1"]], None)
    world.gone_nodes = frozenset({"node-1"})
    api = Api()
    carried_out(world, api)
    assert (api.done, api.asked) == (["delete a-worker-1 by force"], ["node-1"])


def test_a_node_that_the_planner_does_not_know_is_asked_for_and_only_gone_if_it_does_not_exist(
    world: RepairWorld,
) -> None:
    """One that got the label of another pool has left the watch, and runs on."""
    world.state.on_node(world.state.nodes.nodes[world.state.nodes.index["node-1"]], None)
    session = world.look()
    assert session.unsure_nodes == {"node-1"}
    clock = SimpleNamespace(now=NOW)
    api = Api("node-1")
    repairs = Repairs(cast("Any", api), cluster_of(world), cast("Any", None), wall_s=lambda: cast("float", clock.now))
    for _ in range(2):
        repairs.ask(session)
    assert (repairs.gone, api.asked) == (frozenset(), ["node-1"])
    api.nodes = ()
    clock.now += THERE_S
    for _ in range(2):
        repairs.ask(session)
    assert (repairs.gone, api.asked) == ({"node-1"}, ["node-1", "node-1"])
    session.unsure_nodes.clear()
    repairs.ask(session)
    assert repairs.gone == frozenset()
