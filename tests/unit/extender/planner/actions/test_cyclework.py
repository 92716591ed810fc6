"""A namespace with gangs of many different shapes is planned over several cycles, and delays no other namespace."""

from itertools import pairwise
from typing import Any

import pytest
from extender_world import CPU, World

from extender.planner.actions import cyclework
from extender.planner.actions.allocate import Allocate
from extender.planner.actions.cyclework import CycleWork
from extender.planner.framework import decisions
from extender.planner.framework.session import Session
from extender.planner.plugins.order import Reservations

SHAPES = 12
LATER = "TriedLater"
MUCH_WORK = {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
    {"topologyKey": f"key-{number}", "labelSelector": {"matchLabels": {"a": "b"}}} for number in range(8)
]}}}  # fmt: skip

WITH_EACH_OTHER = {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
    {"topologyKey": "zone", "labelSelector": {}}
]}}}  # fmt: skip


def reasons_of(session: Session) -> dict[str, str]:
    """Gang → reason to wait."""
    return {each.gang.key: each.reason for each in session.decided(decisions.Unschedulable)}


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    """A full node, and gangs of different shapes; a cycle searches for four of them."""
    world = World(checked=False).nodes(1, cpu=4)
    kept = Allocate()
    world.allocate = lambda: kept  # type: ignore[assignment,return-value]
    plain = cyclework._SEARCH + cyclework._SHAPE * len(world.session().snapshot.nodes)
    monkeypatch.setattr(cyclework, "MOST", 4 * plain)
    for number in range(SHAPES):
        world.gang(f"g{number:02}", {"w": (1, {"cpu": 5 + number})})
    return world


def test_all_gangs_of_a_crowded_namespace_are_planned_in_some_cycle(world: World) -> None:
    """The first ones in each cycle; a skipped gang keeps its last reason."""
    tried = [sorted(key for key, reason in reasons_of(world.plan()).items() if reason != LATER) for _ in range(8)]
    assert len(tried[0]) == 4
    assert all(set(before) <= set(after) for before, after in pairwise(tried))
    assert len(tried[-1]) == SHAPES
    assert all({"ns/g00", "ns/g01"} <= {*each} for each in tried)


def test_only_the_first_search_for_a_shape_counts(world: World) -> None:
    """A cycle searches for four shapes more, and both gangs of such a shape get the reason."""
    for number in range(SHAPES):
        world.gang(f"twin{number:02}", {"w": (1, {"cpu": 5 + number})})
    tried = [sum(reason != LATER for reason in reasons_of(world.plan()).values()) for _ in range(2 * SHAPES)]
    assert max(after - before for before, after in pairwise(tried)) == 2 * 4
    assert tried[-1] == 2 * SHAPES


@pytest.mark.parametrize(("mode", "cpu"), [("strict", 1), ("reserve", 3)])
def test_a_skipped_first_gang_stays_first(world: World, mode: str, cpu: int) -> None:
    """Nobody behind it starts in a strict queue, and its reservation stays."""
    world.queue("first", reservations=mode)
    world.plugins.append(Reservations({}))
    runs = world.gang("runs", {"w": (1, {"cpu": 2})}, queue="first", runtime="1h")
    world.plan()
    started: dict[str, Any] = {"node": "node-0", "pin": "node-0", "epoch": 1, "since": world.now}
    world.pod(runs, "w", 0, {"cpu": 2}, phase="Running", **started)
    world.close(world.plan())
    world.gang("head", {"w": (1, {"cpu": 4})}, queue="first", spec=MUCH_WORK)
    world.gang("behind", {"w": (1, {"cpu": cpu})}, queue="first")
    heads = set()
    for _ in range(2 * SHAPES):
        session = world.plan()
        assert not [*session.decided(decisions.Place), *session.decided(decisions.Unreserve)]
        heads.add(reasons_of(session)["ns/head"])
        world.now += 11
    assert len(heads) == 2, heads


def test_other_namespaces_are_planned_in_each_cycle(world: World) -> None:
    """However many shapes a namespace has, and whichever comes first."""
    key = world.pod_group("other", namespace="there")
    world.pod(key, "w", 0, CPU, namespace="there")
    session = world.plan()
    assert [each.gang.key for each in session.decided(decisions.Place)] == ["there/other"]
    assert list(reasons_of(session).values()).count(LATER) == SHAPES - 4


@pytest.mark.parametrize(("spec", "checks"), [
    ({}, 0), (MUCH_WORK, 8 * cyclework._TERM), (WITH_EACH_OTHER, 3 * cyclework._TERM)
])  # fmt: skip
def test_the_work_of_a_search(world: World, spec: dict[str, Any], checks: int) -> None:
    """Terms count for each node, and for each pod if they are about the gang's own pods."""
    key = world.gang("last", {"w": (3, {"cpu": 9})}, spec=spec)
    session = world.session()
    nodes = len(session.snapshot.nodes)
    assert CycleWork()._work(session, world.view(key)) == cyclework._SEARCH + (cyclework._SHAPE + checks) * nodes


def test_a_gang_that_fits_is_placed_within_a_round(world: World) -> None:
    """Behind eleven that do not; the first of them are planned in each cycle, except the one with most work."""
    key = world.gang("last", {"w": (1, {"cpu": 1, "memory": "1Gi"})})
    world.gang("large", {"w": (1, {"cpu": 9})}, spec=MUCH_WORK)
    cycles = 0
    while key not in world.state.placements:
        world.plan()
        cycles += 1
        assert cycles <= SHAPES
