"""Members that do not say which slot is theirs get one each, in whatever order they join."""

from itertools import permutations
from typing import Any

import pytest
from extender_world import World
from msgspec import structs

from muster.api import names
from muster.api.kubernetes.core import Pod, PodSpec, PodStatus
from muster.api.kubernetes.meta import OwnerReference
from muster.api.muster.gang import DEFAULT_POD_SET, Slot
from muster.api.volcano.scheduling import PodGroup, PodGroupSpec, PodGroupStatus


def group_of(world: World) -> PodGroup:
    """A gang of three pods without tasks."""
    spec = PodGroupSpec(min_member=3, queue="default")
    group = PodGroup(metadata=world.meta("g"), spec=spec, status=PodGroupStatus(phase="Inqueue"))
    world.state.on_pod_group(None, group)
    return group


def join(world: World, name: str, *, node: str = "", **more: Any) -> None:
    """A pod that does not say which slot is its own, unless `more` of its metadata do."""
    annotations = {"scheduling.k8s.io/group-name": "g", **more.pop("annotations", {})}
    meta = structs.replace(world.meta(name, uid=name, annotations=annotations), **more)
    phase = "Running" if node else "Pending"
    pod = Pod(metadata=meta, spec=PodSpec(scheduler_name="volcano", node_name=node), status=PodStatus(phase=phase))
    world.state.on_pod(None, pod)


def indexed(job: str, index: int) -> dict[str, Any]:
    """The metadata of a pod that an Indexed Job makes."""
    owner = OwnerReference(api_version="batch/v1", kind="Job", name=job, uid=f"uid-{job}", controller=True)
    return {"owner_references": [owner], "annotations": {names.COMPLETION_INDEX: str(index)}}


@pytest.mark.parametrize("order", [*permutations("abc")], ids="".join)
def test_members_that_join_one_by_one(order: tuple[str, ...]) -> None:
    """The gang is looked at in between, as in a cluster; nobody takes the slot of one who was there before."""
    world = World()
    group = group_of(world)
    for number, name in enumerate(order, start=1):
        join(world, name)
        (pods,) = world.view(group.metadata.key).pod_sets
        assert len(pods.waiting) == number
    assert {pod.name for pod in pods.waiting.values()} == {"a", "b", "c"}


def test_indexes_of_several_jobs() -> None:
    """The index counts in each Job: in a gang of both, those of the second follow, and nobody with a node moves."""
    world = World()
    key = group_of(world).metadata.key
    join(world, "node-0", node="node-1", **indexed("node", 0))
    join(world, "launcher-0", **indexed("launcher", 0))
    join(world, "node-1", **indexed("node", 1))
    (pods,) = world.view(key).pod_sets
    assert {rank: pod.name for rank, pod in pods.waiting.items()} == {1: "node-1", 2: "launcher-0"}
    assert pods.taken == {0: "node-1"}


def test_a_successor_waits_for_the_slot_of_its_predecessor() -> None:
    """A Job of the same name takes over the indexes: a pod of the old one that is still there is in the way."""
    world = World()
    key = group_of(world).metadata.key
    join(world, "old", node="node-1", **indexed("node", 0))
    join(world, "new", **indexed("node", 0))
    (pods,) = world.view(key).pod_sets
    assert (pods.taken, {rank: pod.name for rank, pod in pods.waiting.items()}) == ({0: "node-1"}, {0: "new"})


def test_slots_are_given_by_a_refresh_and_not_by_looking() -> None:
    """Whoever looks sees the gang as it was refreshed last."""
    world = World()
    group = group_of(world)
    world.state.refresh()
    join(world, "a")
    gang = world.state.gang(group.metadata.key)
    assert gang is not None
    assert gang.pods == []
    assert world.state.pods["a"].slot is None
    world.state.refresh()
    assert world.state.pods["a"].slot == Slot(DEFAULT_POD_SET, 0)


def test_gangs_are_in_the_order_in_which_they_were_seen() -> None:
    """Their names, whose hashes differ from process to process, decide nothing."""
    world = World()
    keys = [world.gang(f"gang-{number * 7 % 32}", {"worker": (1, {"cpu": 1})}) for number in range(32)]
    world.state.refresh()
    assert [gang.key for gang in world.state.gangs()] == keys
