"""Content of placements: nodes left out, failed attempts, starts, victims and reservations."""

from typing import Any

import pytest
from extender_world import GPU8, World, of, only, slots
from victims_world import Cluster

from extender.placementcontent import (
    MADE_ROOM,
    back_off_s,
    binding,
    closed,
    of_gang,
    placed,
    reserved,
    unreserved,
    with_room,
)
from extender.planner.actions.allocate import Allocate
from extender.planner.actions.progress import AVOID_S
from extender.planner.framework import decisions
from extender.planner.reasons.placements import remade
from extender.planner.state.avoided import avoided_nodes
from extender.planner.timing import arrival_s
from muster.api.kubernetes.meta import format_time
from muster.api.muster.placement import (
    AvoidedNode,
    BorrowedSpares,
    NodeRun,
    NodeSpares,
    Notice,
    PlacementPhase,
    PlacementSpec,
    PlacementStatus,
    PodSetPlacement,
    Victim,
)
from muster.api.muster.placementnotes import PlacementContent
from muster.api.muster.reason import reason_of


def abandoned(world: World, node: str, until: float) -> None:
    """Gang `a` had a placement; `node` refused a member."""
    world.gang("a", {"worker": (2, GPU8)})
    world.plan()
    avoided = [AvoidedNode(node=node, until=format_time(until))]
    world.change(world.state.placements["ns/a"], status={"phase": "Abandoned", "avoided": avoided})


def test_what_a_placement_says_is_avoided_until_its_time() -> None:
    """Also by a planner that was not there when the node refused."""
    world = World().nodes(3)
    abandoned(world, "node-0", world.now + 30)
    gangs = [world.view("ns/a")]
    assert avoided_nodes(gangs, world.now) == {"ns/a": {"node-0"}}
    assert avoided_nodes(gangs, world.now + 30) == {}
    assert slots(only(world.session(Allocate()), decisions.Place)) == {"worker": ["node-1", "node-2"]}


def test_a_node_that_is_avoided_already_keeps_its_time() -> None:
    """A second refusal elsewhere does not make the first one longer."""
    world = World().nodes(3)
    abandoned(world, "node-0", world.now + 30)
    world.state.placements["ns/a"].status.avoided += [AvoidedNode(node="node-2", until=format_time(world.now))]
    close = decisions.ClosePlacement(world.view("ns/a"), "Abandoned", reason_of("node-1 refused a member"))
    assert closed(close, now=world.now, avoided={"node-0", "node-1", "node-2"}).status.avoided == [
        AvoidedNode(node="node-0", until=format_time(world.now + 30)),
        AvoidedNode(node="node-1", until=format_time(world.now + AVOID_S)),
        AvoidedNode(node="node-2", until=format_time(world.now + AVOID_S)),
    ]


BEFORE = {"attempts": 2, "not_before": "then", "evictions_in_vain": 3, "no_evictions_before": "then"}
NEVER = {"attempts": 0, "not_before": "", "evictions_in_vain": 0, "no_evictions_before": ""}
ENDS: dict[str, tuple[PlacementPhase, bool, dict[str, bool], dict[str, Any]]] = {
    "all are bound": ("Bound", False, {}, NEVER),
    "it failed": ("Abandoned", False, {}, BEFORE),
    "its pods came": ("Abandoned", True, {}, BEFORE | {"attempts": 0, "not_before": ""}),
    "no pod came": ("Abandoned", False, {"in_vain": True}, BEFORE | {"attempts": 3, "not_before": 40}),
    "a budget kept its victims": ("Abandoned", False, {"evicted_in_vain": True},
                                  BEFORE | {"evictions_in_vain": 4, "no_evictions_before": 80}),
    "started, and a budget kept its victims": ("Bound", False, {"evicted_in_vain": True},
        NEVER | {"evictions_in_vain": 4, "no_evictions_before": 80}),
}  # fmt: skip


@pytest.mark.parametrize(("phase", "pods", "said", "after"), ENDS.values(), ids=ENDS)
def test_failed_attempts_are_counted_until_one_succeeds(
    phase: PlacementPhase, said: dict[str, bool], after: dict[str, Any], *, pods: bool
) -> None:
    """Each one doubles the time to the next."""
    world = World().nodes(2)
    key = world.gang("a", {"worker": (2, GPU8)})
    world.plan()
    world.change(world.state.placements[key], status=BEFORE)
    if pods:
        world.members(key, 2, GPU8, gated=True)
    close = decisions.ClosePlacement(world.view(key), phase, reason_of("why"), **said)
    status = closed(close, now=world.now, avoided=()).status
    expected = {name: format_time(world.now + value) if name.endswith("before") and value not in {"", "then"} else value
                for name, value in after.items()}  # fmt: skip
    assert {name: getattr(status, name) for name in after} == expected
    assert (status.phase, status.message, status.why) == (phase, "why", None)
    assert (status.started, bool(status.started_at), status.started_with is not None) == ((phase == "Bound",) * 3)


def test_times_of_attempts_and_arrivals() -> None:
    """Ten pods a second come where the API server is busy; nobody waits longer than ten minutes."""
    assert [back_off_s(attempts) for attempts in (1, 2, 3, 6, 7, 100)] == [10, 20, 40, 320, 600, 600]
    assert [arrival_s(slots) for slots in (0, 1, 1000)] == pytest.approx([30, 30.1, 130])


def test_a_placement_that_is_cut_short_has_the_next_epoch() -> None:
    """Pods by the earlier one are not bound; the start stays the first one, rounded up."""
    world = World().nodes(2)
    key = world.gang("a", {"worker": (2, GPU8)})
    world.plan()
    [kept, *_] = world.state.placements[key].spec.pod_sets
    close = decisions.ClosePlacement(world.view(key), "Bound", reason_of("why"), pod_sets=[kept])
    first = closed(close, now=world.now + 0.5, avoided=())
    assert (first.spec.epoch, first.spec.pod_sets) == (2, [kept])
    assert first.status.started_at == format_time(world.now + 1)
    world.write(world.view(key), world.state.placements[key], first)
    world.members(key, 2, GPU8, node="node-{}", phase="Running")
    close = decisions.ClosePlacement(world.view(key), "Abandoned", reason_of("later"))
    again = closed(close, now=world.now + 60, avoided=())
    assert (again.spec.epoch, again.status.started_at) == (2, first.status.started_at)
    assert (again.status.bound, again.status.started) == (2, True)


def test_a_new_placement_names_its_victims_and_forgets_what_was_before() -> None:
    """Of another namespace with that; a gang that waits has no start, no spares and no loans any more."""
    world = Cluster(2)
    low = world.runs("low", 2)
    key = world.asks("high", 2)
    [place] = of(world.session(world.progress, Allocate(), *world.actions), decisions.Place)
    assert [victim.key for victim, _ in place.victims] == [low] * 2
    before = PlacementContent(
        PlacementSpec(spares=[NodeSpares("worker", "node-0", 1)], borrows=[BorrowedSpares("uid", "worker", "node-0")]),
        PlacementStatus(started_at="then", expected_at="then", reserved_at="then", attempts=2),
    )
    found = placed(place, before, deadline_s=world.now + 60, remembered=[AvoidedNode(node="n")])
    spec, status = found.spec, found.status
    assert (spec.pod_group_uid, spec.epoch, spec.deadline) == (world.view(key).uid, 1, format_time(world.now + 60))
    assert [(victim.name, victim.namespace, victim.gang) for victim in spec.victims] == [
        ("low-worker-0", "", "low"), ("low-worker-1", "", "low")
    ]  # fmt: skip
    assert (spec.spares, spec.borrows) == ([], [])
    assert (status.phase, status.bound, status.planned, status.started, status.attempts) == ("Planned", 0, 2, False, 2)
    assert (status.started_at, status.expected_at, status.reserved_at) == ("", "", "")
    assert status.message == "waits until 2 pods have left its nodes"
    assert [each.node for each in status.avoided] == ["n"]
    assert spec.victims_reason == "preempted by a gang of priority 10 in queue default"


def test_room_that_is_there_takes_the_victims_out() -> None:
    """It stays known whose they were, of so many gangs; the deadline begins again."""
    world = World().nodes(2)
    key = world.gang("a", {"worker": (2, GPU8)})
    world.plan()
    victims = [Victim(name=f"p{n}", namespace="other" if n % 2 else "", gang=f"g{n}") for n in range(MADE_ROOM + 1)]
    spec = {"victims": [*victims, victims[0]], "victims_reason": "r", "notices": [Notice()]}
    known = world.change(world.state.placements[key], spec=spec)
    there = decisions.RoomIsThere(world.view(key), known.spec.pod_sets, 2, remade_s=90.0)
    found = with_room(there, known, deadline_s=world.now + 5)
    assert (found.spec.deadline, found.spec.victims, found.spec.notices) == (format_time(world.now + 5), [], [])
    assert (found.spec.victims_reason, found.spec.victims_why) == ("", None)
    assert found.status.made_room == [f"{'other' if n % 2 else 'ns'}/g{n}" for n in range(MADE_ROOM)]
    assert found.status.message == str(remade(seconds=90.0))
    again = decisions.RoomIsThere(world.view(key), known.spec.pod_sets, 2)
    assert with_room(again, known, deadline_s=0.0).status.message == ""


def test_a_reservation_is_no_placement() -> None:
    """It names the gang's nodes and its expected start, rounded up, and is dropped without a trace of them."""
    world = World().nodes(2)
    gang = world.view(world.gang("a", {"worker": (3, GPU8)}))
    slots_ = [PodSetPlacement("worker", [NodeRun("node-0", 2), NodeRun("", 1)])]
    for expected_at, said in ((world.now + 0.5, format_time(world.now + 1)), (None, "")):
        reserve = decisions.Reserve(gang, slots_, expected_at, world.now, reason_of("it waits for long"))
        found = reserved(reserve, PlacementContent(status=PlacementStatus(attempts=2)))
        assert (found.spec.pod_group_uid, found.spec.epoch, found.spec.pod_sets) == (gang.uid, 1, slots_)
        status = found.status
        assert (status.phase, status.bound, status.planned, status.expected_at) == ("Reserved", 0, 2, said)
        assert (status.message, status.reserved_at) == ("it waits for long", format_time(world.now))
        assert status.attempts == 2
    known = world.write(gang, None, found)
    over = unreserved(decisions.Unreserve(world.view("ns/a"), reason_of("nobody waits")), known)
    assert (over.spec.pod_sets, over.status.planned, over.status.expected_at) == ([], 0, "")
    assert (over.status.phase, over.status.message) == ("Abandoned", "nobody waits")
    being = binding(known, 1)
    assert (being.status.phase, being.status.bound, being.spec) == ("Binding", 1, known.spec)
    assert of_gang(known, world.view("ns/a")) == found
    assert of_gang(world.change(known, spec={"pod_group_uid": "earlier"}), world.view("ns/a")) == PlacementContent()
