"""Tasks: no slots are planned for those that wait for others; minimums of a PodGroup hold whatever made its pods."""

import pytest
from extender_world import World, of, only, slots

from extender.planner.framework import decisions
from muster.api.muster.gang import Slot
from muster.api.names import LATER_TASKS

GROUP = {"scheduling.k8s.io/group-name": "g"}


def grouped() -> tuple[World, str]:
    """A node, and a PodGroup of four, two of each task, that no Job of Volcano owns."""
    world = World()
    world.node("node-0", cpu=8)
    key = world.pod_group("g", 4)
    world.change(world.state.groups[key], spec={"min_task_member": {"a": 2, "b": 2}})
    return world, key


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
        world, key = grouped()
        pods(world, key, "a", 1, by=by, index=index)
        pods(world, key, "b", cpu, by=by, index=index)
        found = of(world.plan(), decisions.Place)
        assert {name: len(nodes) for each in found for name, nodes in slots(each).items()} == placed


def test_a_task_without_pods_is_waited_for() -> None:
    """Pods of `b` come later than the group and those of `a`."""
    world, key = grouped()
    pods(world, key, "a", 1, by="annotation", index=False)
    assert not of(world.plan(), decisions.Place)
    pods(world, key, "b", 1, count=2, by="annotation", index=False)
    assert only(world.plan(), decisions.Place).new_slots == 6


def test_ranks_are_counted_in_each_task() -> None:
    """The first of each task is its rank 0."""
    world, key = grouped()
    pods(world, key, "a", 1, count=2, by="label", index=False)
    pods(world, key, "b", 1, count=1, by="label", index=False)
    assert {pod.slot for pod in world.view(key).pods} == {Slot("a", 0), Slot("a", 1), Slot("b", 0)}


CPU = {"cpu": 16}


def world(later: str) -> tuple[World, str]:
    """Two nodes for four pods; a gang of two `first` and two `then`."""
    one = World().nodes(2)
    least = {"first": 2} if later else {"first": 2, "then": 2}
    key = one.gang("g", {"first": (2, CPU), "then": (2, CPU)}, min_member=sum(least.values()), min_task_member=least)
    if later:
        one.change(one.state.groups[key], annotations={LATER_TASKS: later})
    return one, key


def test_slots_only_for_what_can_exist() -> None:
    """With the task held back its slots are not planned, and the gang is whole without them."""
    one, key = world("then")
    (place,) = of(one.plan(), decisions.Place)
    assert slots(place) == {"first": ["node-0", "node-0"]}
    assert one.view(key).satisfied({"first": 2})
    (place,) = of(world("")[0].plan(), decisions.Place)
    assert set(slots(place)) == {"first", "then"}


def test_pods_that_come_later_are_placed() -> None:
    """Their pods get nodes once the others run, also while the PodGroup still lists the task."""
    one, key = world("then")
    one.plan()
    one.members(key, 2, CPU, task="first", node="node-0", phase="Running")
    one.change(one.state.placements[key], status={"phase": "Bound"})
    one.members(key, 2, CPU, task="then", gated=True)
    (place,) = of(one.plan(), decisions.Place)
    assert slots(place) == {"first": ["node-0", "node-0"], "then": ["node-1", "node-1"]}
    assert place.epoch == 2


def test_a_job_without_the_list_is_as_before() -> None:
    """An empty annotation holds nothing back."""
    one, key = world("")
    assert {pod_set.replicas for pod_set in one.view(key).pod_sets} == {2}
