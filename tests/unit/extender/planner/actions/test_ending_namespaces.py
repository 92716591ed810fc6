"""A gang of a namespace that is being deleted gets no room: the API server would take no placement of it."""

import pytest
from extender_world import World, of

from extender.planner.framework.decisions import Enqueue, Place, Unschedulable
from muster.api.kubernetes.core import Namespace

GPU8 = {"cpu": 4, "nvidia.com/gpu": 8}


def namespace(world: World, *, ends: bool) -> Namespace:
    """The gangs' namespace, which is being deleted or not."""
    since = "2026-01-01T00:00:00Z" if ends else None
    return Namespace(metadata=world.meta("ns", namespace="", deletion_timestamp=since))


@pytest.mark.parametrize("phase", ["", "Pending", "Inqueue"])
def test_it_takes_no_room_and_is_told_nothing(phase: str) -> None:
    """Nobody could read that for long. A namespace that is made again under the name begins afresh."""
    world = World().nodes(2)
    before, ending = namespace(world, ends=False), namespace(world, ends=True)
    world.state.on_namespace(None, before)
    world.gang("a", {"worker": (2, GPU8)}, phase=phase)
    assert world.state.on_namespace(before, ending)
    assert not of(world.plan(), (Enqueue, Place, Unschedulable))
    world.state.on_namespace(ending, None)
    world.state.on_namespace(None, namespace(world, ends=False))
    assert of(world.plan(), Place)


def test_members_that_it_loses_are_not_placed_again() -> None:
    """They would be planned on nodes in each cycle, and refused."""
    world = World().nodes(2)
    key = world.gang("a", {"worker": (2, GPU8)})
    world.pod(key, "worker", 0, GPU8, node="node-0")
    world.state.on_namespace(None, namespace(world, ends=True))
    assert not of(world.plan(), (Place, Unschedulable))
