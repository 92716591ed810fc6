"""The minimums per task of a PodGroup hold whatever made its pods: they name their task, with or without an index."""

import pytest
from extender_world import World, of, slots

from extender.planner.framework import decisions
from muster.api.muster.gang import Slot
from muster.api.volcano.scheduling import PodGroup, PodGroupSpec, PodGroupStatus

GROUP = {"scheduling.k8s.io/group-name": "g"}


def group(world: World) -> str:
    """A PodGroup of four, two of each task, that no Job of Volcano owns."""
    made = PodGroup(
        metadata=world.meta("g"),
        spec=PodGroupSpec(queue="default", min_member=4, min_task_member={"a": 2, "b": 2}),
        status=PodGroupStatus(phase="Inqueue"),
    )
    world.state.on_pod_group(None, made)
    return made.metadata.key


def pods(world: World, key: str, task: str, cpu: int, *, count: int = 4, by: str, index: bool) -> None:
    """Gated pods that name their task by annotation or label."""
    for rank in range(count):
        said = {"volcano.sh/task-spec": task, **({"volcano.sh/task-index": str(rank)} if index else {})}
        more = {"annotations": GROUP | said} if by == "annotation" else {"annotations": GROUP, "labels": said}
        world.pod(key, task, rank, {"cpu": cpu}, gated=True, **more)


@pytest.mark.parametrize("index", [True, False])
@pytest.mark.parametrize("by", ["annotation", "label"])
def test_all_tasks_need_their_minimum(by: str, *, index: bool) -> None:
    """Task `b` fits nowhere, so that none of `a` starts; where it fits, two of each do at least."""
    for cpu, placed in ((16, {}), (1, {"a": 4, "b": 4})):
        world = World()
        world.node("node-0", cpu=8)
        key = group(world)
        pods(world, key, "a", 1, by=by, index=index)
        pods(world, key, "b", cpu, by=by, index=index)
        found = of(world.plan(), decisions.Place)
        assert {name: len(nodes) for each in found for name, nodes in slots(each).items()} == placed


def test_a_task_without_pods_is_waited_for() -> None:
    """Pods of `b` come later than the group and those of `a`."""
    world = World()
    world.node("node-0", cpu=8)
    key = group(world)
    pods(world, key, "a", 1, by="annotation", index=False)
    assert not of(world.plan(), decisions.Place)
    pods(world, key, "b", 1, count=2, by="annotation", index=False)
    [place] = of(world.plan(), decisions.Place)
    assert place.new_slots == 6


def test_ranks_are_counted_in_each_task() -> None:
    """The first of each task is its rank 0."""
    world = World()
    world.node("node-0", cpu=8)
    key = group(world)
    pods(world, key, "a", 1, count=2, by="label", index=False)
    pods(world, key, "b", 1, count=1, by="label", index=False)
    assert {pod.slot for pod in world.view(key).pods} == {Slot("a", 0), Slot("a", 1), Slot("b", 0)}
