"""What a cycle leaves behind goes at once: it has a copy of the cluster, and garbage collections are rare."""

import gc
import weakref
from collections.abc import Iterator, Sequence

import pytest
from extender_world import World

from extender.planner.cycle import Parts
from extender.planner.framework.config import SchedulerConfig, parse
from extender.planner.framework.registry import Action
from extender.planner.framework.session import Session

EVERYTHING = """
actions: "enqueue, allocate, consolidate, reclaim, preempt, backfill"
tiers:
- plugins:
  - name: gang
  - name: priority
  - name: drf
  - name: nodeorder
  - name: binpack
  - name: minruntime
  - name: topology
  - name: snapshot
  - name: reflectjoborder
"""


@pytest.fixture
def no_collector() -> Iterator[None]:
    """Nothing is collected meanwhile."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.parametrize("config", [SchedulerConfig(), parse(EVERYTHING)], ids=["default", "many plugins"])
@pytest.mark.usefixtures("no_collector")
def test_a_session_that_is_forgotten_is_gone(config: SchedulerConfig) -> None:
    """One gang is placed, and one finds no room."""
    world = World().nodes(4)
    world.gang("fits", {"worker": (8, {"nvidia.com/gpu": 4})})
    world.gang("waits", {"worker": (9, {"nvidia.com/gpu": 4})})
    actions, world.plugins = Parts().parts_of(config)
    assert [session() for session in cycles(world, actions)] == [None, None, None]


def cycles(world: World, actions: Sequence[Action]) -> list[weakref.ref[Session]]:
    """Sessions that nobody has any more."""
    sessions = [world.session(*actions) for _ in range(3)]
    assert all(session.decisions for session in sessions)
    for session in sessions:
        session.forget()
    return [weakref.ref(session) for session in sessions]
