"""Whatever the world is like: nobody goes in vain, below a minimum or against a budget, and nothing is left behind."""

from typing import Any

import numpy as np
import pytest
from extender_world import of
from hypothesis import given, settings
from hypothesis import strategies as st
from victims_world import Cluster, victims

from extender.planner.actions.allocate import Allocate
from extender.planner.actions.consolidate import Consolidate
from extender.planner.actions.displace import Preempt
from extender.planner.actions.enqueue import Enqueue
from extender.planner.framework.decisions import MakeRoom, Place, Reserve
from extender.planner.framework.session import Session
from extender.planner.plugins.order import Reservations
from extender.planner.plugins.topology import TopologyPlugin

PRIORITY = st.sampled_from(["", "low", "high"])
RUNNING = st.lists(
    st.tuples(st.integers(1, 4), st.integers(1, 8), st.integers(1, 4), PRIORITY, st.booleans(), st.booleans()),
    max_size=8,
)
"""Pods, GPUs of each, minimum, priority class, whether a budget counts it, and whether it must be in one rack."""
ASKING = st.lists(
    st.tuples(st.integers(1, 4), st.integers(1, 8), st.sampled_from(["low", "high"]), st.booleans()), max_size=3
)
NEAR = {"muster.dev/topology-required": "rack"}


@settings(max_examples=settings().max_examples * 3 // 2)
@given(
    nodes=st.integers(1, 5), running=RUNNING, asking=ASKING, allowed=st.integers(0, 4), port=st.booleans(),
    action=st.sampled_from([Preempt, Consolidate]),
)  # fmt: skip
def test_any_world(
    nodes: int,
    running: list[tuple[int, int, int, str, bool, bool]],
    asking: list[tuple[int, int, str, bool]],
    allowed: int,
    port: bool,  # noqa: FBT001 - hypothesis gives it by name
    action: type[Preempt] | type[Consolidate],
) -> None:
    """The invariants of every cycle with a victim search."""
    world = Cluster(nodes, checked=False)
    world.plugins = [*world.plugins, TopologyPlugin({"levels": ["rack"]})]
    for number in range(nodes):
        world.node(f"node-{number}", labels={"rack": f"r{number // 2}"})
    free = dict.fromkeys(range(nodes), 8)
    for number, (pods, gpus, minimum, priority, budgeted, near) in enumerate(running):
        _run(world, f"g{number}", free, pods, gpus, min(minimum, pods), priority)
        if near and f"ns/g{number}" in world.state.groups:
            world.state.groups[f"ns/g{number}"].metadata.annotations |= NEAR
        if budgeted:
            world.label_pods(f"g{number}", app="db")
    world.budget("db", allowed=allowed, app="db")
    spec = {"hostNetwork": True} if port else {}
    for number, (pods, gpus, priority, near) in enumerate(asking):
        key = world.asks(f"a{number}", pods, gpus, priority, spec=spec)
        if near:
            world.state.groups[key].metadata.annotations |= NEAR
    world.actions = [action()]
    plain = world.session(world.progress, Enqueue(), Allocate())
    session = world.session(world.progress, Enqueue(), Allocate(), *world.actions)
    if not of(session, MakeRoom):
        assert np.array_equal(plain.snapshot.free, session.snapshot.free), "nothing is left of a search that failed"
    _check(world, session, allowed, moves=action is Consolidate)


def _run(world: Cluster, name: str, free: dict[int, int], pods: int, gpus: int, minimum: int, priority: str) -> None:
    nodes = []
    for _ in range(pods):
        column = next((column for column, left in free.items() if left >= gpus), None)
        if column is None:
            break
        free[column] -= gpus
        nodes.append(column)
    if len(nodes) < minimum:
        for column in nodes:
            free[column] += gpus
        return
    requests = {"nvidia.com/gpu": gpus}
    tasks = {"worker": (len(nodes), requests)}
    key = world.gang(name, tasks, phase="Running", priority_class=priority, min_member=minimum, min_task_member={})
    for rank, column in enumerate(nodes):
        world.pod(key, "worker", rank, requests, node=f"node-{column}", phase="Running")


def _check(world: Cluster, session: Session, allowed: int, *, moves: bool) -> None:
    places = {place.gang.key: place for place in of(session, Place)}
    free = {f"node-{index}": 8000 for index in range(5)}
    gone: set[str] = set()
    for room in of(session, MakeRoom):
        assert room.gang.key in places, "nobody goes unless the gang that asked has a placement"
        for victim, pod in room.victims:
            assert pod.uid not in gone, "nobody goes for two"
            gone.add(pod.uid)
            assert moves or victim.priority < room.gang.priority
            assert not moves or victim.key in places
    assert len([uid for uid in gone if world.state.pods[uid].labels.get("app") == "db"]) <= allowed
    for gang in session.snapshot.gangs:
        left = [pod for pod in gang.pods if pod.alive and pod.uid not in gone]
        if gang.taken:
            assert not left or len(left) >= gang.min_member, "a gang keeps its minimum or nothing"
        for pod in left:
            free[pod.node] -= pod.cls.requests["nvidia.com/gpu"]
    for place in places.values():
        placed = {(each.name, rank): node for each in place.pod_sets for rank, node in _ranks(each)}
        sets = {pod_set.name: pod_set for pod_set in place.gang.pod_sets}
        there = [pod.slot for pod in place.gang.pods if pod.alive and pod.uid not in gone]
        taken = {(slot.pod_set, slot.rank) for slot in there if slot}
        for (name, rank), node in placed.items():
            cls = sets[name].class_of(rank)
            if (name, rank) not in taken:
                free[node] -= cls.requests["nvidia.com/gpu"]
        assert len(placed) >= place.gang.min_member
        if place.gang.group.metadata.annotations.keys() & NEAR.keys() and not taken:
            assert len({int(node.removeprefix("node-")) // 2 for node in placed.values()}) == 1, "one rack"
    assert all(left >= 0 for left in free.values()), "once all victims are gone, everybody fits"


def _ranks(pod_set: Any) -> list[tuple[int, str]]:
    nodes = [run.node for run in pod_set.runs for _ in range(run.count)]
    return [(rank, node) for rank, node in enumerate(nodes) if node]


@pytest.mark.parametrize("number", [1, 3])
def test_no_victim_could_be_left_out(number: int) -> None:
    """Without any one of them the gang would not fit."""
    world = Cluster(4)
    for index in range(8):
        world.runs(f"g{index}", 1, gpus=4, first=index % 4)
    world.asks("high", number)
    assert sum(len(room.victims) for room in of(world.cycle(), MakeRoom)) == 2 * number


PATIENCE_S = 600.0


@pytest.mark.parametrize("patient", [True, False])
def test_a_new_reservation_is_not_in_the_way_of_its_own_gang(patient: bool) -> None:  # noqa: FBT001 - pytest's way
    """Two pods need the room of two, also as their gang becomes the head; what is reserved would be kept twice then."""
    world = Cluster(1)
    world.plugins = [Reservations({}), *world.plugins]
    for number in range(4):
        world.runs(f"low{number}", 1, gpus=2)
    asker = world.asks("high", 2, gpus=2)
    world.now += 0.0 if patient else 2 * PATIENCE_S
    session = world.cycle()
    assert ([place.gang.key for place in of(session, Place)], len(victims(session))) == ([asker], 2)
    assert not of(session, Reserve)
    assert not session.reserved_rooms


@settings(max_examples=settings().max_examples * 3 // 5)
@given(
    gpus=st.sampled_from([1, 2, 4]), pods=st.integers(1, 4), asked=st.sampled_from([1, 2, 4, 8]), waited=st.booleans()
)
def test_reservations_cost_no_victims(gpus: int, pods: int, asked: int, waited: bool) -> None:  # noqa: FBT001
    """With one gang that waits, as many go with reservations as without any, however long it has waited."""
    counts = []
    for mode in ("reserve", "besteffort"):
        world = Cluster(3)
        world.actions = [Preempt()]
        world.plugins = [Reservations({"mode": mode}), *world.plugins]
        for number in range(24 // gpus):
            world.runs(f"low{number}", 1, gpus=gpus, first=number * gpus // 8)
        world.asks("high", pods, gpus=asked)
        world.now += 2 * PATIENCE_S * waited
        counts.append(len(victims(world.cycle())))
    assert counts[0] == counts[1]
