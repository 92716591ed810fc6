"""Workloads in a queue that is closing: pods that end are replaced, and nothing else is taken."""

import pytest
from extender_world import World, of
from queue_world import shared_world

from extender.planner.framework import decisions
from extender.planner.framework.session import Session
from muster.api import names
from muster.api.kubernetes.core import Pod
from muster.api.kubernetes.meta import OwnerReference
from muster.api.volcano.scheduling import PodGroup, PodGroupSpec, PodGroupStatus

ONE = {"nvidia.com/gpu": 1}


def replica_set(world: World, name: str, *, phase: str = "Running") -> str:
    """The PodGroup of a ReplicaSet of Deployment `web`."""
    owner = OwnerReference(api_version="apps/v1", kind="ReplicaSet", name=name, uid=f"uid-{name}", controller=True)
    notes = {names.INDEPENDENT: "true", names.WORKLOAD: "apps/v1/Deployment/web/uid-web"}
    made = PodGroup(
        metadata=world.meta(name, owner_references=[owner], annotations=notes),
        spec=PodGroupSpec(queue="shut", min_member=1),
        status=PodGroupStatus(phase=phase),  # type: ignore[arg-type]
    )
    world.state.on_pod_group(None, made)
    return made.metadata.key


def runs(world: World, key: str, *ranks: int) -> list[Pod]:
    """Pods with a node."""
    return [world.pod(key, "pods", rank, ONE, node="node-0", phase="Running") for rank in ranks]


def waits(world: World, key: str, *ranks: int) -> None:
    """Gated pods."""
    for rank in ranks:
        world.pod(key, "pods", rank, ONE, gated=True)


def placed(session: Session) -> dict[str, int]:
    """The number of pods that got nodes, by gang."""
    return {place.gang.key: place.new_slots for place in of(session, decisions.Place)}


@pytest.mark.parametrize("state", ["Closing", "Closed"])
def test_a_workload_does_not_grow_but_its_pods_are_replaced(state: str) -> None:
    """Scaled up from 2 to 4: two wait, with the reason; one that ends makes place for one of them."""
    world = shared_world(1).queue("shut")
    key = replica_set(world, "web-1")
    _, ends = runs(world, key, 0, 1)
    world.queue("shut", state).plan()
    waits(world, key, 2, 3)
    session = world.plan()
    assert placed(session) == {}
    [why] = of(session, decisions.Unschedulable)
    assert (why.reason, str(why.message)) == (
        "QueueNotOpen",
        f"queue 'shut' is {state}: pods that end are replaced, but no workload gets more than the 2 that it had",
    )
    world.state.on_pod(ends, None)
    assert placed(world.plan()) == {key: 1}


def test_a_queue_that_opens_again_takes_all() -> None:
    """And what it has then is what its workloads may have when it closes again."""
    world = shared_world(1).queue("shut", "Closing")
    key = replica_set(world, "web-1")
    runs(world, key, 0)
    world.plan()
    waits(world, key, 1, 2)
    assert placed(world.plan()) == {}
    assert placed(world.queue("shut").plan()) == {key: 2}


def test_an_update_continues_with_one_more_pod() -> None:
    """A Deployment ends its old pods only for new ones that run."""
    world = shared_world(1).queue("shut")
    old = replica_set(world, "web-1")
    runs(world, old, 0, 1)
    world.queue("shut", "Closing").plan()
    new = replica_set(world, "web-2", phase="Pending")
    waits(world, new, 0, 1)
    assert placed(world.plan()) == {new: 1}


def test_an_admitted_job_gets_the_rest_of_its_pods() -> None:
    """The pods that it was submitted with, above its minimum."""
    world = shared_world(1).queue("shut")
    key = world.gang("job", {"pods": (4, ONE)}, min_member=2, queue="shut", phase="Running")
    runs(world, key, 0, 1)
    world.queue("shut", "Closing").plan()
    waits(world, key, 2, 3)
    assert placed(world.plan()) == {key: 2}
