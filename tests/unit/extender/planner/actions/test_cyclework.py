"""A namespace with gangs of many different shapes waits for its own turns, and delays nobody else."""

from itertools import pairwise

import pytest
from extender_world import CPU, World

from extender.planner.actions import cyclework
from extender.planner.actions.allocate import Allocate
from extender.planner.framework import decisions
from extender.planner.framework.session import Session

SHAPES = 12
LATER = "TriedLater"


def reasons_of(session: Session) -> dict[str, str]:
    """Gang → reason to wait."""
    return {each.gang.key: each.reason for each in session.decided(decisions.Unschedulable)}


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    """A full node, and gangs of different shapes, of which a cycle tries four."""
    world = World(checked=False).nodes(1, cpu=4)
    kept = Allocate()
    world.allocate = lambda: kept  # type: ignore[assignment,return-value]
    plain = cyclework._SHAPE * len(world.session().snapshot.nodes)
    monkeypatch.setattr(cyclework, "MOST", 4 * plain)
    for number in range(SHAPES):
        world.gang(f"g{number:02}", {"w": (1, {"cpu": 5 + number})})
    return world


def test_all_gangs_of_a_crowded_namespace_are_tried_in_turn(world: World) -> None:
    """The first ones in each cycle; one that was tried keeps its reason."""
    tried = [sorted(key for key, reason in reasons_of(world.plan()).items() if reason != LATER) for _ in range(8)]
    assert len(tried[0]) == 4
    assert all(set(before) <= set(after) for before, after in pairwise(tried))
    assert len(tried[-1]) == SHAPES
    assert all({"ns/g00", "ns/g01"} <= {*each} for each in tried)


def test_others_are_tried_in_each_cycle(world: World) -> None:
    """However many shapes a namespace has, and whichever comes first."""
    key = world.pod_group("other", namespace="there")
    world.pod(key, "w", 0, CPU, namespace="there")
    session = world.plan()
    assert [each.gang.key for each in session.decided(decisions.Place)] == ["there/other"]
    assert list(reasons_of(session).values()).count(LATER) == SHAPES - 4


def test_a_gang_that_fits_is_placed_within_a_round(world: World) -> None:
    """Behind eleven that do not, the first of which are tried again each time; the one with most work not."""
    key = world.gang("last", {"w": (1, {"cpu": 1, "memory": "1Gi"})})
    spec = {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
        {"topologyKey": f"key-{number}", "labelSelector": {"matchLabels": {"a": "b"}}} for number in range(8)
    ]}}}  # fmt: skip
    world.gang("large", {"w": (1, {"cpu": 9})}, spec=spec)
    cycles = 0
    while key not in world.state.placements:
        world.plan()
        cycles += 1
        assert cycles <= SHAPES
