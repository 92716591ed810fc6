"""A gang whose pods cannot be created holds nothing for long, and nobody else waits for it."""

from types import SimpleNamespace
from typing import Any

import pytest
from extender_world import CPU, GPU8, NOW, World, of, only
from victims_world import Cluster

from extender.placementcontent import back_off_s
from extender.planner.actions.allocate import HELD_BACK_S, LIMIT_REPORTED_AFTER_S, Allocate
from extender.planner.actions.displace import Preempt
from extender.planner.actions.enqueue import Enqueue
from extender.planner.actions.obstacles import LATE_S, LIMIT, MAX_SLOTS, RESERVE, SlotLimit
from extender.planner.framework import decisions
from extender.planner.framework.session import Session
from extender.planner.timing import is_over
from muster.api.kubernetes.meta import ReportedCondition

DEADLINE_S = 61


def in_vain(world: World) -> Session:
    """The deadline of what was placed passes, and nothing came."""
    world.now += DEADLINE_S
    session = world.plan()
    world.close(session)
    return session


def many_on_their_way(world: World) -> None:
    """Two gangs of 300, whose placements have all slots there may be."""
    for name in ("a", "b"):
        world.members(world.gang(name, {"worker": (300, CPU)}), 300, CPU, gated=True)
    world.plan()


def test_a_gang_whose_pods_are_not_created_waits_twice_as_long_after_each_placement() -> None:
    """And its status says until when."""
    world = World().nodes(2)
    key = world.gang("a", {"worker": (2, GPU8)})
    waits = []
    for attempt in range(1, 5):
        assert of(world.plan(), decisions.Place), f"attempt {attempt}"
        in_vain(world)
        status = world.state.placements[key].status
        assert (status.phase, status.attempts) == ("Abandoned", attempt)
        began = world.now
        [why] = of(world.plan(), decisions.Unschedulable)
        assert why.reason == "PodsNotCreated"
        assert status.not_before in why.message
        assert not world.session().snapshot.placed
        while not of(world.session(Allocate()), decisions.Place):
            world.now += 1
        waits.append(world.now - began)
    assert waits == [10, 20, 40, 80]


def test_no_gang_waits_for_a_clock_that_was_set_back() -> None:
    """Neither for the deadline of its placement nor for the end of its back-off, which are an hour away by then."""
    world = World().nodes(2)
    world.gang("a", {"worker": (2, GPU8)})
    assert of(world.plan(), decisions.Place)
    world.now -= 3600
    session = world.plan()
    world.close(session)
    assert [each.phase for each in of(session, decisions.ClosePlacement)] == ["Abandoned"]
    assert of(world.plan(), decisions.Unschedulable)
    world.now -= 3600
    assert of(world.plan(), decisions.Place)


@pytest.mark.parametrize(("until_s", "over"), [(99, True), (100, True), (101, False), (170, False), (171, True)])
def test_a_time_beyond_the_longest_backoff_is_ignored(until_s: float, *, over: bool) -> None:
    """By more than clocks differ: a minute."""
    assert is_over(until_s, 100, 10) is over


def test_the_wait_has_an_end_whatever_the_status_says() -> None:
    """Ten minutes at most."""
    assert [back_off_s(attempts) for attempts in (1, 2, 6, 7, 10**9)] == [10, 20, 320, 600, 600]


def test_the_wait_is_over_when_the_pods_exist_and_forgotten_when_the_gang_was_whole() -> None:
    """Pods that were created in the meantime, gated, can run at once."""
    world = World().nodes(2)
    key = world.gang("a", {"worker": (2, GPU8)})
    world.plan()
    in_vain(world)
    world.pod(key, "worker", 0, GPU8, gated=True)
    assert not of(world.plan(), decisions.Place)
    world.pod(key, "worker", 1, GPU8, gated=True)
    assert of(world.plan(), decisions.Place)
    world.members(key, 2, GPU8, node="node-{}", pinned=True, epoch=2)
    world.close(world.plan())
    status = world.state.placements[key].status
    assert (status.phase, status.attempts, status.not_before) == ("Bound", 0, "")


def test_a_placement_whose_pods_all_came_is_followed_by_the_next_at_once() -> None:
    """That they were late at the barrier says nothing about the next time."""
    world = World().nodes(2)
    key = world.gang("a", {"worker": (2, GPU8)})
    world.plan()
    world.members(key, 2, GPU8, gated=True)
    in_vain(world)
    assert world.state.placements[key].status.attempts == 1
    assert of(world.plan(), decisions.Place)


@pytest.mark.parametrize("message", ["bindings is forbidden by policy no-gpus", ""])
def test_pods_that_are_never_bound_are_placed_less_and_less_often(message: str) -> None:
    """Others have the nodes meanwhile, nobody is evicted for the gang, and it says why."""
    world = Cluster(2)
    key = world.gang("a", {"worker": (2, GPU8)}, priority_class="high")
    waits = []
    for _ in range(4):
        [place] = of(world.plan(), decisions.Place)
        for rank in range(2):
            pod = world.pod(key, "worker", rank, GPU8, pin=f"node-{rank}", epoch=place.epoch)
            failed = ReportedCondition(type="PodScheduled", status="False", reason="SchedulerError", message=message)
            world.change(pod, status={"conditions": [failed]})
        in_vain(world)
        began = world.now
        world.members(key, 2, GPU8, gated=True)
        other = world.runs(f"low{len(waits)}", 2)
        while world.view(key).waits_until(world.now):
            session = world.session(world.progress, Allocate(), Preempt())
            [why] = of(session, decisions.Unschedulable)
            assert (why.reason, of(session, decisions.Place)) == ("PodsNotBound", [])
            assert message in why.message
            assert "a-worker-0 among them" in why.message
            world.now += 1
        waits.append(world.now - began)
        world.state.on_pod_group(world.state.groups[other], None)
        for pod in [*world.state.pod_objects.values()]:
            if pod.metadata.name.startswith("low"):
                world.state.on_pod(pod, None)
    assert waits == [0, 10, 20, 40]


def test_a_small_gang_is_placed_beside_large_ones_whose_pods_do_not_come() -> None:
    """Their 600 slots are more than may be placed at once."""
    world = World().nodes(200, cpu=64)
    for name in ("a", "b"):
        world.gang(name, {"worker": (300, CPU)})
    assert len(of(world.plan(), decisions.Place)) == 2
    world.gang("small", {"worker": (1, CPU)})
    assert [place.gang.key for place in of(world.plan(), decisions.Place)] == ["ns/small"]


def test_a_queue_whose_gangs_are_on_their_way_leaves_slots_to_other_queues() -> None:
    """Of its own gangs the next one waits, and says so after a while."""
    world = World().queue("other").nodes(200, cpu=64)
    many_on_their_way(world)
    world.gang("c", {"worker": (20, CPU)})
    world.gang("d", {"worker": (20, CPU)}, queue="other")
    actions = Enqueue(), Allocate()
    session = world.session(*actions)
    assert [place.gang.key for place in of(session, decisions.Place)] == ["ns/d"]
    assert not of(session, decisions.Unschedulable)
    world.now += LIMIT_REPORTED_AFTER_S
    why = only(world.session(*actions), decisions.Unschedulable)
    assert (why.gang.key, why.reason) == ("ns/c", "InFlightLimit")


def test_a_gang_is_not_let_in_while_others_are_on_their_way() -> None:
    """Its pods would be born gated, and each would need a write more; but it does not stay out for long."""
    world = World().nodes(200, cpu=64)
    many_on_their_way(world)
    world.gang("c", {"worker": (20, CPU)}, phase="Pending")
    actions = Enqueue(), Allocate()
    assert "ns/c" not in world.session(*actions).enqueued
    world.now += HELD_BACK_S - 1
    assert "ns/c" not in world.session(*actions).enqueued
    world.now += 1
    assert "ns/c" in world.session(*actions).enqueued


def test_pods_that_do_not_come_keep_others_waiting_for_moments_only() -> None:
    """Three gangs of 400 whose pods a quota refuses: a later gang is placed soon."""
    world, actions = World(), (Enqueue(), Allocate())
    world.nodes(200, cpu=64)

    def placed() -> list[str]:
        places = of(world.session(*actions), decisions.Place)
        for place in places:
            world.place(place)
        return [place.gang.key for place in places]

    for name in ("a", "b", "c"):
        world.gang(name, {"worker": (400, CPU)})
    assert placed() == ["ns/a", "ns/b"]
    world.gang("d", {"worker": (20, CPU)})
    assert placed() == []
    world.now += LATE_S
    assert placed() == ["ns/c", "ns/d"]


def test_a_later_gang_is_placed_soon_although_an_older_one_is_placed_in_vain_again_and_again() -> None:
    """Both want the whole cluster; the quota of the older one stays used up."""
    world = World().nodes(4)
    world.gang("stuck", {"worker": (4, GPU8)})
    world.plan()
    world.now += 5
    world.gang("later", {"worker": (4, GPU8)})
    while world.now < NOW + 120:
        session = world.plan()
        world.close(session)
        if any(place.gang.key == "ns/later" for place in of(session, decisions.Place)):
            break
        world.now += 1
    assert world.now < NOW + DEADLINE_S + 2


def on_their_way(name: str, slots: int, place: str = "q/n", *, waiting: int = 0, victims: int = 0, **more: int) -> Any:
    """A gang with so many placed slots, of a queue and a namespace."""
    queue, namespace = place.split("/")
    group = SimpleNamespace(metadata=SimpleNamespace(namespace=namespace))
    return SimpleNamespace(
        key=name, uid=name, queue=queue, slots=slots, group=group,
        placement=SimpleNamespace(spec=SimpleNamespace(victims=[None] * victims)),
        pod_sets=[SimpleNamespace(waiting=dict.fromkeys(range(waiting)))], **{"min_member": 9, "taken": 0, **more},
    )  # fmt: skip


def admitted(asker: Any, *gangs: Any, age_s: float = 0.0) -> bool:
    """Whether slots of a gang may be placed, while those of others have been for so long."""
    snapshot: Any = SimpleNamespace(gangs=gangs, placed={gang.key: gang.slots for gang in gangs})
    return SlotLimit(snapshot, {gang.uid: NOW - age_s for gang in gangs}, NOW).admit(asker)


SMALL_ONE = {"min_member": 8}


@pytest.mark.parametrize(("placed", "at", "more", "reserve"), [
    pytest.param([("q/n", 128)], "q/n", 128, True, id="its namespace"),
    pytest.param([("q/a", 96), ("q/b", 96)], "q/n", 64, True, id="its queue"),
    pytest.param([("a/n", 96), ("a/m", 97)], "q/n", 64, True, id="all, with at most 192 of a queue"),
    pytest.param([("q/a", 300), ("q/b", 96)], "q/n", 64, True, id="at most 96 of a namespace of its queue"),
    pytest.param([("q/n", 300)], "q/n", 128, True, id="at most 128 of a gang"),
])  # fmt: skip
def test_shares_of_the_limit(placed: list[tuple[str, int]], at: str, more: int, *, reserve: bool) -> None:
    """Up to the limit, and for small gangs up to the reserve above it, counted by the largest of the shares."""
    others = [on_their_way(f"g{number}", slots, place) for number, (place, slots) in enumerate(placed)]
    asker, small = on_their_way("asker", 0, at), on_their_way("small", 0, at, **SMALL_ONE)
    grown = on_their_way("grown", 0, at, min_member=10, taken=2)
    last = [on_their_way("last", more - 1, at)]
    assert admitted(asker, *others, *last)
    last = [on_their_way("last", more, at)]
    assert not admitted(asker, *others, *last)
    assert admitted(small, *others, *last) is admitted(grown, *others, *last) is reserve


def test_the_reserve_has_an_end_and_so_have_slots_beyond_all_shares() -> None:
    """Small gangs of one namespace; and one gang of more slots than shares count."""
    asker, small = on_their_way("asker", 0), on_their_way("small", 0, **SMALL_ONE)
    for more, fits in ((RESERVE - 1, True), (RESERVE, False)):
        assert admitted(small, *[on_their_way("a", 128), on_their_way("b", 128), on_their_way("c", more)]) is fits
    for slots, large_fits, small_fits in (
        (MAX_SLOTS - 1, True, True), (MAX_SLOTS, False, True), (MAX_SLOTS + RESERVE - 1, False, True),
        (MAX_SLOTS + RESERVE, False, False),
    ):  # fmt: skip
        gang = on_their_way("a", slots, "other/other")
        assert (admitted(asker, gang), admitted(small, gang)) == (large_fits, small_fits)


@pytest.mark.parametrize(("gang", "age_s", "counts"), [
    pytest.param(on_their_way("a", MAX_SLOTS), LATE_S - 0.1, True, id="may come"),
    pytest.param(on_their_way("a", MAX_SLOTS), LATE_S, False, id="late"),
    pytest.param(on_their_way("a", MAX_SLOTS, waiting=MAX_SLOTS), LATE_S, True, id="its pods exist"),
    pytest.param(on_their_way("a", LIMIT, waiting=MAX_SLOTS + 1), LATE_S, False, id="not more than are placed"),
    pytest.param(on_their_way("a", MAX_SLOTS, victims=1), 0.0, False, id="waits for victims"),
])  # fmt: skip
def test_slots_count_while_their_pods_may_come(gang: Any, age_s: float, *, counts: bool) -> None:
    """For a while all of them, then those whose pods exist; none while others have to go first."""
    assert admitted(on_their_way("asker", 0, "other/other"), gang, age_s=age_s) is not counts
