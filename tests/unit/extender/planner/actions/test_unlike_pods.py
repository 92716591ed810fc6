"""Pods of one set that are unlike, or that nothing ties together: each counts with what it asks for."""

from collections.abc import Sequence
from typing import Any

import pytest
from extender_world import GPU8, World, of, slots
from hypothesis import example, given, settings
from hypothesis import strategies as st
from shares_world import cluster
from victims_world import victims

from extender.planner.actions.allocate import Allocate
from extender.planner.actions.enqueue import Enqueue
from extender.planner.framework import decisions
from extender.planner.framework.session import Session
from extender.planner.plugins.order import GangPlugin, Reservations, TaskOrder
from extender.planner.plugins.predicates import Predicates
from extender.planner.plugins.proportion import Proportion
from extender.planner.timing import Timing
from muster.api import names
from muster.api.kubernetes.meta import OwnerReference
from muster.api.volcano.scheduling import SubGroupPolicy


def world_of(nodes: int = 1) -> World:
    """Nodes of 8 GPUs with queues."""
    world = World().nodes(nodes)
    world.plugins = [GangPlugin({}), Proportion({}), Predicates({})]
    return world


def labelled(
    world: World, name: str, gpus: Sequence[int], *, queue: str = "default", min_member: int | None = None,
    phase: str = "Pending", first: Sequence[int] = (),
) -> str:  # fmt: skip
    """A gang by label: pods with so many GPUs each; those of the ranks in `first` go first."""
    key = world.pod_group(name, len(gpus) if min_member is None else min_member, phase=phase, queue=queue)
    for rank, asked in enumerate(gpus):
        annotations = {"scheduling.k8s.io/group-name": name}
        labels = {"muster.dev/task-priority": "1"} if rank in first else {}
        requests = {"cpu": 1, **({"nvidia.com/gpu": asked} if asked else {})}
        world.pod(key, "worker", rank, requests, gated=True, annotations=annotations, labels=labels)
    return key


def reasons_of(session: Session) -> dict[str, str]:
    """Why each gang waits."""
    return {each.gang.key: each.reason for each in of(session, decisions.Unschedulable)}


@pytest.mark.parametrize(("gpus", "more"), [
    ((4, 0, 0), {}), ((0, 0, 4), {}), ((2, 1, 2), {}), pytest.param((0, 2, 2, 2), {"min_member": 1}, id="growth"),
])  # fmt: skip
def test_a_gang_within_the_capability_starts_and_grows(gpus: tuple[int, ...], more: dict[str, Any]) -> None:
    """Its first pod counts once; of those above a minimum two of 2 GPUs fit into 5, as the first asks for none."""
    world = world_of().queue("team", capability={"nvidia.com/gpu": 5})
    labelled(world, "a", gpus, queue="team", **more)
    assert [place.new_slots for place in of(world.plan(), decisions.Place)] == [3]


def test_a_gang_over_the_capability_is_told_so() -> None:
    """Though its first pod asks for nothing of it."""
    world = world_of().queue("team", capability={"nvidia.com/gpu": 4})
    key = labelled(world, "a", (0, 4, 4), queue="team")
    session = world.plan()
    assert not of(session, decisions.Place)
    assert reasons_of(session) == {key: "QueueOverCapability"}


def test_a_gang_that_the_empty_cluster_holds_is_let_in() -> None:
    """8, 1 and 1 GPUs fit on two nodes, though three times 8 would not; three pods of 8 never do."""
    world = world_of(2)
    labelled(world, "fits", (8, 1, 1))
    key = labelled(world, "never", (1, 8, 8, 8), phase="Pending")
    session = world.plan()
    assert [place.gang.group.metadata.name for place in of(session, decisions.Place)] == ["fits"]
    waits = next(each for each in of(session, decisions.Unschedulable) if each.gang.key == key)
    assert "3 pods must start together, but even an empty cluster has room for 2" in waits.message


@pytest.mark.parametrize(("framework", "placed"), [("torch", 1), ("", 2)])
def test_pods_of_a_framework_above_the_minimum_come_in_their_order(framework: str, placed: int) -> None:
    """One that finds no room is overtaken by a smaller one of its set only where no framework numbers them."""
    world = world_of()
    key = labelled(world, "a", (1, 8, 1), min_member=1)
    for pod in world.view(key).pods if framework else ():
        world.change(world.state.pod_objects[pod.uid], labels={"muster.dev/framework": framework})
    assert [place.new_slots for place in of(world.plan(), decisions.Place)] == [placed]


def test_the_pods_that_are_chosen_first_are_counted() -> None:
    """A minimum of one: that which the task order puts first, of 4 GPUs, and where the queue has too few the other."""
    for capability, chosen in ((4, 1), (3, 0)):
        world = world_of()
        world.plugins.append(TaskOrder({}))
        world.timing = Timing(growth_delay_s=60.0)
        world.queue("team", capability={"nvidia.com/gpu": capability})
        labelled(world, "a", (1, 4), queue="team", min_member=1, first=(1,))
        [place] = of(world.plan(), decisions.Place)
        assert [rank for rank, node in enumerate(slots(place)["pods"]) if node] == [chosen]


def test_a_whole_sub_group_is_counted() -> None:
    """Of two pods of a minimum of one, as both are placed."""
    world = world_of().queue("team", capability={"nvidia.com/gpu": 3})
    key = world.gang("a", {"worker": (2, {"nvidia.com/gpu": 2})}, queue="team", min_member=1, min_task_member={})
    policy = SubGroupPolicy(name="worker", sub_group_size=2)
    world.change(world.state.groups[key], spec={"sub_group_policy": [policy]})
    assert reasons_of(world.plan()) == {key: "QueueOverCapability"}


@settings(max_examples=settings().max_examples // 2)
@example(gpus=[2, 1, 1], least=2, limit=2)
@given(gpus=st.lists(st.integers(0, 4), min_size=1, max_size=6), least=st.integers(1, 6), limit=st.integers(0, 12))
def test_a_gang_is_planned_just_if_its_queue_takes_what_it_is_given(gpus: list[int], least: int, limit: int) -> None:
    """What is refused would have been over the capability, and what is placed is not."""
    world = World(checked=False).nodes(3)
    world.plugins = [GangPlugin({}), Proportion({}), Predicates({})]
    world.timing = Timing(growth_delay_s=60.0)
    world.queue("team", capability={"nvidia.com/gpu": limit})
    least = min(least, len(gpus))
    key = labelled(world, "a", gpus, queue="team", min_member=least)
    session = world.plan()
    placed = of(session, decisions.Place)
    assert [place.new_slots for place in placed] == ([least] if sum(sorted(gpus)[:least]) <= limit else [])
    if not placed:
        assert reasons_of(session) == {key: "QueueOverCapability"}
        gpu = session.snapshot.axis["nvidia.com/gpu"]
        gang = session.gang(key)
        ask = session.ask(gang)
        assert session.amounts(ask)[gpu] == 1000 * sum(gpus[:least])
        assert (session.amounts(ask, ask.members(session.hooks, ask.minimum)) == session.amounts(ask)).all()


ONE = {"cpu": 1, "nvidia.com/gpu": 1}


def group(world: World, name: str, least: int = 1, *, independent: bool = True, **more: Any) -> str:
    """The PodGroup of a batch Job."""
    owner = OwnerReference(api_version="batch/v1", kind="Job", name=name, uid=f"uid-{name}", controller=True)
    annotations = {names.INDEPENDENT: "true"} if independent else {}
    return world.pod_group(name, least, owner_references=[owner], annotations=annotations, **more)


def waiting_pods(world: World, key: str, ranks: range, requests: dict[str, Any]) -> None:
    """Pods of the Job that wait gated."""
    world.members(key, ranks, requests, task="pods", gated=True)


def test_one_gang_that_waits_does_not_freeze_the_pods_of_others() -> None:
    """55 of 64 GPUs are free, a gang of eight whole nodes waits, and all 20 pods of another Job get theirs."""
    world = World()
    world.timing = Timing(growth_delay_s=1.0)
    world.nodes(8)
    running = world.gang("r", {"worker": (9, ONE)}, phase="Running")
    for rank in range(9):
        world.pod(running, "worker", rank, ONE, node=f"node-{rank // 8}", phase="Running")
    world.gang("large", {"worker": (8, GPU8)})
    key = group(world, "plain")
    waiting_pods(world, key, range(20), ONE)
    session = world.plan()
    assert {place.gang.key: place.new_slots for place in of(session, decisions.Place)} == {key: 20}
    assert [waits.gang.key for waits in of(session, decisions.Unschedulable)] == ["ns/large"]


def test_what_is_reserved_is_kept_from_independent_pods_too() -> None:
    """The patience of the head is over, so its nodes are reserved; the pods come where it cannot go."""
    world = World()
    world.plugins.append(Reservations({"patience": "1m"}))
    world.nodes(4)
    running = world.gang("r", {"worker": (1, GPU8)}, phase="Running")
    world.pod(running, "worker", 0, GPU8, node="node-0", phase="Running")
    world.node("other", gpus=2)
    world.gang("large", {"worker": (4, GPU8)})
    world.now += 61
    key = group(world, "plain")
    waiting_pods(world, key, range(5), ONE)
    [place] = of(world.session(world.progress, Enqueue(), Allocate()), decisions.Place)
    assert (place.gang.key, set(slots(place)["pods"])) == (key, {"other"})


def test_each_pod_takes_back_what_its_queue_is_owed() -> None:
    """One of the Job runs; the others may reclaim all the same, one after the other."""
    world = cluster(4, 16)
    for number in range(3):
        world.runs(f"b{number}", 1, first=1 + number, queue="b")
    key = group(world, "plain", phase="Running", queue="c")
    world.pod(key, "pods", 0, {"nvidia.com/gpu": 8}, node="node-0", phase="Running")
    waiting_pods(world, key, range(1, 3), {"nvidia.com/gpu": 8})
    session = world.cycle()
    assert len(victims(session)) == 1
    assert [place.gang.key for place in of(session, decisions.Place)] == [key]


def test_a_pod_of_a_full_queue_waits_although_another_of_its_job_runs() -> None:
    """It is no lost member, which would come back whatever the queue has."""
    world = cluster(4, 8).queue("c", capability={"nvidia.com/gpu": 8})
    key = group(world, "plain", phase="Running", queue="c")
    world.pod(key, "pods", 0, {"nvidia.com/gpu": 8}, node="node-0", phase="Running")
    world.budget("none", allowed=0)
    waiting_pods(world, key, range(1, 2), {"nvidia.com/gpu": 8})
    assert not victims(world.cycle())


@pytest.mark.parametrize("seen", [1, 3, 9])
def test_a_job_that_the_empty_cluster_could_not_hold_is_not_let_in_before_all_its_pods_exist(seen: int) -> None:
    """All pods of a batch Job are alike, so that the first one tells."""
    world = World().nodes(8)
    waiting_pods(world, group(world, "large", 9, phase="Pending", independent=False), range(seen), GPU8)
    session = world.session(world.progress, Enqueue(), Allocate())
    assert not of(session, decisions.AdmitGang)
    [waits] = of(session, decisions.Unschedulable)
    assert "8" in waits.message
    assert "9" in waits.message
