"""Placements are carried through or taken back, looked at when something changed; nothing stays half placed."""

import pytest
from extender_world import CPU, GPU8, World, of, only, slots
from msgspec import structs

from extender.planner.actions import progress
from extender.planner.actions.progress import BINDING_S, CHECK_INTERVAL_S, TrackPlacements, longest_partial_s
from extender.planner.framework import decisions
from extender.planner.framework.session import Session
from extender.planner.state.gangs import GangView
from extender.planner.state.state import PlannerState
from extender.planner.timing import CLOCKS_S, MOST_SLOTS, arrival_s
from muster.api.kubernetes.meta import format_time
from muster.api.limits import PODS
from muster.api.muster.gang import Slot
from muster.api.muster.placement import Placement


def planned(members: int = 2, *, nodes: int = 2, **more: object) -> tuple[World, str]:
    """A gang of whole-node members with a placement of epoch 1."""
    world = World().nodes(nodes)
    key = world.gang("a", {"worker": (members, GPU8)}, **more)  # type: ignore[arg-type]
    world.plan()
    return world, key


def bound(world: World, key: str) -> None:
    """The gang's placement is written as bound."""
    world.change(world.state.placements[key], status={"phase": "Bound"})


def test_gated_pods_are_released_to_the_nodes_of_their_slots() -> None:
    """Gate off and pin on, with the epoch."""
    world, key = planned()
    world.members(key, 2, GPU8, gated=True)
    released = [(release.pod.name, release.node, release.epoch) for release in of(world.plan(), decisions.Release)]
    assert released == [("a-worker-0", "node-0", 1), ("a-worker-1", "node-1", 1)]


def test_a_placement_whose_slots_are_all_taken_is_bound() -> None:
    """And its slots hold nothing any more."""
    world, key = planned()
    world.members(key, 2, GPU8, node="node-{}", pinned=True, epoch=1)
    assert only(world.plan(), decisions.ClosePlacement).phase == "Bound"


def test_a_member_that_kube_scheduler_refuses_ends_the_placement_and_its_node_is_avoided() -> None:
    """Pinned pods that never ran are deleted, since a pin cannot be changed."""
    world, key = planned(nodes=3)
    world.pod(key, "worker", 0, GPU8, pin="node-0", epoch=1, refused=True)
    world.pod(key, "worker", 1, GPU8, pin="node-1", epoch=1)
    session = world.plan()
    [close] = of(session, decisions.ClosePlacement)
    assert (close.phase, close.message) == ("Abandoned", "kube-scheduler refused a-worker-0 on node node-0")
    gone = of(session, decisions.Evict)
    assert {(evict.pod.name, evict.started) for evict in gone} == {("a-worker-0", False), ("a-worker-1", False)}
    assert {key: {"node-0"}} == session.avoided


def test_a_cordon_between_plan_and_binding_ends_the_placement() -> None:
    """So do a taint and a lost node."""
    world, _ = planned()
    world.node("node-1", unschedulable=True)
    assert only(world.plan(), decisions.ClosePlacement).message == "node node-1: cordoned"


def test_a_placement_not_filled_before_its_deadline_is_abandoned_and_planned_again_with_the_next_epoch() -> None:
    """Epochs only grow."""
    world, key = planned()
    world.now += 61
    assert only(world.plan(), decisions.ClosePlacement).message == "2 members did not arrive before the deadline"
    world.change(world.state.placements[key], status={"phase": "Abandoned"})
    assert only(world.plan(), decisions.Place).epoch == 2


@pytest.mark.parametrize(("slots", "passed_s", "late"), [
    pytest.param(5002, 20, False, id="slots of others that have arrived since"),
    pytest.param(5002, arrival_s(5002) + 1, True, id="their time is over"),
    pytest.param(MOST_SLOTS, -CLOCKS_S, False, id="the longest time"),
    pytest.param(MOST_SLOTS, -2 * CLOCKS_S, True, id="a time that only another clock can have written"),
])  # fmt: skip
def test_members_have_all_the_time_that_was_written(slots: int, passed_s: float, *, late: bool) -> None:
    """It grows with the slots that were placed in that cycle, up to a limit."""
    world, key = planned()
    world.change(world.state.placements[key], spec={"deadline": format_time(world.now + arrival_s(slots))})
    world.now += passed_s
    assert bool(of(world.plan(), decisions.ClosePlacement)) is late


def test_a_started_gang_keeps_its_members_when_extra_ones_do_not_come() -> None:
    """MinMember 1 of 2: the slot of the missing one is given back, the running one stays."""
    world, key = planned(min_member=1, min_task_member={"worker": 1})
    world.pod(key, "worker", 0, GPU8, node="node-0", pin="node-0", epoch=1, phase="Running")
    world.pod(key, "worker", 1, GPU8, pin="node-1", epoch=1)
    world.now += 61
    session = world.plan()
    [close] = of(session, decisions.ClosePlacement)
    assert close.phase == "Bound"
    assert slots(decisions.Place(close.gang, close.pod_sets, 2, 0)) == {"worker": ["node-0"]}
    assert [evict.pod.name for evict in of(session, decisions.Evict)] == ["a-worker-1"]


def test_a_gang_that_stays_under_its_minimum_goes_back_as_a_whole() -> None:
    """After the recovery time the started members are evicted."""
    world, key = planned()
    world.pod(key, "worker", 0, GPU8, node="node-0", pin="node-0", epoch=1, phase="Running")
    assert not of(world.plan(), decisions.Evict)
    world.now += 31
    session = world.plan()
    assert [(evict.pod.name, evict.started) for evict in of(session, decisions.Evict)] == [("a-worker-0", True)]
    assert [close.phase for close in of(session, decisions.ClosePlacement)] == ["Abandoned"]


@pytest.mark.parametrize(("down_s", "goes"), [(20, 0), (31, 1)])
def test_a_planner_that_has_just_begun_gives_a_half_placed_gang_no_more_time(down_s: float, goes: int) -> None:
    """However often it is killed: its time counts from when the first member was bound."""
    world, key = planned()
    world.pod(key, "worker", 0, GPU8, node="node-0", pin="node-0", epoch=1, phase="Running", bound=world.now)
    world.plan()
    world.now += down_s
    world.progress = TrackPlacements()
    assert [evict.pod.name for evict in of(world.plan(), decisions.Evict)] == ["a-worker-0"] * goes


def test_times_of_deleted_gangs_are_forgotten() -> None:
    """A tenant may delete gangs below their minimum for as long as they like."""
    world, key = planned()
    world.pod(key, "worker", 0, GPU8, node="node-0", pin="node-0", epoch=1, phase="Running")
    world.progress._half_since = {f"uid-{number}": world.now for number in range(200)}
    world.progress._refused_since = dict(world.progress._half_since)
    world.plan()
    assert list(world.progress._half_since) == [world.view(key).uid]
    assert not world.progress._refused_since


def test_pins_of_an_older_epoch_are_deleted_and_those_of_a_newer_one_are_left_alone() -> None:
    """A newer one means that our cache is behind."""
    world, key = planned()
    world.change(world.state.placements[key], spec={"epoch": 5})
    world.pod(key, "worker", 0, GPU8, pin="node-0", epoch=4)
    world.pod(key, "worker", 1, GPU8, pin="node-1", epoch=6)
    assert [(evict.pod.name, evict.started) for evict in of(world.plan(), decisions.Evict)] == [("a-worker-0", False)]


def test_a_restarted_member_of_a_running_gang_is_placed_alone() -> None:
    """The gang was bound once, so a single gated pod gets a node without its siblings."""
    world, key = planned(nodes=3)
    bound(world, key)
    world.pod(key, "worker", 0, GPU8, node="node-0", pin="node-0", epoch=1, phase="Running")
    world.pod(key, "worker", 1, GPU8, gated=True)
    place = only(world.plan(), decisions.Place)
    assert (slots(place), place.epoch) == ({"worker": ["node-0", "node-1"]}, 2)


def test_an_older_version_of_an_object_that_arrives_late_is_ignored() -> None:
    """The watch may tell less than our own write did."""
    world, key = planned()
    known = world.state.placements[key]
    meta = structs.replace(known.metadata, resource_version="1")
    world.state.on_placement(None, Placement(metadata=meta, status=known.status))
    assert world.state.placements[key].spec.epoch == 1
    assert isinstance(world.state, PlannerState)


def test_members_restarted_one_after_the_other_do_not_wait_for_each_other() -> None:
    """The second comes while the first is on its way: the gang was whole once, so the first need not wait."""
    world, key = planned(4, nodes=4)
    bound(world, key)
    world.members(key, (0, 1), GPU8, node="node-{}", pinned=True, epoch=1, phase="Running")
    world.pod(key, "worker", 2, GPU8, gated=True)
    world.place(only(world.plan(), decisions.Place))
    world.pod(key, "worker", 3, GPU8, gated=True)
    assert world.view(key).started


def test_pods_that_follow_others_are_released_when_those_have_arrived() -> None:
    """kube-scheduler knows the master's node once its bind call stands at the barrier."""
    world = World().nodes(2)
    key = world.gang("a", {"master": (1, GPU8), "worker": (1, GPU8)})
    world.plan()
    written = world.state.placements[key]
    for pod_set in written.spec.pod_sets:
        pod_set.held = pod_set.name == "worker"
    world.pod(key, "master", 0, GPU8, pin="node-0", epoch=1)
    world.pod(key, "worker", 0, GPU8, gated=True)
    assert not of(world.plan(), decisions.Release)
    world.arrived = {written.spec.pod_group_uid: frozenset({Slot("master", 0)})}
    assert [release.pod.name for release in of(world.plan(), decisions.Release)] == ["a-worker-0"]


def test_members_that_exist_add_to_it_and_a_number_that_somebody_wrote_does_not() -> None:
    """A gang of four has a little more than the recovery time, and no more with the largest minimum that is allowed."""
    world = World()
    for name, minimum in (("plain", 4), ("most", PODS.value)):
        world.members(world.gang(name, {"worker": (4, CPU)}, min_member=minimum), 4, CPU)
    gangs = world.session().snapshot.gangs
    assert len(gangs) == 2
    assert [longest_partial_s(gang, 30.0) for gang in gangs] == [30.0 + 4 * BINDING_S] * 2


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

    def count(session: Session, gang: GangView, *, retried: bool) -> None:
        looked.append(gang.key)
        follow(session, gang, retried=retried)

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
    world.now += CHECK_INTERVAL_S / 2
    assert looks(world) == []
    world.now += CHECK_INTERVAL_S / 2
    assert looks(world) == ["ns/a", "ns/b"]
    world.now += 600
    assert {close.phase for close in of(world.plan(), decisions.ClosePlacement)} == {"Abandoned"}


def test_what_was_decided_is_decided_until_it_is_done(world: World) -> None:
    """A write may fail: the next cycle decides it again."""
    world.node("node-0", unschedulable=True)
    for _ in range(2):
        assert {close.gang.key for close in of(world.plan(), decisions.ClosePlacement)} == {"ns/a", "ns/b"}
