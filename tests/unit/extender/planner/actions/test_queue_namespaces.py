"""Gangs and their namespaces: a queue selects them, one may have left Muster, and one may be about to be deleted."""

from typing import Any

import pytest
from extender_world import GPU8, World, of, only

from extender.planner import reasons
from extender.planner.framework.decisions import AdmitGang, Evict, Place, Unschedulable
from extender.planner.framework.session import Session
from muster.api.kubernetes.core import Namespace
from muster.api.kubernetes.meta import ObjectMeta
from muster.volcano.access import NAME_LABEL


def a_world(*, selector: str, labels: dict[str, str] | None = None, parent: str = "") -> World:
    """Two nodes, and a queue `theirs` with this selector, or below a queue with it."""
    world = World().nodes(2)
    label(world, labels or {})
    world.queue(parent or "theirs", **{"namespace-selector": selector})
    if parent:
        world.queue("theirs", parent=parent)
    return world


def label(world: World, labels: dict[str, str]) -> bool:
    """The labels of the gangs' namespace."""
    return world.state.on_namespace(None, Namespace(metadata=ObjectMeta(name="ns", labels=labels)))


def barred(session: Session) -> list[str]:
    """The messages of gangs whose queue is not for their namespace."""
    return [each.message for each in of(session, Unschedulable) if each.reason == reasons.queues.NOT_FOR_NAMESPACE]


@pytest.mark.parametrize("phase", ["", "Pending", "Inqueue"])
@pytest.mark.parametrize("parent", ["", "research"])
def test_a_gang_of_a_namespace_that_is_not_selected_is_not_planned(phase: str, parent: str) -> None:
    """A tenant who can write PodGroups may write their phase, too."""
    world = a_world(selector="team=vision", labels={"team": "speech"}, parent=parent)
    world.gang("a", {"worker": (2, GPU8)}, queue="theirs", phase=phase)
    session = world.plan()
    [message] = barred(session)
    assert "namespace ns is not allowed to use queue 'theirs'" in message
    assert f"queue {parent or 'theirs'!r} is for namespaces with team=vision" in message
    assert not of(session, (Place, AdmitGang))


@pytest.mark.parametrize("selector", ["team=vision,env in (a,b)", "", "!other", "team", f"{NAME_LABEL}=ns"])
def test_a_gang_of_a_selected_namespace_is_planned(selector: str) -> None:
    """The name of a namespace is among its labels."""
    world = a_world(selector=selector, labels={"team": "vision", "env": "b"})
    world.gang("a", {"worker": (2, GPU8)}, queue="theirs", phase="Pending")
    session = world.plan()
    assert not barred(session)
    assert of(session, Place)


def test_a_queue_whose_selector_cannot_be_read_takes_nobody() -> None:
    """The message says what is wrong."""
    world = a_world(selector="team in (vision", labels={"team": "vision"})
    world.gang("a", {"worker": (2, GPU8)}, queue="theirs")
    session = world.plan()
    [message] = barred(session)
    assert "the parentheses of 'team in (vision' do not match" in message
    assert not of(session, Place)


def test_a_gang_that_runs_stays_and_grows_when_the_selector_changes() -> None:
    """Muster has let it in."""
    world = a_world(selector="team=vision", labels={"team": "vision"})
    key = world.gang("a", {"worker": (1, GPU8)}, queue="theirs")
    world.start(key, GPU8)
    world.scale(key, "worker", 2)
    world.pod(key, "worker", 1, GPU8, gated=True)
    world.queue("theirs", **{"namespace-selector": "team=speech"})
    session = world.plan()
    assert not barred(session)
    assert of(session, Place)
    assert not of(session, Evict)


def test_a_member_that_its_owner_put_on_a_node_opens_no_queue() -> None:
    """A pod may be created with a node, past every scheduler; what follows it would have counted as growth."""
    world = a_world(selector="team=vision")
    key = world.gang("a", {"worker": (2, GPU8)}, min_member=1, min_task_member={}, queue="theirs")
    world.pod(key, "worker", 0, {}, node="node-0", phase="Running")
    world.pod(key, "worker", 1, GPU8, gated=True)
    assert world.view(key).started
    session = world.plan()
    assert barred(session)
    assert not of(session, (Place, Evict))


def test_a_namespace_that_gets_the_label_brings_its_gangs_in() -> None:
    """The change is news for the planner."""
    world = a_world(selector="team=vision")
    world.gang("a", {"worker": (2, GPU8)}, queue="theirs")
    assert barred(world.plan())
    assert label(world, {"team": "vision"})
    assert of(world.plan(), Place)


def test_a_gang_that_may_not_use_a_queue_is_not_the_first_of_it() -> None:
    """Others of the queue are tried as if it were not there, and it adds nothing to what the queue asks for."""
    world = a_world(selector="team=vision")
    first = world.gang("a", {"worker": (2, GPU8)}, queue="theirs")
    session = world.plan()
    assert [each.gang.key for each in of(session, Unschedulable)] == [first]
    assert session.snapshot.barred.keys() == {first}


def test_a_gang_of_a_locked_namespace_is_planned_in_its_queue_alone() -> None:
    """Labels of pods can change after admission has set them back."""
    world = World().nodes(2).queue("ours")
    world.gang("a", {"worker": (1, GPU8)})
    mine = world.gang("b", {"worker": (1, GPU8)}, queue="ours")
    assert label(world, {"muster.dev/queue": "ours", "muster.dev/queue-locked": "true"})
    session = world.plan()
    [message] = barred(session)
    assert "the namespace is locked to queue 'ours'" in message
    assert [each.gang.key for each in of(session, Place)] == [mine]
    assert label(world, {})
    assert not barred(world.plan())


HERE = {"muster.dev/queue": "default"}
ENDING = "2026-01-01T00:00:00Z"
OUT = {**HERE, "muster.dev/managed": "false"}


def namespace(world: World, labels: dict[str, str], **more: Any) -> Namespace:
    """The gang's namespace with these labels."""
    return Namespace(metadata=world.meta("ns", namespace="", labels=labels, **more))


def told(world: World) -> str:
    """Why the gang waits."""
    return str(only(world.plan(), Unschedulable).message)


@pytest.fixture
def world() -> World:
    """Three pods of a gang of five, which its namespace has put into a queue, wait behind the gate."""
    world = World().nodes(1)
    world.state.on_namespace(None, namespace(world, HERE))
    world.members(world.pod_group("a", 5), 3, {"cpu": 1}, task="pods", gated=True)
    return world


@pytest.mark.parametrize("labels", [{}, OUT], ids=["without the label", "opted out"])
def test_who_is_in_a_namespace_that_left_is_told_so_until_it_is_back(world: World, labels: dict[str, str]) -> None:
    """A change of another label in between does not hide it; each change has the planner look."""
    assert told(world) == "3 of the 5 pods that start together exist"
    before, after = namespace(world, HERE), namespace(world, labels)
    assert world.state.on_namespace(before, after)
    assert not world.state.on_namespace(after, namespace(world, {**labels, "team": "red"}))
    assert "namespace ns no longer gives its pods a queue" in told(world)
    assert "muster.dev/queue again" in told(world)
    assert "delete the waiting pods" in told(world)
    assert world.state.on_namespace(after, before)
    assert told(world) == "3 of the 5 pods that start together exist"


def test_a_volcano_job_is_not_told(world: World) -> None:
    """It names its queue itself: pods that it lacks are to be made yet."""
    world.pod(world.gang("b", {"worker": (2, {"cpu": 1})}), "worker", 0, {"cpu": 1}, gated=True)
    world.state.on_namespace(namespace(world, HERE), namespace(world, {}))
    messages = {each.gang.key: each.message for each in of(world.plan(), Unschedulable)}
    assert "no longer gives its pods a queue" in messages.pop("ns/a")
    assert "no longer gives its pods a queue" not in str(messages)


def test_a_namespace_that_never_gave_a_queue_is_not_the_reason(world: World) -> None:
    """Its pods name their queue themselves; a namespace that is gone and made anew begins afresh."""
    world.state.on_namespace(namespace(world, HERE), None)
    world.state.on_namespace(None, namespace(world, {}))
    world.state.on_namespace(namespace(world, {}), namespace(world, {"team": "red"}))
    assert told(world) == "3 of the 5 pods that start together exist"


@pytest.mark.parametrize("phase", ["", "Pending", "Inqueue"])
def test_a_gang_of_an_ending_namespace_takes_no_room_and_is_told_nothing(phase: str) -> None:
    """Nobody could read that for long. A namespace that is made again under the name begins afresh."""
    world = World().nodes(2)
    before, ending = namespace(world, {}), namespace(world, {}, deletion_timestamp=ENDING)
    world.state.on_namespace(None, before)
    world.gang("a", {"worker": (2, GPU8)}, phase=phase)
    assert world.state.on_namespace(before, ending)
    assert not of(world.plan(), (AdmitGang, Place, Unschedulable))
    world.state.on_namespace(ending, None)
    world.state.on_namespace(None, namespace(world, {}))
    assert of(world.plan(), Place)


def test_members_lost_in_an_ending_namespace_are_not_placed_again() -> None:
    """They would be planned on nodes in each cycle, and refused."""
    world = World().nodes(2)
    key = world.gang("a", {"worker": (2, GPU8)})
    world.pod(key, "worker", 0, GPU8, node="node-0")
    world.state.on_namespace(None, namespace(world, {}, deletion_timestamp=ENDING))
    assert not of(world.plan(), (Place, Unschedulable))
