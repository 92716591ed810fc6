"""A gang has the priority of its PodGroup only as far as its pods have it."""

import pytest
from extender_world import World
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from extender.planner.plugins.protection import needed_by_the_cluster
from muster.api.kubernetes.core import PriorityClass
from muster.api.kubernetes.meta import ObjectMeta

ONE = {"cpu": 1}
VALUES = {"low": -5, "usual": 7, "high": 100, "system-node-critical": 2_000_001_000}


def a_world(*, default: str = "") -> World:
    """A world with these classes, one of them the default of pods."""
    world = World(checked=False)
    for name, value in VALUES.items():
        known = PriorityClass(metadata=ObjectMeta(name=name), value=value, global_default=name == default)
        known.preemption_policy = "Never" if name == "low" else ""
        world.state.on_priority_class(None, known)
    return world


def says(world: World, key: str, name: str) -> None:
    """Have the PodGroup name another class."""
    world.change(world.state.groups[key], spec={"priority_class_name": name})


@pytest.mark.parametrize(("default", "wanted"), [("", 0), ("usual", 7)])
def test_a_pod_group_with_neither_pods_nor_templates_has_what_pods_of_no_class_have(default: str, wanted: int) -> None:
    """Nobody has checked its class."""
    world = a_world(default=default)
    key = world.pod_group("g")
    says(world, key, "system-node-critical")
    assert world.view(key).priority == wanted


def test_before_the_pods_exist_the_class_of_the_job_counts() -> None:
    """Its templates have been tried when it was admitted."""
    world = a_world()
    key = world.gang("a", {"worker": (1, ONE)}, priority_class="high")
    assert world.view(key).priority == 100
    says(world, key, "system-node-critical")
    assert world.view(key).priority == 100


def test_a_task_without_pods_lifts_nothing() -> None:
    """No pod of it is ever checked."""
    world = a_world()
    key = world.gang("a", {"worker": (1, ONE), "none": (0, ONE)}, priority_class="usual")
    job = world.job_of(key)
    lift = {"spec": world.pod_spec(ONE, priorityClassName="high")}
    tasks = [structs.replace(task, template=lift) if task.name == "none" else task for task in job.spec.tasks]
    world.change(job, spec={"tasks": tasks})
    says(world, key, "high")
    assert world.view(key).priority == 7


def test_pods_that_have_ended_lift_nothing() -> None:
    """A quota does not count them any more."""
    world = a_world()
    key = world.gang("a", {"worker": (2, ONE)}, priority_class="high")
    world.pod(key, "worker", 0, ONE, priority_class="high", phase="Succeeded", node="node-0")
    world.pod(key, "worker", 1, ONE, priority_class="usual")
    assert world.view(key).priority == 7


def test_pods_that_never_preempt_make_a_gang_that_does_not() -> None:
    """Whatever class its PodGroup names."""
    world = a_world()
    key = world.gang("a", {"worker": (1, ONE)}, priority_class="high")
    assert world.view(key).preempts
    world.change(world.pod(key, "worker", 0, ONE), spec={"preemption_policy": "Never"})
    assert not world.view(key).preempts


@given(st.sampled_from(["", *VALUES]), st.lists(st.sampled_from(["", *VALUES]), min_size=1, max_size=4))
def test_no_gang_is_above_all_its_pods(name: str, pods: list[str]) -> None:
    """The API server has written into each pod what its class is worth."""
    world = a_world()
    key = world.gang("a", {"worker": (len(pods), ONE)}, priority_class="usual")
    for rank, each in enumerate(pods):
        pod = world.pod(key, "worker", rank, ONE)
        world.change(pod, spec={"priority": VALUES.get(each, 0), "priority_class_name": each})
    says(world, key, name)
    gang = world.view(key)
    assert gang.priority <= max(VALUES.get(each, 0) for each in pods)
    assert gang.priority <= VALUES.get(name, 0)
    assert needed_by_the_cluster(gang) == ("system-node-critical" in pods)
