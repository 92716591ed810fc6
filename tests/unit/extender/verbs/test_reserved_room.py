"""Pods without a gang leave free what is reserved for gangs, and what is assumed of others."""

from dataclasses import replace

import numpy as np
import pytest
from queue_world import QueueWorld
from verbs_world import Extender

from extender.planner.framework.decisions import Unreserve
from extender.planner.reasons.verbs import VerbReason
from extender.verbs import bind
from muster.api import names
from muster.api.kubernetes.extender import ExtenderArgs

ALL = ["node-0", "node-1", "node-2", "node-3"]
GPU = {"nvidia.com/gpu": 1}
"""All that a node has."""


@pytest.fixture
def extender(monkeypatch: pytest.MonkeyPatch) -> Extender:
    """Four nodes; two are taken for 100 s, and all four are reserved for a gang that waits."""
    monkeypatch.setattr(bind, "LAG_S", 0.0)
    world = QueueWorld(nodes=4)
    world.submit("old", 2, lasts_s=100, declared_s=100)
    world.step()
    world.submit("big", 4, lasts_s=50, declared_s=50)
    session = world.step()
    assert world.state.placements["ns/big"].status.phase == "Reserved"
    world.state.ledger.reserved.replace(session.reserved_rooms, session.reservations.start_s)
    return Extender(world)


def refused(extender: Extender, **pod: object) -> str:
    """What filter says of the nodes; empty if any passes."""
    found = extender.filter(ExtenderArgs(pod=extender.pod("p", **pod), node_names=ALL))  # type: ignore[arg-type]
    return next(iter(found.failed_and_unresolvable_nodes.values()), "")


@pytest.mark.parametrize("answered", [False, True])
def test_a_short_pod_that_is_just_being_bound_ends_no_reservation(extender: Extender, *, answered: bool) -> None:
    """A cycle may begin before the API server has answered: the pod's end is known by then."""
    state = extender.world.state
    pod = extender.pod("p", limits=GPU, notes={"muster.dev/expected-runtime": "2s"})
    [node, *_] = extender.passed(pod, *ALL)
    record = state.pods[pod.metadata.uid]
    state.ledger.assume(record.uid, "default", record.cls, node=node)
    if answered:
        state.assume(record.uid, node)
        state.ledger.answered(record.uid)
    session = extender.world.plan()
    assert session.decided(Unreserve) == []
    assert [np.count_nonzero(room.gained.any(axis=0)) for room in session.reserved_rooms] == [3]


@pytest.mark.parametrize(("runtime", "passes"), [("", 0), ("80s", 1), ("200s", 0)])
def test_only_who_has_ended_by_then_may_use_what_is_reserved(extender: Extender, runtime: str, passes: int) -> None:
    """As gangs do; the reason is the reservation and not a gang that starts."""
    notes = {"muster.dev/expected-runtime": runtime} if runtime else {}
    assert refused(extender, limits=GPU, notes=notes) == ("" if passes else VerbReason.KEPT_FOR_GANG)


def test_other_queues_may_use_what_is_reserved_for_one_that_waits_for_itself(extender: Extender) -> None:
    """The pod's queue says whether it leaves the room free, as that of a gang does."""
    extender.world.queue("other")
    assert refused(extender, limits=GPU, notes={names.VOLCANO_QUEUE: "default"}) == VerbReason.KEPT_FOR_GANG
    assert refused(extender, limits=GPU, notes={names.VOLCANO_QUEUE: "other"}) == ""


def test_all_queues_leave_free_what_is_reserved_for_one_that_waits_for_others(extender: Extender) -> None:
    """As far as it is entitled to it."""
    rooms = [replace(room, only="") for room in extender.world.plan().reserved_rooms]
    extender.world.state.ledger.reserved.replace(rooms, 10.0)
    for queue in ("default", "other"):
        assert refused(extender, limits=GPU, notes={names.VOLCANO_QUEUE: queue}) == VerbReason.KEPT_FOR_GANG


def test_room_that_is_given_back_before_its_time_is_kept_as_well(extender: Extender) -> None:
    """Before the next cycle reckons anew: the head waited for just this room."""
    state = extender.world.state
    for pod in extender.world.runs["ns/old"].pods:
        state.on_pod(pod, None)
    assert refused(extender, limits=GPU) == VerbReason.KEPT_FOR_GANG
    assert refused(extender, limits=GPU, notes={"muster.dev/expected-runtime": "80s"}) == ""


def test_room_that_is_given_back_while_a_cycle_plans_is_kept_as_well(extender: Extender) -> None:
    """The cycle still counts on getting it."""
    world = extender.world
    world.state.ledger.reserved.snapshot_taken()
    session = world.plan()
    for pod in world.runs["ns/old"].pods:
        world.state.on_pod(pod, None)
    world.state.ledger.reserved.replace(session.reserved_rooms, session.reservations.start_s)
    assert refused(extender, limits=GPU) == VerbReason.KEPT_FOR_GANG


def test_who_does_not_plan_remembers_nothing(extender: Extender) -> None:
    """A replica may stand by for weeks, and see millions of pods end."""
    reserved, row = extender.world.state.ledger.reserved, np.ones(1, dtype=np.int64)
    reserved.changed(0, row)
    assert reserved._since is None
    reserved.snapshot_taken()
    reserved.changed(0, row)
    reserved.replace([], 0.0)
    reserved.changed(0, row)
    assert reserved._since is None


def test_what_the_head_does_not_need_is_not_kept(extender: Extender) -> None:
    """Its pods take the GPU of each node, and none of the CPUs."""
    assert refused(extender, cpu=8) == ""


def test_nothing_is_kept_on_a_node_that_takes_the_place_of_one_that_is_gone(extender: Extender) -> None:
    """Its column may be the same."""
    [free] = [name for name in ALL if extender.world.state.nodes.index[name] == 3]
    extender.world.state.on_node(extender.world.state.nodes.nodes[3], None)
    extender.world.node("new")
    assert (extender.world.state.nodes.index["new"], free in extender.world.state.nodes.index) == (3, False)
    assert extender.passed(extender.pod("p", limits=GPU), "new") == ["new"]


def test_a_reservation_that_is_over_keeps_nothing(extender: Extender) -> None:
    """The next cycle says so."""
    extender.world.state.ledger.reserved.replace([], 0.0)
    assert refused(extender, limits=GPU) == ""


def test_room_that_was_given_away_since_filter_was_asked_is_not_used(extender: Extender) -> None:
    """A gang holds it by now: bind asks once more, and kube-scheduler tries again."""
    extender.world.state.ledger.reserved.replace([], 0.0)
    pod = extender.pod("p", limits=GPU)
    [node, *_] = extender.passed(pod, *ALL)
    extender.world.pod("ns/other", "worker", 0, GPU, node=node, phase="Running")
    assert (extender.error(pod, node), extender.bound) == (VerbReason.ROOM_TAKEN, {})


def test_room_that_another_pod_is_just_being_bound_to_counts(extender: Extender) -> None:
    """Its binding is on its way to the API server."""
    state = extender.world.state
    state.ledger.reserved.replace([], 0.0)
    pod = extender.pod("p", cpu=20)
    [node, *_] = extender.passed(pod, *ALL)
    state.ledger.assume("uid-q", "default", state.classes.of_amounts({"cpu": 16_000}), node=node)
    assert extender.error(pod, node) == VerbReason.ROOM_TAKEN
    assert state.ledger.answered("uid-q")
    assert (extender.error(pod, node), extender.bound) == ("", {"p": node})
