"""Each decision about a placement is written into it, told where it is news, and in the state at once."""

from collections.abc import Callable
from typing import Any

import pytest
from extender_world import of
from guarded_extender import process_of
from victims_world import Cluster as VictimsWorld

from extender.planner.framework import decisions
from extender.planner.state.gangs import GangView
from muster.api.kubernetes.meta import format_time
from muster.api.muster.placement import PLACEMENTS, AvoidedNode, NodeRun, Placement, PodSetPlacement, SpareSeats, Victim
from muster.api.muster.reason import reason_of

WHY = reason_of("why")
SPARES = [SpareSeats("worker", "node-1", 1)]
AVOIDED = (AvoidedNode(node="node-0", until="2030-01-01T00:00:00Z", failures=1),)
SLOTS = [PodSetPlacement("worker", [NodeRun("node-0", 1), NodeRun("node-1", 1)])]
Decide = Callable[[GangView], Any]
Seen = Callable[[Placement], object]
CASES: dict[str, tuple[str, Decide, Seen, object, list[str]]] = {
    "spares": ("Bound", lambda gang: decisions.KeepSpares(gang, SPARES, 0), lambda one: one.spec.spares, SPARES, []),
    "nodes to avoid": (
        "Bound",
        lambda gang: decisions.Avoid(gang, AVOIDED, gang.pods),
        lambda one: tuple(one.status.avoided),
        AVOIDED,
        [],
    ),
    "room": (
        "Planned",
        lambda gang: decisions.RoomIsThere(gang, SLOTS, 2),
        lambda one: (one.spec.victims, one.spec.deadline),
        ([], format_time(1_800_000_000 + 30.2)),
        [],
    ),
    "a reservation": (
        "Reserved",
        lambda gang: decisions.Reserve(gang, SLOTS, None, 0.0, WHY),
        lambda one: (one.status.phase, one.status.planned),
        ("Reserved", 2),
        [],
    ),
    "a first reservation": (
        "Abandoned",
        lambda gang: decisions.Reserve(gang, SLOTS, None, 0.0, WHY),
        lambda one: (one.status.phase, one.status.planned),
        ("Reserved", 2),
        ["low Reserved: why", "low Reserved: why"],
    ),
    "no reservation any more": (
        "Reserved",
        lambda gang: decisions.Unreserve(gang, WHY),
        lambda one: (one.status.phase, one.status.message),
        ("Abandoned", "why"),
        [],
    ),
    "a reservation that was none": (
        "Planned",
        lambda gang: decisions.Unreserve(gang, WHY),
        lambda one: one.status.phase,
        "Planned",
        [],
    ),
    "an end": (
        "Planned",
        lambda gang: decisions.ClosePlacement(gang, "Abandoned", WHY),
        lambda one: (one.status.phase, one.status.message),
        ("Abandoned", "why"),
        ["low PlacementAbandoned: why", "low PlacementAbandoned: why"],
    ),
    "all are bound": (
        "Planned",
        lambda gang: decisions.ClosePlacement(gang, "Bound", WHY),
        lambda one: (one.status.phase, one.status.bound),
        ("Bound", 2),
        ["low Bound: why"],
    ),
    "some are given up": (
        "Planned",
        lambda gang: decisions.ClosePlacement(gang, "Bound", WHY, pod_sets=SLOTS),
        lambda one: (one.status.phase, one.spec.epoch),
        ("Bound", 2),
        [],
    ),
}


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
