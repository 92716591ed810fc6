"""A placement that is being carried out is looked at when something changed, and once a second for the time."""

import pytest
from extender_world import World, of

from extender.planner.actions import progress
from extender.planner.actions.progress import LOOK_S
from extender.planner.framework import decisions
from extender.planner.framework.session import Session
from extender.planner.state.gangs import GangView

CPU = {"cpu": 1}


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    """Two gangs that start; `looked` counts how often a cycle follows a gang's placement."""
    world = World().nodes(4)
    for name in ("a", "b"):
        key = world.gang(name, {"worker": (2, CPU)})
        world.plan()
        for rank in range(2):
            world.pod(key, "worker", rank, CPU, pin="node-0", epoch=1)
    looked: list[str] = []
    monkeypatch.setattr(world, "looked", looked, raising=False)
    follow = progress._follow

    def count(session: Session, gang: GangView) -> None:
        looked.append(gang.key)
        follow(session, gang)

    monkeypatch.setattr(progress, "_follow", count)
    world.plan()
    return world


def looks(world: World) -> list[str]:
    """The gangs that one more cycle looks at."""
    world.looked.clear()  # type: ignore[attr-defined]
    world.plan()
    return sorted(world.looked)  # type: ignore[attr-defined]


def test_what_changes_is_looked_at(world: World) -> None:
    """A member of one gang, or any node."""
    assert looks(world) == []
    world.pod("ns/a", "worker", 0, CPU, pin="node-0", epoch=1, node="node-0")
    assert looks(world) == ["ns/a"]
    world.node("node-3", unschedulable=True)
    assert looks(world) == ["ns/a", "ns/b"]


def test_deadlines_pass_without_a_change(world: World) -> None:
    """They are seen within a second."""
    world.now += LOOK_S / 2
    assert looks(world) == []
    world.now += LOOK_S / 2
    assert looks(world) == ["ns/a", "ns/b"]
    world.now += 600
    assert {close.phase for close in of(world.plan(), decisions.ClosePlacement)} == {"Abandoned"}


def test_what_was_decided_is_decided_until_it_is_done(world: World) -> None:
    """A write may fail: the next cycle decides it again."""
    world.node("node-0", unschedulable=True)
    for _ in range(2):
        assert {close.gang.key for close in of(world.plan(), decisions.ClosePlacement)} == {"ns/a", "ns/b"}
