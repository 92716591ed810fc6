"""Pods of one owner that nothing ties together are gangs of one; a gang that waits keeps nothing from them."""

from typing import Any

import pytest
from extender_world import World, of, slots
from shares_world import cluster
from victims_world import victims

from extender.planner.actions.allocate import Allocate
from extender.planner.actions.enqueue import Enqueue
from extender.planner.framework import decisions
from extender.planner.plugins.order import Reservations
from extender.planner.timing import Timing
from muster.api import names
from muster.api.kubernetes.meta import OwnerReference
from muster.api.volcano.scheduling import PodGroup, PodGroupSpec, PodGroupStatus

GPU8 = {"cpu": 4, "nvidia.com/gpu": 8}
ONE = {"cpu": 1, "nvidia.com/gpu": 1}


def group(
    world: World, name: str, *, min_member: int = 1, phase: str = "Inqueue", independent: bool = True, **spec: Any
) -> str:
    """The PodGroup of a batch Job."""
    owner = OwnerReference(api_version="batch/v1", kind="Job", name=name, uid=f"uid-{name}", controller=True)
    annotations = {names.INDEPENDENT: "true"} if independent else {}
    made = PodGroup(
        metadata=world.meta(name, owner_references=[owner], annotations=annotations),
        spec=PodGroupSpec(min_member=min_member, queue=spec.pop("queue", "default"), **spec),
        status=PodGroupStatus(phase=phase),  # type: ignore[arg-type]
    )
    world.state.on_pod_group(None, made)
    return made.metadata.key


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
    key = group(world, "large", min_member=9, phase="Pending", independent=False)
    waiting_pods(world, key, range(seen), GPU8)
    session = world.session(world.progress, Enqueue(), Allocate())
    assert not of(session, decisions.Enqueue)
    [waits] = of(session, decisions.Unschedulable)
    assert "8" in waits.message
    assert "9" in waits.message
