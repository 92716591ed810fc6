"""Gangs get all their nodes or none."""

from typing import Any

import pytest
from extender_world import GPU1, GPU8, World, of, only, slots
from hypothesis import given, settings
from hypothesis import strategies as st
from state_oracle import recomputed_use

from extender.planner.framework import decisions
from muster.api.kubernetes.core import PriorityClass, Taint

LARGE_FIRST = {"small": ["node-1", "node-1"], "large": ["node-0"]}


@pytest.mark.parametrize(("nodes", "tasks", "more", "expected"), [
    pytest.param([{}] * 12, {"worker": (20, {"nvidia.com/gpu": 4})}, {},
                 {"worker": [f"node-{rank // 2}" for rank in range(20)]},
                 id="neighbouring ranks on neighbouring nodes, in the natural order of names"),
    pytest.param([{}] * 4, {"master": (1, GPU8), "worker": (5, GPU8)},
                 {"min_member": 3, "min_task_member": {"master": 1, "worker": 2}},
                 {"master": ["node-0"], "worker": ["node-1", "node-2", "node-3"]},
                 id="minimums of tasks first, and what else fits on top"),
    pytest.param([{}], {"master": (1, GPU8), "worker": (4, GPU8)}, {"min_member": 1}, {"master": ["node-0"]},
                 id="not the minimums of tasks where minMember is below their sum, as in Volcano"),
    pytest.param([{"gpus": 8}, {"gpus": 2}], {"small": (2, GPU1), "large": (1, GPU8)}, {}, LARGE_FIRST,
                 id="large pods before small ones, which would break up the only node for them"),
    pytest.param([{"gpus": 0, "cpu": 8}, {"gpus": 0, "cpu": 2}], {"small": (2, {"cpu": 1}), "large": (1, {"cpu": 8})},
                 {}, LARGE_FIRST, id="by what nodes have: 8 CPUs of 10 are a larger part than 2 of 10"),
])  # fmt: skip
def test_where_a_gang_that_fits_is_placed(
    nodes: list[dict[str, int]], tasks: dict[str, Any], more: dict[str, Any], expected: dict[str, list[str]]
) -> None:
    """All of its minimum, by the first placement."""
    world = World()
    for index, node in enumerate(nodes):
        world.node(f"node-{index}", **node)
    world.gang("a", tasks, **more)
    place = only(world.plan(), decisions.Place)
    assert (slots(place), place.epoch) == (expected, 1)


def test_of_two_gangs_that_need_all_nodes_only_the_older_is_placed_and_the_other_says_why() -> None:
    """The second waits with one sentence and holds nothing."""
    world = World().nodes(4)
    world.gang("a", {"worker": (4, GPU8)})
    world.now += 1
    world.gang("b", {"worker": (4, GPU8)})
    session = world.plan()
    assert [place.gang.key for place in of(session, decisions.Place)] == ["ns/a"]
    [waits] = of(session, decisions.Unschedulable)
    assert waits.gang.key == "ns/b"
    assert waits.message == (
        "worker: room is missing for 4 pods of 8 nvidia.com/gpu each: none fits now; of 4 nodes: "
        "4 too little nvidia.com/gpu; 4 more nodes with 8 free nvidia.com/gpu are needed"
    )


def test_a_placement_holds_its_room_until_its_pods_are_bound_and_the_pods_hold_it_afterwards() -> None:
    """Neither counted twice nor free in between."""
    world = World().nodes(2)
    key = world.gang("a", {"worker": (2, GPU8)})
    world.plan()
    free = world.session().snapshot.free
    gpu = world.state.nodes.axis["nvidia.com/gpu"]
    assert free[gpu, :2].tolist() == [0, 0]
    for rank in range(2):
        world.pod(key, "worker", rank, GPU8, node=f"node-{rank}", phase="Running")
        assert world.session().snapshot.free[gpu, :2].tolist() == [0, 0]
    assert (recomputed_use(world.state.ledger) == world.state.nodes.used).all()


def test_cordoned_tainted_and_unselected_nodes_are_not_used_and_are_named_as_causes() -> None:
    """Each cause says how many nodes it costs."""
    world = World().nodes(1, unschedulable=True)
    world.node("node-1", taints=[Taint(key="dedicated", value="x", effect="NoSchedule")])
    world.node("node-2", labels={"pool": "other"})
    world.gang("a", {"worker": (1, GPU1)}, spec={"nodeSelector": {"pool": "mine"}})
    [waits] = of(world.plan(), decisions.Unschedulable)
    assert "of 3 nodes: 2 do not match the node selector, 1 cordoned" in waits.message


def test_a_gang_in_a_closed_or_missing_queue_is_not_let_in() -> None:
    """Enqueue says which queue and why."""
    world = World().nodes(1).queue("shut", "Closed")
    world.gang("a", {"worker": (1, GPU1)}, phase="Pending", queue="shut")
    world.gang("b", {"worker": (1, GPU1)}, phase="Pending", queue="nowhere")
    world.gang("c", {"worker": (1, GPU1)}, phase="Pending", queue="root")
    world.queue("root")
    session = world.plan()
    assert {waits.gang.key: waits.message for waits in of(session, decisions.Unschedulable)} == {
        "ns/a": "queue 'shut' is Closed",
        "ns/b": "queue 'nowhere' does not exist",
        "ns/c": "queue 'root' contains other queues and accepts no gangs",
    }
    assert not of(session, decisions.AdmitGang)


def test_a_gang_is_let_in_and_placed_in_one_cycle() -> None:
    """Pending → Inqueue with a placement, so that its pods are born on their nodes."""
    world = World().nodes(1)
    world.gang("a", {"worker": (1, GPU1)}, phase="Pending")
    session = world.plan()
    assert [decisions.AdmitGang, decisions.Place] == [type(decision) for decision in session.decisions]


def test_pods_that_exist_win_over_the_template() -> None:
    """Another webhook added a sidecar: the gang is planned with the larger shape."""
    world = World().nodes(2)
    world.members(world.gang("a", {"worker": (2, {"cpu": 16})}), 2, {"cpu": 17}, gated=True)
    assert slots(only(world.plan(), decisions.Place)) == {"worker": ["node-0", "node-1"]}


def test_a_higher_priority_class_goes_first() -> None:
    """Although it is younger."""
    world = World().nodes(1)
    world.state.on_priority_class(None, PriorityClass(metadata=world.meta("high", namespace=""), value=1000))
    world.gang("a", {"worker": (1, GPU8)})
    world.now += 1
    world.gang("b", {"worker": (1, GPU8)}, priority_class="high")
    assert [place.gang.key for place in of(world.plan(), decisions.Place)] == ["ns/b"]


@settings(max_examples=settings().max_examples * 3 // 2)
@given(
    capacities=st.lists(st.integers(0, 9), min_size=1, max_size=8),
    gangs=st.lists(st.tuples(st.integers(1, 6), st.integers(1, 4)), min_size=1, max_size=5),
)
def test_no_node_is_over_committed_no_gang_placed_in_part(capacities: list[int], gangs: list[tuple[int, int]]) -> None:
    """For homogeneous gangs, a gang is placed exactly when greedy room is enough."""
    world = World()
    for index, gpus in enumerate(capacities):
        world.node(f"node-{index}", gpus=gpus)
    for index, (members, gpus) in enumerate(gangs):
        world.now += 1
        world.gang(f"g{index}", {"worker": (members, {"nvidia.com/gpu": gpus})})
    session = world.plan()
    left = list(capacities)
    placed = {place.gang.key: slots(place)["worker"] for place in of(session, decisions.Place)}
    for index, (members, gpus) in enumerate(gangs):
        fits = sum(room // gpus for room in left) >= members
        nodes = placed.get(f"ns/g{index}", [])
        assert len(nodes) == (members if fits else 0)
        for node in nodes:
            left[int(node.removeprefix("node-"))] -= gpus
    assert min(left) >= 0
