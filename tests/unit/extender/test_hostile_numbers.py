"""Numbers that nobody should write cost their author his gang, and nobody else anything."""

import time

import pytest
from extender_world import GPU1, World, of, slots
from msgspec.structs import replace

from extender.groupcontent import wanted_status
from extender.planner.actions.allocate import Allocate
from extender.planner.framework import decisions
from extender.planner.framework.registry import PlainPlugin
from extender.planner.state.amounts import CLIP
from extender.planner.state.nodes import ROWS
from muster.api.kubernetes.core import Node, NodeStatus
from muster.api.limits import TASKS
from muster.api.muster.placement import NodeRun, Placement, PlacementSpec, PlacementStatus, PodSetPlacement
from muster.api.volcano.batch import Job, JobSpec, TaskSpec

HUGE = {"containers": [{"name": name, "resources": {"requests": {"memory": "8E"}}} for name in "ab"]}
MANY = {f"example.com/r{number}": 1 for number in range(2000)}
SOON_S = 1.0
"""Far more than any of this takes, and far less than it took when numbers were counted out."""


@pytest.fixture
def world() -> World:
    """Four nodes, and a gang that has done nothing wrong."""
    world = World().nodes(4)
    world.gang("innocent", {"worker": (4, GPU1)})
    return world


def assert_innocent_is_placed(world: World) -> list[decisions.Unschedulable]:
    """As if it were alone; returns what the others are told."""
    began = time.thread_time()  # other threads of the process may be at work
    session = world.plan()
    assert time.thread_time() - began < SOON_S
    places = {place.gang.key: place for place in of(session, decisions.Place)}
    assert slots(places["ns/innocent"]) == {"worker": ["node-0"] * 4}
    return of(session, decisions.Unschedulable)


def test_two_containers_that_ask_for_8e_of_memory_fit_nowhere_and_hold_nobody_up(world: World) -> None:
    """Their sum is more than 64 bits hold."""
    world.gang("huge", {"worker": (2, {})}, spec=HUGE)
    [waits] = assert_innocent_is_placed(world)
    assert waits.gang.key == "ns/huge"
    assert "too little memory" in waits.message


def test_a_bound_pod_with_an_absurd_request_fills_its_node_only(world: World) -> None:
    """And gives it back when it goes."""
    key = world.gang("huge", {"worker": (1, {})}, spec=HUGE)
    asks = {"memory": "8E", "cpu": "9E"}
    pods = [world.pod(key, "worker", rank, asks, node="node-0", phase="Running") for rank in range(40)]
    world.plan()
    memory = world.state.nodes.axis["memory"]
    assert world.state.nodes.used[memory, 0] == 40 * CLIP
    [place] = of(world.plan(), decisions.Place) or [None]
    for pod in pods:
        world.state.on_pod(pod, None)
    assert world.state.nodes.used[memory, 0] == 0
    assert place is None


@pytest.mark.parametrize("replicas", [20_001, 10_000_000, 2_000_000_000])
def test_a_job_of_more_pods_than_allowed_is_set_aside_and_says_so(world: World, replicas: int) -> None:
    """Admission was bypassed; nothing is counted out."""
    world.gang("many", {"worker": (replicas, GPU1)}, min_member=1)
    [waits] = assert_innocent_is_placed(world)
    assert (waits.gang.key, waits.reason) == ("ns/many", "SetAside")
    assert waits.message == f"its Job requests {replicas}; at most 20000 pods are allowed"


def test_a_gang_that_is_set_aside_keeps_its_phase_and_gets_the_condition(world: World) -> None:
    """Its owner reads it in the PodGroup."""
    world.gang("many", {"worker": (30_000, GPU1)}, phase="Running")
    [waits] = assert_innocent_is_placed(world)
    status = wanted_status(waits.gang, enqueued=False, placed=False, waits=waits, now=world.now)
    assert status.phase == "Running"
    [condition] = status.conditions
    assert (condition.type, condition.status, condition.reason) == ("Unschedulable", "True", "SetAside")


def test_a_job_that_is_made_smaller_is_planned_again(world: World) -> None:
    """What was set aside is looked at again when it changes."""
    key = world.gang("many", {"worker": (30_000, GPU1)}, min_member=1)
    world.plan()
    [old] = [job for job in world.state.jobs.values() if job.metadata.name == "many"]
    tasks = [TaskSpec(name="worker", replicas=1, template=old.spec.tasks[0].template)]
    world.state.on_job(old, Job(metadata=old.metadata, spec=JobSpec(tasks=tasks)))
    assert key in {place.gang.key for place in of(world.plan(), decisions.Place)}


def test_a_job_of_too_many_tasks_is_set_aside(world: World) -> None:
    """Tasks are tried one by one."""
    world.gang("many", {f"t{number}": (1, GPU1) for number in range(TASKS.value + 1)})
    [waits] = assert_innocent_is_placed(world)
    assert waits.message == f"its Job has {TASKS.value + 1}; at most {TASKS.value} tasks are allowed"


@pytest.mark.parametrize("index", ["20000", "20000000", "9" * 18, "1" * 5000])
def test_a_rank_beyond_the_limit_is_ignored(world: World, index: str) -> None:
    """The pod gets the first free rank."""
    key = world.gang("one", {}, min_member=1)
    annotations = {"scheduling.k8s.io/group-name": "one", "muster.dev/member-index": index}
    world.pod(key, "", 0, GPU1, gated=True, annotations=annotations)
    assert assert_innocent_is_placed(world) == []
    assert [(pod_set.name, list(pod_set.waiting)) for pod_set in world.view(key).pod_sets] == [("pods", [0])]


def test_the_highest_rank_costs_no_more_than_the_lowest(world: World) -> None:
    """Its placement has one run before it, whatever its length."""
    key = world.gang("one", {}, min_member=1)
    annotations = {"scheduling.k8s.io/group-name": "one", "muster.dev/member-index": "19999"}
    world.pod(key, "", 0, GPU1, gated=True, annotations=annotations)
    [place] = [place for place in of(world.session(*_actions(world)), decisions.Place) if place.gang.key == key]
    assert [(run.node, run.count) for run in place.pod_sets[0].runs] == [("", 19_999), ("node-0", 1)]


def _actions(world: World) -> tuple[object, ...]:
    return (world.progress, Allocate())


def test_an_epoch_of_5000_digits_does_not_hide_a_bound_pod(world: World) -> None:
    """It counts as never pinned, and uses its node."""
    key = world.gang("one", {"worker": (1, GPU1)})
    pod = world.pod(key, "worker", 0, GPU1, node="node-0", phase="Running", pin="node-0", epoch=1)
    annotations = pod.metadata.annotations | {"muster.dev/epoch": "1" * 5000}
    world.pod(key, "worker", 0, GPU1, node="node-0", phase="Running", annotations=annotations)
    assert world.state.nodes.used[world.state.nodes.axis["nvidia.com/gpu"], 0] == 1000
    assert world.view(key).taken == 1


def test_a_forged_placement_costs_nothing_beyond_the_slots_of_a_gang(world: World) -> None:
    """The schema refuses such a count; one that is there all the same is not counted out."""
    group = world.state.groups[world.gang("forged", {"worker": (2, GPU1)})]
    runs = [NodeRun(node="node-1", count=10**9), NodeRun(node="node-2", count=10**15)]
    sets = [PodSetPlacement(name=name, runs=runs) for name in ("worker", "other")]
    spec, status = PlacementSpec(pod_group_uid=group.metadata.uid, pod_sets=sets), PlacementStatus(phase="Planned")
    world.state.on_placement(None, Placement(metadata=world.meta("forged"), spec=spec, status=status))
    assert_innocent_is_placed(world)


def test_a_pod_with_2000_resource_names_adds_no_row_and_its_gang_says_why_it_waits(world: World) -> None:
    """Only what nodes offer has a row."""
    rows = dict(world.state.nodes.axis)
    key = world.gang("names", {"worker": (1, MANY)})
    [waits] = assert_innocent_is_placed(world)
    assert waits.message == "pods of worker request 2001 resource names, but at most 64 are allowed"
    world.pod(key, "worker", 0, MANY, node="node-0", phase="Running")
    assert world.state.nodes.axis == rows


def test_a_resource_that_no_node_offers_fits_nowhere_until_one_does(world: World) -> None:
    """Pods that ask for it already are then charged for it."""
    table = world.state.nodes
    key = world.gang("later", {"worker": (1, {"example.com/x": 3})})
    world.pod("ns/early", "worker", 0, {"example.com/x": 3}, node="node-0", phase="Running")
    waits = next(each for each in assert_innocent_is_placed(world) if each.gang.key == key)
    assert "too little example.com/x" in waits.message
    world.state.on_node(None, _offering(world, "node-0", "7"))
    assert table.used[table.axis["example.com/x"], table.index["node-0"]] == 3
    assert key in {place.gang.key for place in of(world.plan(), decisions.Place)}


def test_rows_grow_by_doubling_and_are_given_back() -> None:
    """What no node offers any more makes room for what the next one offers."""
    world = World()
    table = world.state.nodes
    for number in range(ROWS + 1):
        world.state.on_node(None, _offering(world, f"node-{number}", "1", f"example.com/{number}"))
    assert table.used.shape[0] == 4 * ROWS
    for number in range(ROWS + 1):
        world.state.on_node(table.nodes[table.index[f"node-{number}"]], None)
    assert table.axis == {}
    world.node("node-0")
    assert set(table.axis) == {"cpu", "memory", "pods", "nvidia.com/gpu"}
    assert table.used.shape[0] == 4 * ROWS


def _offering(world: World, name: str, amount: str, resource: str = "example.com/x") -> Node:
    allocatable = {"cpu": 32, "memory": "256Gi", "pods": 110, "nvidia.com/gpu": 8, resource: amount}
    return Node(metadata=world.meta(name, namespace="", uid=f"uid-{name}"), status=NodeStatus(allocatable=allocatable))


def test_a_pod_that_cannot_be_read_sets_its_gang_aside_until_it_is_gone(world: World) -> None:
    """It uses nothing, not even half of it."""
    key = world.gang("odd", {"worker": (1, GPU1)})
    before = world.state.nodes.used.copy()
    pod = world.pod(key, "worker", 0, {"cpu": "many"}, node="node-0", phase="Running")
    assert (world.state.nodes.used == before).all()
    [waits] = assert_innocent_is_placed(world)
    assert waits.message.startswith("pod odd-worker-0 cannot be evaluated: ")
    world.state.on_pod(pod, None)
    assert world.state.exclusions.pods == {}
    assert key in {place.gang.key for place in of(world.plan(), decisions.Place)}


def test_a_gang_that_makes_an_action_fail_is_set_aside_for_the_cycle(world: World) -> None:
    """What it was given meanwhile is free for the others."""

    class Failing(PlainPlugin):
        name = "failing"

        def on_session_open(self, session: object) -> None:
            """Fails for one gang after its first pods have a place."""

            def allocated(operation: object) -> None:
                if operation.gang.key == "ns/bad":  # type: ignore[attr-defined]
                    raise ZeroDivisionError("not foreseen")

            session.hooks.allocated.add(allocated)  # type: ignore[attr-defined]

    world.gang("bad", {"worker": (4, GPU1)})
    world.plugins.append(Failing({}))
    [waits] = assert_innocent_is_placed(world)
    assert (waits.gang.key, waits.message) == ("ns/bad", "ZeroDivisionError: not foreseen")
    session = world.session(*_actions(world))
    assert session.snapshot.free[session.snapshot.axis["nvidia.com/gpu"], :4].tolist() == [4000, 8000, 8000, 8000]


def test_a_snapshot_does_not_change_while_nodes_come_and_go(world: World) -> None:
    """The watches go on while a cycle plans."""
    snapshot = world.session().snapshot
    index, axis, claims = dict(snapshot.index), dict(snapshot.axis), dict(snapshot.volumes.claims)
    world.node("node-9")
    world.state.on_node(None, _offering(world, "node-10", "1"))
    world.state.on_node(world.state.nodes.nodes[0], None)
    assert (snapshot.index, snapshot.axis, snapshot.volumes.claims) == (index, axis, claims)


def test_a_podgroup_elsewhere_that_names_a_job_as_its_owner_gets_nothing_of_it(world: World) -> None:
    """UIDs can be read by many; the Job's own gang is planned with its template, the other one has no pods."""
    key = world.gang("theirs", {"worker": (2, GPU1)})
    group = world.state.groups[key]
    meta = replace(group.metadata, namespace="elsewhere", uid="forged")
    world.state.on_pod_group(None, replace(group, metadata=meta))
    session = world.plan()
    assert {place.gang.key: place.new_slots for place in of(session, decisions.Place)} == {"ns/innocent": 4, key: 2}
    world.scale(key, "worker", 3)
    assert world.view(key).pod_sets[0].replicas == 3
