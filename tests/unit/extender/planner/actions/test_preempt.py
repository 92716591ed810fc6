"""Preemption within a queue: whom, whom not, and that the room is the asker's until it starts."""

from collections.abc import Callable, Collection
from itertools import chain, combinations
from typing import Any

import pytest
from extender_world import of
from victims_world import Cluster, victims

from extender.planner.actions.asker import Asker
from extender.planner.actions.attempts import MOST_REMEMBERED, VictimSearches
from extender.planner.actions.displace import Preempt
from extender.planner.framework.decisions import (
    ClosePlacement,
    Evict,
    MakeRoom,
    Place,
    Release,
    RoomIsThere,
    Unschedulable,
)
from extender.planner.framework.session import Session
from extender.planner.plugins.proportion import Proportion
from extender.planner.plugins.protection import MinRuntime
from extender.planner.timing import MAX_PLACEMENT_DELAY_S
from extender.planner.victims.units import EvictableUnit
from muster.api.kubernetes.meta import OwnerReference, format_time
from muster.api.muster.placement import Placement, PlacementSpec, PlacementStatus


def test_a_gang_of_higher_priority_takes_the_place_of_a_lower_one_as_a_whole() -> None:
    """All of the victim goes, the asker has a placement, and its pods wait until the victim is gone."""
    world = Cluster()
    victim, asker = world.runs("low", 2), world.asks("high", 2)
    session = world.cycle()
    assert victims(session) == {"low-worker-0", "low-worker-1"}
    assert [place.gang.key for place in of(session, Place)] == [asker]
    assert asker not in {each.gang.key for each in of(session, Unschedulable)}
    assert {each.gang.key: each.reason for each in of(session, Unschedulable)} == {victim: "Evicted"}

    again = world.cycle()
    assert of(again, Release) == []
    assert victims(again) == {"low-worker-0", "low-worker-1"}, "nobody has told them yet"
    for rank in range(2):
        world.change(world.state.pod_objects[f"uid-low-worker-{rank}"], deletion_timestamp="2027-01-15T08:00:10Z")
    assert not of(world.cycle(), (MakeRoom, Release, RoomIsThere))
    for pod in [pod for pod in world.state.pod_objects.values() if pod.metadata.name.startswith("low")]:
        world.state.on_pod(pod, None)
    there = world.cycle()
    assert [each.gang.key for each in of(there, RoomIsThere)] == [asker]
    world.room_is_there(there)
    assert world.state.placements[asker].status.made_room == [victim], "who evicted it stays known"
    assert len(of(world.cycle(), Release)) == 2


@pytest.mark.parametrize(("ahead_s", "goes"), [(MAX_PLACEMENT_DELAY_S, False), (-1, True), (86_400, True)])
def test_no_pod_is_evicted_for_a_while_after_a_failed_eviction(ahead_s: float, *, goes: bool) -> None:
    """Until that time, unless only a clock that was set back since can have written it."""
    world = Cluster()
    world.runs("low", 2)
    asker = world.asks("high", 2)
    status = PlacementStatus(phase="Abandoned", no_evictions_before=format_time(world.now + ahead_s))
    placement = Placement(metadata=world.meta("high"), spec=PlacementSpec(pod_group_uid=world.view(asker).uid))
    placement.status = status
    world.state.on_placement(None, placement)
    assert bool(victims(world.cycle())) is goes


@pytest.mark.parametrize(("kind", "failed", "ends"), [
    ("batch/v1", True, ", by 2027-01-15T08:10:00Z at the latest (the usual back-off)"),
    ("batch/v1", False, ""),
    ("x/v1", True, ""),
])  # fmt: skip
def test_the_longest_delay_of_new_pods_is_named(kind: str, ends: str, *, failed: bool) -> None:
    """The controller of batch Jobs has a back-off after failed pods, for which evicted ones do not count."""
    world = Cluster()
    victim = world.runs("low", 2)
    world.asks("high", 2)
    owner = OwnerReference(api_version=kind, kind="Job", name="low", uid="uid-low", controller=True)
    world.change(world.state.groups[victim], owner_references=[owner])
    if failed:
        world.pod(victim, "worker", 2, {"nvidia.com/gpu": 8}, node="node-0", phase="Failed")
    [why] = [each.message for each in of(world.cycle(), Unschedulable) if each.gang.key == victim]
    assert why.endswith(f"; the gang waits until the Job creates new pods{ends}")


@pytest.mark.parametrize("asker", [
    pytest.param({"priority_class": "low"}, id="not lower"),
    pytest.param({"priority_class": "meek"}, id="preemptionPolicy Never"),
    pytest.param({"queue": "other"}, id="another queue"),
])  # fmt: skip
def test_nobody_goes(asker: dict[str, Any]) -> None:
    """Where the rules forbid it."""
    world = Cluster().queue("other")
    world.runs("low", 2)
    world.asks("high", 2, **asker)
    assert not of(world.cycle(), (MakeRoom, Evict, Place))


def test_nobody_goes_for_a_gang_that_then_does_not_fit() -> None:
    """Three nodes cannot be had from two."""
    world = Cluster(3)
    world.runs("low", 2)
    world.runs("top", 1, first=2, priority_class="high")
    world.asks("high", 3)
    session = world.cycle()
    assert not of(session, MakeRoom)
    assert [each.reason for each in of(session, Unschedulable)] == ["NotEnoughResources"]


def test_what_is_going_already_is_waited_for() -> None:
    """A pod that is being deleted makes the room: nobody else goes."""
    world = Cluster(2)
    world.runs("low", 1)
    world.runs("ending", 1, first=1)
    world.change(world.state.pod_objects["uid-ending-worker-0"], deletion_timestamp="2027-01-15T08:00:10Z")
    world.asks("high", 1)
    assert not victims(world.cycle())


def test_a_budget_is_never_broken() -> None:
    """Of two gangs the one goes that no budget protects, though the other would be cheaper."""
    world = Cluster(2)
    world.runs("protected", 1, first=0)
    world.now += 60
    world.runs("free", 1, first=1, priority_class="")
    world.label_pods("protected", app="db")
    world.budget("db", allowed=0, app="db")
    world.asks("high", 1)
    assert victims(world.cycle()) == {"free-worker-0"}
    world.budget("all", allowed=5)
    assert victims(world.cycle()) == {"free-worker-0"}


def test_a_placement_whose_victims_may_not_go_is_given_up_and_not_tried_at_once() -> None:
    """A budget was made after the decision; nobody is evicted, and the gang asks nobody for a while."""
    world = Cluster(1)
    world.runs("low", 1)
    asker = world.asks("high", 1)
    assert victims(world.cycle())
    world.label_pods("low", app="db")
    world.budget("db", allowed=0, app="db")
    session = world.cycle()
    assert not of(session, MakeRoom)
    assert [close.phase for close in of(session, ClosePlacement)] == ["Abandoned"]
    world.close(session)
    world.budget("db", allowed=1, app="db")
    assert not of(world.cycle(), MakeRoom)
    world.now += 11
    assert of(world.cycle(), MakeRoom)
    assert world.view(asker).placement


def test_a_later_pod_of_a_victim_s_name_stays() -> None:
    """Its owner made it again, and it was bound there: the placement names the UID of the one that had to go."""
    world = Cluster(1)
    key = world.runs("low", 2, gpus=4)
    world.asks("high", 1)
    assert victims(world.cycle()) == {"low-worker-0", "low-worker-1"}
    world.state.on_pod(world.state.pod_objects["uid-low-worker-0"], None)
    world.pod(key, "worker", 0, {"nvidia.com/gpu": 4}, node="node-0", phase="Running", uid="again")
    assert {pod.uid for room in of(world.cycle(), MakeRoom) for _, pod in room.victims} <= {"uid-low-worker-1"}


def test_room_that_comes_by_itself_spares_the_victims() -> None:
    """The victims are still there, and another gang has ended meanwhile on the same node: nobody has to go."""
    world = Cluster(1)
    world.runs("low", 1, gpus=4)
    ending = world.runs("other", 1, gpus=4, priority_class="high")
    world.asks("high", 1, gpus=4)
    assert victims(world.cycle()) == {"low-worker-0"}
    world.state.on_pod_group(world.state.groups[ending], None)
    world.state.on_pod(world.state.pod_objects["uid-other-worker-0"], None)
    session = world.cycle()
    assert not of(session, MakeRoom)
    assert of(session, RoomIsThere)


@pytest.mark.parametrize(("age_s", "go"), [(188_000, 0), (190_000, 1)])
@pytest.mark.parametrize("arguments", [{}, {"defaultPreemptMinRuntime": "2d4h30m"}])
def test_the_time_may_be_told_in_days(age_s: float, go: int, arguments: dict[str, str]) -> None:
    """By the plugin's argument, and by the annotation of the queue."""
    world = Cluster(1)
    world.plugins.append(MinRuntime(arguments))
    if not arguments:
        world.queue("default", **{"preempt-min-runtime": "2d4h30m"})
    world.started(world.runs("low", 1), age_s)
    world.asks("high", 1)
    assert len(victims(world.cycle())) == go


@pytest.mark.parametrize("phase", ["Pending", "Inqueue"])
def test_a_full_queue_makes_room_within_itself(phase: str) -> None:
    """A node is idle, but the queue may use only 8 GPUs: the gang of lower priority goes, also before admission."""
    world = Cluster(2)
    world.plugins = [Proportion({}), *world.plugins]
    world.queue("tight", capability={"nvidia.com/gpu": 8})
    world.runs("low", 1, queue="tight")
    asker = world.asks("high", 1, queue="tight", phase=phase)
    session = world.cycle()
    assert victims(session) == {"low-worker-0"}
    assert [place.gang.key for place in of(session, Place)] == [asker]
    assert asker not in {each.gang.key for each in of(session, Unschedulable)}
    if phase == "Pending":
        assert asker in session.enqueued


@pytest.mark.parametrize("change", [
    pytest.param(lambda world: world.node("node-9"), id="node"),
    pytest.param(lambda world: world.budget("db", allowed=1, app="db"), id="budget"),
    pytest.param(lambda world: world.queue("other"), id="queue"),
    pytest.param(lambda world: setattr(world, "now", world.now + 10 - world.now % 10), id="time"),
])  # fmt: skip
def test_a_search_that_failed_is_not_made_again_before_something_changes(change: Callable[[Cluster], object]) -> None:
    """Neither for the gang nor for its like."""
    world = Cluster(2)
    world.runs("low", 1)
    world.runs("top", 1, first=1, priority_class="high")
    for number in range(3):
        world.asks(f"high{number}", 2)
    preempt = Searches()
    world.actions = [preempt]
    assert not victims(world.cycle())
    assert preempt.searches == 1
    world.cycle()
    assert preempt.searches == 1
    change(world)
    session = world.cycle()
    assert preempt.searches > 1
    assert bool(victims(session)) is ("node-9" in world.state.nodes.index)


@pytest.mark.parametrize(("queues", "users", "each", "soon"), [
    pytest.param(1, 1, 12, 12, id="its own"),
    pytest.param(1, 4, 12, 5, id="its own, of other users"),
    pytest.param(6, 1, 2, 4, id="of other queues"),
])  # fmt: skip
def test_hopeless_gangs_do_not_delay_other_searches(queues: int, users: int, each: int, soon: int) -> None:
    """They are first in line, each of another shape, and something changes in each cycle."""
    world = Cluster(1)
    for number in range(queues):
        world.queue(f"q{number}")
        for user in range(users):
            for size in range(each):
                more = {"queue": f"q{number}", "user": f"user{user}", "priority_class": "high"}
                world.asks(f"many-{number}-{user}-{size}", 2 + size, **more)
        world.runs(f"low-{number}", 1, gpus=1, queue=f"q{number}")
    world.asks("last", 1, gpus=8 - queues, queue=f"q{queues - 1}", user="user0" if users == 1 else "somebody")
    world.runs("last-low", 1, gpus=8 - queues, queue=f"q{queues - 1}")
    cycles = 0
    while "ns/last" not in world.state.placements and cycles < 50:
        world.node("node-0", labels={"changed": str(cycles)})
        world.cycle()
        cycles += 1
    assert cycles == soon


@pytest.mark.parametrize(("spec", "searches"), [
    pytest.param({"nodeSelector": {"disk": "fast"}}, 1, id="on a node that it cannot use"),
    pytest.param({}, 2, id="on a node that it can use"),
])  # fmt: skip
def test_a_failed_search_is_repeated_after_a_relevant_change(spec: dict[str, Any], searches: int) -> None:
    """Another gang ends, on a node without the label."""
    world = Cluster(3)
    world.node("node-0", labels={"disk": "fast"})
    world.runs("low", 1)
    for number in (1, 2):
        world.runs(f"top{number}", 1, first=number, priority_class="high")
    world.gang("high", {"worker": (3, {"nvidia.com/gpu": 8})}, priority_class="high", spec=spec)
    preempt = Searches()
    world.actions = [preempt]
    world.cycle()
    world.ends("top1", 0)
    world.cycle()
    assert preempt.searches == searches


def test_the_memory_of_failed_searches_is_bounded() -> None:
    """Tenants choose the shapes of their gangs; the newest are remembered."""
    world, attempts = Cluster(1), VictimSearches()
    session, gang = world.session(), world.view(world.asks("high", 2))
    attempts.begin(session, [])
    for number in range(MOST_REMEMBERED + 100):
        attempts.failed(session, [], (f"q{number}", "user", number))
    assert {len(each) for each in (attempts._queues, attempts._users, attempts._searches)} == {MOST_REMEMBERED}
    last = MOST_REMEMBERED + 99
    assert attempts.hopeless(session, gang, (f"q{last}", "user", last), anywhere=True)
    assert not attempts.hopeless(session, gang, ("q0", "user", 0), anywhere=True)


class Searches(Preempt):
    """Counts its searches."""

    searches = 0

    def units(self, session: Session, asker: Asker) -> list[EvictableUnit]:
        """As the action."""
        self.searches += 1
        return super().units(session, asker)


def check_cycle(world: Cluster, gang: str, gone: set[str]) -> None:
    """In one cycle this gang alone gets the capacity of these pods."""
    session = world.cycle()
    assert ([place.gang.key for place in of(session, Place)], victims(session)) == ([gang], gone)


@pytest.mark.parametrize("together", [True, False])
@pytest.mark.parametrize("users", [("alice", "bob"), ("alice", ""), ("", "alice")])
def test_a_search_in_vain_for_one_user_leaves_that_of_another(users: tuple[str, str], *, together: bool) -> None:
    """The first has a gang that stays, and with three GPUs more would exceed what the queue allows each user."""
    world = Cluster(1)
    world.plugins = [Proportion({}), *world.plugins]
    world.queue("team", **{"capability": {"nvidia.com/gpu": 4}, "max-per-user": "nvidia.com/gpu=3"})
    full, other = users
    world.runs("stays", 1, gpus=1, queue="team", user=full, priority_class="high")
    world.runs("low", 3, gpus=1, queue="team", user="carol")
    world.asks("first", 1, gpus=3, queue="team", user=full)
    if not together:
        assert not victims(world.cycle())
    second = world.asks("second", 1, gpus=3, queue="team", user=other)
    check_cycle(world, second, {f"low-worker-{rank}" for rank in range(3)})


@pytest.mark.parametrize("together", [True, False])
def test_a_search_in_vain_in_one_queue_leaves_that_of_another(*, together: bool) -> None:
    """Gangs of one user and one shape: half a node alone would help the gang of the first queue."""
    world = Cluster(2).queue("one").queue("two")
    world.runs("stays", 1, gpus=4, queue="one", priority_class="high")
    world.runs("half", 1, gpus=4, queue="one")
    world.runs("whole", 1, gpus=8, first=1, queue="two")
    world.asks("first", 1, queue="one", user="alice")
    if not together:
        assert not victims(world.cycle())
    check_cycle(world, world.asks("second", 1, queue="two", user="alice"), {"whole-worker-0"})


SIZE = 3
SUBSETS = [*chain.from_iterable(combinations(range(SIZE), count) for count in range(SIZE + 1))]
"""Ranks of the pods that budgets count."""


def gone(minimum: int, counted: Collection[int], asked: int, *, budgets: int, allowed: int) -> set[str]:
    """Pods that go of a gang of three, one on each node, for a gang that asks for so many nodes."""
    world = Cluster(SIZE, checked=False)
    world.runs("low", SIZE, min_member=minimum, min_task_member={})
    for rank in counted:
        world.label_pods(f"low-worker-{rank}", app="db")
    for number in range(budgets):
        world.budget(f"db{number}", allowed=allowed, app="db")
    world.asks("high", asked)
    return victims(world.cycle())


@pytest.mark.parametrize("counted", SUBSETS)
@pytest.mark.parametrize(("budgets", "allowed"), [(1, 0), (1, 1), (2, SIZE)])
def test_a_gang_keeps_its_minimum_or_none_under_budgets(counted: tuple[int, ...], budgets: int, allowed: int) -> None:
    """It gives as many pods above its minimum as budgets let go, and all of it only if all may go."""
    let_go = allowed if budgets == 1 else 0  # a pod of two budgets is never evicted
    for minimum in range(1, SIZE + 1):
        above = {*range(minimum, SIZE)}
        most_above = len(above.difference(counted)) + min(let_go, len(above.intersection(counted)))
        for asked in {max(1, most_above), min(SIZE, most_above + 1)}:
            pods = asked if asked <= most_above else SIZE if len(counted) <= let_go else 0
            names = gone(minimum, counted, asked, budgets=budgets, allowed=allowed)
            assert len(names) == pods, f"minimum {minimum}, {asked} nodes asked: {names}"
