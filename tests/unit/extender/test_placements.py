"""Each decision about a placement is written into it, told where it is news, and in the state at once."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from extender_world import World, of
from guarded_extender import process_of
from victims_world import Cluster as VictimsWorld

from extender.planner.actions.allocate import Allocate
from extender.planner.framework import decisions
from extender.planner.reasons.placements import on_spares
from extender.planner.state.gangs import GangView
from muster.api.kubernetes.meta import format_time
from muster.api.muster.placement import (
    PLACEMENTS,
    AvoidedNode,
    BorrowedSpares,
    NodeRun,
    NodeSpares,
    Placement,
    PodSetPlacement,
    Victim,
)
from muster.api.muster.pools import labels_of
from muster.api.muster.reason import reason_of

WHY = reason_of("why")
SPARES = [NodeSpares("worker", "node-1", 1)]
AVOIDED = (AvoidedNode(node="node-0", until="2030-01-01T00:00:00Z", failures=1),)
SLOTS = [PodSetPlacement("worker", [NodeRun("node-0", 1), NodeRun("node-1", 1)])]
Decide = Callable[[GangView], Any]
Seen = Callable[[Placement], object]
CASES: dict[str, tuple[str, Decide, Seen, object, list[str]]] = {
    "spares": ("Bound", lambda gang: decisions.KeepSpares(gang, SPARES, 0), lambda one: one.spec.spares, SPARES, []),
    "nodes to avoid": ("Bound", lambda gang: decisions.Avoid(gang, AVOIDED, gang.pods),
                       lambda one: tuple(one.status.avoided), AVOIDED, []),
    "room": ("Planned", lambda gang: decisions.RoomIsThere(gang, SLOTS, 2),
             lambda one: (one.spec.victims, one.spec.deadline), ([], format_time(1_800_000_000 + 30.2)), []),
    "a reservation": ("Reserved", lambda gang: decisions.Reserve(gang, SLOTS, None, 0.0, WHY),
                      lambda one: (one.status.phase, one.status.planned), ("Reserved", 2), []),
    "a first reservation": ("Abandoned", lambda gang: decisions.Reserve(gang, SLOTS, None, 0.0, WHY),
                            lambda one: (one.status.phase, one.status.planned), ("Reserved", 2),
                            ["low Reserved: why", "low Reserved: why"]),
    "no reservation any more": ("Reserved", lambda gang: decisions.Unreserve(gang, WHY),
                                lambda one: (one.status.phase, one.status.message), ("Abandoned", "why"), []),
    "a reservation that was none": ("Planned", lambda gang: decisions.Unreserve(gang, WHY),
                                    lambda one: one.status.phase, "Planned", []),
    "an end": ("Planned", lambda gang: decisions.ClosePlacement(gang, "Abandoned", WHY),
               lambda one: (one.status.phase, one.status.message), ("Abandoned", "why"),
               ["low PlacementAbandoned: why", "low PlacementAbandoned: why"]),
    "all are bound": ("Planned", lambda gang: decisions.ClosePlacement(gang, "Bound", WHY),
                      lambda one: (one.status.phase, one.status.bound), ("Bound", 2), ["low Bound: why"]),
    "some are given up": ("Planned", lambda gang: decisions.ClosePlacement(gang, "Bound", WHY, pod_sets=SLOTS),
                          lambda one: (one.status.phase, one.spec.epoch), ("Bound", 2), []),
}  # fmt: skip


@pytest.mark.parametrize(("phase", "decide", "seen", "expected", "events"), CASES.values(), ids=CASES)
def test_a_decision_is_written(phase: Any, decide: Decide, seen: Seen, expected: object, events: list[str]) -> None:
    """In the API server and in the state; an Event tells what its user has to know."""
    world = VictimsWorld(2)
    key = world.runs("low", 2)
    world.started(key, 60)
    known = world.state.placements[key]
    victims = [Victim(name="p", gang="g", uid="u")]
    world.change(known, status={"phase": phase}, spec={"victims": victims, "pod_sets": SLOTS})
    gang, session, kept = world.view(key), world.session(), []
    session.decisions = [decide(gang)]
    with process_of(world) as process:
        process.committer.keep_failures = lambda: kept.append(1)
        process.committer._statuses.write = lambda _: None  # type: ignore[method-assign]
        process.carry_out(session)
        assert seen(world.state.placements[key]) == expected
        [written] = process.api.all(PLACEMENTS)
        assert seen(written) == expected
    assert process.events == events
    avoids = bool(of(session, decisions.Avoid))
    assert (bool(kept), world.state.failures.remembered) == (avoids, {key: AVOIDED} if avoids else {})


@pytest.mark.parametrize("gone", [False, True])
def test_the_phase_binding_is_shown_and_may_be_lost(*, gone: bool) -> None:
    """Nobody waits for it: users who watch placements read it."""
    world = VictimsWorld(2)
    key = world.runs("low", 2)
    world.started(key, 60)
    known = world.state.placements[key]
    with process_of(world) as process:
        if gone:
            process.api.kind(PLACEMENTS).clear()
        process.committer.mark_binding(known, 1)
        assert process.committer.writes.settled(10)
        found = [(each.status.phase, each.status.bound) for each in process.api.all(PLACEMENTS)]
    assert found == ([] if gone else [("Binding", 1)])
    assert (key in world.state.placements) is not gone


def test_a_placement_of_a_pool_has_its_label_and_tells_of_loans() -> None:
    """The pair of that pool watches only those; a gang of several pods is owned by its PodGroup."""
    world = World().nodes(2)
    key = world.gang("a", {"worker": (2, {"cpu": 1})})
    session = world.session(Allocate())
    [place] = of(session, decisions.Place)
    world.state.pool = "b"
    loans = [BorrowedSpares("uid", "worker", "node-0"), BorrowedSpares("uid", "worker", "node-0")]
    with process_of(world) as process:
        process.committer._placements.place(session, replace(place, borrows=loans))
        [written] = process.api.all(PLACEMENTS)
    assert written.metadata.labels == labels_of("b")
    [owner] = written.metadata.owner_references
    uid = world.state.groups[key].metadata.uid
    assert (owner.uid, owner.controller, owner.block_owner_deletion) == (uid, True, True)
    told = [event for event in process.events if "BorrowsSpares" in event]
    assert told == [f"a BorrowsSpares: {on_spares(['node-0'])}"] * 2
