"""A gang waits for a queue only if the queue, and each above it, selects its namespace."""

import pytest
from extender_world import World, of

from extender.planner import reasons
from extender.planner.framework import decisions
from extender.planner.framework.session import Session
from muster.api.kubernetes.core import Namespace
from muster.api.kubernetes.meta import ObjectMeta
from muster.volcano.access import NAME_LABEL

GPU8 = {"cpu": 4, "nvidia.com/gpu": 8}


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
    waits = of(session, decisions.Unschedulable)
    return [each.message for each in waits if each.reason == reasons.queues.NOT_FOR_NAMESPACE]


@pytest.mark.parametrize("phase", ["", "Pending", "Inqueue"])
@pytest.mark.parametrize("parent", ["", "research"])
def test_a_gang_of_a_namespace_that_is_not_selected_is_not_planned(phase: str, parent: str) -> None:
    """A tenant who can write PodGroups may write their phase, too."""
    world = a_world(selector="team=vision", labels={"team": "speech"}, parent=parent)
    world.gang("a", {"worker": (2, GPU8)}, queue="theirs", phase=phase)
    session = world.plan()
    [message] = barred(session)
    assert "namespace ns may not use queue 'theirs'" in message
    assert f"queue {parent or 'theirs'!r} is for namespaces with team=vision" in message
    assert not of(session, decisions.Place)
    assert not of(session, decisions.Enqueue)


@pytest.mark.parametrize("selector", ["team=vision,env in (a,b)", "", "!other", "team", f"{NAME_LABEL}=ns"])
def test_a_gang_of_a_selected_namespace_is_planned(selector: str) -> None:
    """The name of a namespace is among its labels."""
    world = a_world(selector=selector, labels={"team": "vision", "env": "b"})
    world.gang("a", {"worker": (2, GPU8)}, queue="theirs", phase="Pending")
    session = world.plan()
    assert not barred(session)
    assert of(session, decisions.Place)


def test_a_queue_whose_selector_cannot_be_read_takes_nobody() -> None:
    """The message says what is wrong."""
    world = a_world(selector="team in (vision", labels={"team": "vision"})
    world.gang("a", {"worker": (2, GPU8)}, queue="theirs")
    session = world.plan()
    [message] = barred(session)
    assert "the parentheses of 'team in (vision' do not match" in message
    assert not of(session, decisions.Place)


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
    assert of(session, decisions.Place)
    assert not of(session, decisions.Evict)


def test_a_member_that_its_owner_put_on_a_node_opens_no_queue() -> None:
    """A pod may be created with a node, past every scheduler; what follows it would have counted as growth."""
    world = a_world(selector="team=vision")
    key = world.gang("a", {"worker": (2, GPU8)}, min_member=1, min_task_member={}, queue="theirs")
    world.pod(key, "worker", 0, {}, node="node-0", phase="Running")
    world.pod(key, "worker", 1, GPU8, gated=True)
    assert world.view(key).started
    session = world.plan()
    assert barred(session)
    assert not of(session, decisions.Place)
    assert not of(session, decisions.Evict)


def test_a_namespace_that_gets_the_label_brings_its_gangs_in() -> None:
    """The change is news for the planner."""
    world = a_world(selector="team=vision")
    world.gang("a", {"worker": (2, GPU8)}, queue="theirs")
    assert barred(world.plan())
    assert label(world, {"team": "vision"})
    assert of(world.plan(), decisions.Place)


def test_a_gang_that_may_not_use_a_queue_is_not_the_first_of_it() -> None:
    """Others of the queue are tried as if it were not there, and it adds nothing to what the queue asks for."""
    world = a_world(selector="team=vision")
    first = world.gang("a", {"worker": (2, GPU8)}, queue="theirs")
    session = world.plan()
    assert [each.gang.key for each in of(session, decisions.Unschedulable)] == [first]
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
    assert [each.gang.key for each in of(session, decisions.Place)] == [mine]
    assert label(world, {})
    assert not barred(world.plan())
