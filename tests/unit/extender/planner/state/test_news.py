"""From which changes something may follow for the planner: it is woken by those, and sleeps through all others."""

from typing import Any

import msgspec
import pytest
from builders import pod
from extender_world import NOW, World

from muster.api.kubernetes.core import Pod

CPU = {"cpu": 1}


@pytest.fixture
def world() -> World:
    """A gang of three that starts with two, with its placement; no pods yet."""
    world = World().nodes(1)
    world.gang("a", {"worker": (3, CPU)}, min_member=2, min_task_member={})
    world.plan()
    assert "ns/a" in world.state.placements
    return world


def made(world: World, rank: int, **more: Any) -> Pod:
    """A pod of the gang as it would come; the state is not told by this."""
    member = World().pod("ns/a", "worker", rank, CPU, **more)
    meta = msgspec.structs.replace(member.metadata, resource_version=str(next(world._versions)))
    return msgspec.structs.replace(member, metadata=meta)


def test_members_that_come_as_expected_are_no_news(world: World) -> None:
    """They are pinned where the placement has them; any other pod may have to be placed, let go or deleted."""
    assert world.state.on_pod(None, made(world, 0, pin="node-0", epoch=1)) is False
    assert world.state.on_pod(None, made(world, 1, gated=True)) is True
    assert world.state.on_pod(None, made(world, 2, pin="node-0", epoch=7)) is True


def test_members_that_we_bind_are_news_when_the_gang_can_start_and_when_all_are_there(world: World) -> None:
    """Its PodGroup runs from the second on, and with the third the placement ends."""
    for rank in range(3):
        world.state.on_pod(None, made(world, rank, pin="node-0", epoch=1))
    assert [world.state.assume(f"uid-a-worker-{rank}", "node-0") for rank in range(3)] == [False, True, True]
    assert world.state.ledger.placed == {}
    world.state.on_pod(None, pod("plain", uid="uid-plain"))
    assert world.state.assume("uid-plain", "node-0") is False, "it is of no gang"
    assert world.state.assume("uid-gone", "node-0") is False


@pytest.mark.parametrize(
    ("change", "news"),
    [
        ({}, False),
        ({"bound": NOW}, False),
        ({"phase": "Running", "since": NOW}, False),
        ({"phase": "Succeeded"}, True),
        ({"phase": "Failed"}, True),
        ({"deletion_timestamp": "2030-01-01T00:00:00Z"}, True),
        ({"labels": {"team": "another"}}, False),
    ],
)
def test_pods_that_go_on_where_they_are_bound_are_no_news(world: World, change: dict[str, Any], *, news: bool) -> None:
    """Room is given back when a pod ends, or is about to."""
    world.state.on_pod(None, made(world, 0, pin="node-0", epoch=1))
    world.state.assume("uid-a-worker-0", "node-0")
    assert world.state.on_pod(None, made(world, 0, pin="node-0", epoch=1, node="node-0", **change)) is news


def test_what_we_have_written_comes_twice_and_is_news_once(world: World) -> None:
    """As the answer of the API server, and through the watch."""
    placement, group = world.state.placements["ns/a"], world.state.groups["ns/a"]
    for tell, known in ((world.state.on_placement, placement), (world.state.on_pod_group, group)):
        again = msgspec.convert(msgspec.to_builtins(known), type(known))
        assert tell(known, again) is False  # type: ignore[operator]
        newer = msgspec.structs.replace(again, metadata=world._newer(again.metadata))
        assert tell(known, newer) is True  # type: ignore[operator]
