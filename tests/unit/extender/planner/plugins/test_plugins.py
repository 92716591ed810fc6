"""What the plugins for order and placement decide."""

from typing import Any

import pytest
from extender_world import World, of, where
from gpus_world import CPU1, divided

from extender.planner.actions.stalegangeviction import StaleGangEviction
from extender.planner.framework import decisions
from extender.planner.framework.answers import ReservationRules
from extender.planner.framework.registry import PlannerPlugin
from extender.planner.framework.statement import Statement
from extender.planner.plugins.admission import Drf
from extender.planner.plugins.order import Elastic, Reservations, SubGroupOrder, TaskOrder, share_of_minimum
from extender.planner.plugins.pages import ReflectJobOrder, SnapshotPages
from extender.planner.plugins.scores import GpuPack, GpuSpread, NodePlacement, ResourceType
from extender.planner.state.podset import PodSetView
from muster.api.volcano.scheduling import SubGroupPolicy

GPU1 = {"nvidia.com/gpu": 1}
GPU8 = {"nvidia.com/gpu": 8}


@pytest.mark.parametrize(("plugins", "node"), [
    pytest.param([NodePlacement({})], "node-1", id="binpack"),
    pytest.param([NodePlacement({"gpu": "spread"})], "node-0", id="spread"),
    pytest.param([GpuPack({})], "node-1", id="gpupack"),
    pytest.param([GpuSpread({})], "node-0", id="gpuspread"),
    pytest.param([NodePlacement({"gpu": "spread"}), GpuPack({})], "node-1", id="a larger magnitude decides"),
    pytest.param([GpuSpread({}), NodePlacement({})], "node-0", id="a larger magnitude decides, spread"),
])  # fmt: skip
def test_strategies_choose_the_fuller_or_the_emptier_node(plugins: list[PlannerPlugin], node: str) -> None:
    """node-0 is empty, node-1 gives 4 of its 8 GPUs."""
    world = World().nodes(2)
    world.pod("ns/x", "t", 0, {"nvidia.com/gpu": 4, "cpu": 16}, node="node-1", phase="Running")
    world.plugins += plugins
    world.gang("a", {"worker": (1, GPU1)})
    assert where(world.plan()) == {"a": [node]}


def test_gangs_below_their_minimum_go_before_gangs_that_want_more() -> None:
    """The older gang runs with its minimum; the younger one gets the node."""
    world = World().nodes(2)
    world.plugins.insert(0, Elastic({}))
    old = world.gang("old", {"worker": (2, GPU8)}, min_member=1, min_task_member={"worker": 1})
    world.pod(old, "worker", 0, GPU8, node="node-0", phase="Running")
    world.pod(old, "worker", 1, GPU8, gated=True)
    world.now += 1
    world.gang("young", {"worker": (1, GPU8)})
    assert [place.gang.key for place in of(world.plan(), decisions.Place)] == ["ns/young"]


@pytest.mark.parametrize(("priorities", "first"), [
    (["", "5", "7"], 2), (["", "-5", "-7"], 1), (["x", "", "-9"], 2), (["", "x", "5x"], 0), (["-", "3", "3"], 1),
    (["0", "10", "9"], 1),
])  # fmt: skip
def test_members_with_a_higher_task_priority_go_first(priorities: list[str], first: int) -> None:
    """There is room for one of them; what is no integer is no priority."""
    world = World().nodes(1)
    world.plugins.append(TaskOrder({}))
    key = world.gang("a", {"worker": (len(priorities), GPU8)}, min_member=1, min_task_member={"worker": 1})
    for rank, priority in enumerate(priorities):
        labels = {"muster.dev/task-priority": priority} if priority else {}
        world.pod(key, "worker", rank, GPU8, gated=True, labels=labels)
    assert [rank for rank, node in enumerate(where(world.plan())["a"]) if node] == [first]


def test_sub_groups_are_placed_whole() -> None:
    """Room for five pods, sub-groups of two, at least one of them: four pods."""
    world = World().nodes(5)
    key = world.gang("a", {"worker": (6, GPU8)}, min_member=2, min_task_member={"worker": 2})
    policy = SubGroupPolicy(name="worker", sub_group_size=2, min_sub_groups=1)
    world.change(world.state.groups[key], spec={"sub_group_policy": [policy]})
    assert where(world.plan()) == {"a": ["node-0", "node-1", "node-2", "node-3"]}


@pytest.mark.parametrize(("taken", "minimum", "given", "share"), [
    (0, 0, 0, (True, 0.0)), (2, 0, 0, (True, 2.0)), (1, 1, 0, (True, 1.0)), (1, 4, 0, (False, 0.25)),
    (1, 4, 2, (False, 0.75)), (1, 4, 3, (True, 1.0)), (3, 2, 0, (True, 1.5)),
])  # fmt: skip
def test_pod_sets_below_the_minimum_come_first(taken: int, minimum: int, given: int, share: tuple[bool, float]) -> None:
    """Then those with the smaller share of it, with what they get now."""
    pod_set = PodSetView("worker", None, 9, minimum, taken=dict.fromkeys(range(taken), "node-0"))
    assert share_of_minimum(pod_set, given) == share


def test_orders_follow_the_trials_of_a_cycle() -> None:
    """Of the pod sets of a gang by what they get, of gangs by what they have with it; what is undone does not count."""
    world = World().nodes(4)
    world.plugins = [SubGroupOrder({}), Elastic({}), Drf({})]
    keys = [world.gang(name, {"one": (2, GPU1), "two": (2, GPU1)}, min_member=1) for name in ("a", "b")]
    session = world.session()
    first, second = (world.view(key) for key in keys)
    one, two = first.pod_sets
    hooks = session.hooks

    def orders() -> tuple[int, int, int]:
        elastic, drf = hooks.job_order.functions
        return hooks.pod_set_order.call(one, two), elastic(first, second), drf(first, second)

    assert orders() == (0, 0, 0)
    statement = Statement(session)
    statement.allocate(first, "one", [0], 0, one.cls)
    assert orders() == (1, 1, 1)
    mark = statement.checkpoint()
    statement.allocate(first, "two", [0], 0, one.cls)
    assert orders() == (0, 1, 1)
    statement.rollback(mark)
    assert orders() == (1, 1, 1)
    statement.allocate(first, "two", [0], 0, one.cls)
    assert orders() == (0, 1, 1)
    statement.discard()
    assert orders() == (0, 0, 0)


@pytest.mark.parametrize(("arguments", "rules"), [
    ({}, ReservationRules()),
    ({"mode": "strict", "patience": "1m", "heads": 3}, ReservationRules(mode="strict", patience_s=60, heads=3)),
    ({"expiry": "2h"}, ReservationRules(expiry_s=7200)),
])  # fmt: skip
def test_rules_of_reservations(arguments: dict[str, Any], rules: ReservationRules) -> None:
    """Those of the arguments, else the defaults."""
    world = World()
    world.plugins.append(Reservations(arguments))
    assert world.session().hooks.reservation_rules.call() == rules


def stale_world() -> tuple[World, StaleGangEviction]:
    """A gang of two that was whole; one member is gone."""
    world = World().nodes(2)
    key = world.gang("a", {"worker": (2, GPU8)})
    world.plan()
    world.change(world.state.placements[key], status={"phase": "Bound"})
    world.pod(key, "worker", 0, GPU8, node="node-0", phase="Running")
    return world, StaleGangEviction()


def test_what_is_left_of_a_gang_is_evicted_after_the_grace_period() -> None:
    """Not before."""
    world, action = stale_world()
    assert not of(world.session(action), decisions.Evict)
    world.now += 61
    assert [evict.pod.name for evict in of(world.session(action), decisions.Evict)] == ["a-worker-0"]


@pytest.mark.parametrize("phase", ["Failed", "Succeeded"])
def test_members_that_ended_do_not_make_a_gang_stale(phase: str) -> None:
    """Whether a failure ends the job is its owner's decision; a success means that the gang is finishing."""
    world, action = stale_world()
    world.pod("ns/a", "worker", 1, GPU8, node="node-1", phase=phase)
    world.session(action)
    world.now += 61
    assert not of(world.session(action), decisions.Evict)


def test_pages_show_the_snapshot_and_the_order() -> None:
    """As plain data."""
    world = World().nodes(1)
    world.plugins += [SnapshotPages({}), ReflectJobOrder({})]
    world.gang("big", {"worker": (9, GPU8)})
    pages = world.plan().hooks.http_handler.call()
    assert pages["snapshot"]()["nodes"]["node-0"]["nvidia.com/gpu"] == [8000, 8000]
    assert pages["snapshot"]()["gangs"]["ns/big"]["minMember"] == 9
    assert pages["job-order"]() == [{"gang": "ns/big", "queue": "default", "priority": 0}]


MIG = {"nvidia.com/mig-1g.5gb": 7}


@pytest.mark.parametrize(("gpus", "asked", "node"), [
    pytest.param(({"nvidia.com/gpu": 8}, {}, {}), CPU1, "node-1", id="whole GPUs"),
    pytest.param((MIG | {"nvidia.com/gpu": 4}, {}, {}), CPU1, "node-1", id="both"),
    pytest.param((MIG, {}, {}), CPU1, "node-1", id="MIG devices"),
    pytest.param((MIG, {}, {"nvidia.com/gpu": 8}), CPU1, "node-1", id="MIG devices beside whole ones"),
    pytest.param((MIG, {"nvidia.com/gpu": 8}, {}), CPU1, "node-2", id="the others have some"),
    pytest.param((MIG, {}, {}), {"nvidia.com/mig-1g.5gb": 1}, "node-0", id="a pod with a MIG device"),
])  # fmt: skip
def test_pods_without_gpus_go_to_their_like(gpus: tuple[dict[str, int], ...], asked: dict[str, int], node: str) -> None:
    """Although the other nodes come first by name; MIG devices are GPUs too, also where no node has whole ones."""
    world = World()
    for number, there in enumerate(gpus):
        divided(world, f"node-{number}", there)
    world.plugins.append(ResourceType({}))
    world.gang("a", {"worker": (1, asked)})
    assert where(world.plan()) == {"a": [node]}
