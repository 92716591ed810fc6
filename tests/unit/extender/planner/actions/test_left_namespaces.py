"""A gang of a namespace that has left Muster is told why the rest of its pods does not come, and how to go on."""

import pytest
from extender_world import World, of

from extender.planner.framework.decisions import Unschedulable
from muster.api.kubernetes.core import Namespace
from muster.api.volcano.scheduling import PodGroup, PodGroupSpec, PodGroupStatus

HERE = {"muster.dev/queue": "default"}
OUT = {**HERE, "muster.dev/managed": "false"}


def namespace(world: World, labels: dict[str, str]) -> Namespace:
    """The gang's namespace with these labels."""
    return Namespace(metadata=world.meta("ns", namespace="", labels=labels))


def told(world: World) -> str:
    """Why the gang waits."""
    (why,) = of(world.plan(), Unschedulable)
    return str(why.message)


@pytest.fixture
def world() -> World:
    """Three pods of a gang of five, which its namespace has put into a queue, wait behind the gate."""
    world = World().nodes(1)
    world.state.on_namespace(None, namespace(world, HERE))
    spec = PodGroupSpec(min_member=5, queue="default")
    group = PodGroup(metadata=world.meta("a", owner_references=[]), spec=spec, status=PodGroupStatus(phase="Inqueue"))
    world.state.on_pod_group(None, group)
    world.members(group.metadata.key, 3, {"cpu": 1}, task="pods", gated=True)
    return world


@pytest.mark.parametrize("labels", [{}, OUT], ids=["without the label", "opted out"])
def test_it_is_told_and_once_the_label_is_back_no_more(world: World, labels: dict[str, str]) -> None:
    """A change of another label in between does not hide it; each change has the planner look."""
    assert told(world) == "3 of the 5 pods that start together exist"
    before, after = namespace(world, HERE), namespace(world, labels)
    assert world.state.on_namespace(before, after)
    assert not world.state.on_namespace(after, namespace(world, {**labels, "team": "red"}))
    assert "namespace ns gives its pods no queue any more" in told(world)
    assert "muster.dev/queue again" in told(world)
    assert "delete the pods that wait" in told(world)
    assert world.state.on_namespace(after, before)
    assert told(world) == "3 of the 5 pods that start together exist"


def test_a_volcano_job_is_not_told(world: World) -> None:
    """It names its queue itself: pods that it lacks are to be made yet."""
    world.pod(world.gang("b", {"worker": (2, {"cpu": 1})}), "worker", 0, {"cpu": 1}, gated=True)
    world.state.on_namespace(namespace(world, HERE), namespace(world, {}))
    messages = {each.gang.key: each.message for each in of(world.plan(), Unschedulable)}
    assert "no queue any more" in messages.pop("ns/a")
    assert "no queue any more" not in str(messages)


def test_a_namespace_that_never_gave_a_queue_is_not_the_reason(world: World) -> None:
    """Its pods name their queue themselves; a namespace that is gone and made anew begins afresh."""
    world.state.on_namespace(namespace(world, HERE), None)
    world.state.on_namespace(None, namespace(world, {}))
    world.state.on_namespace(namespace(world, {}), namespace(world, {"team": "red"}))
    assert told(world) == "3 of the 5 pods that start together exist"
