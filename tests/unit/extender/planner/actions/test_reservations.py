"""A gang at the head of its queue that waits for room does not starve, and nothing is kept longer than it must be."""

import pytest
from extender_world import World, of
from hypothesis import given, settings
from hypothesis import strategies as st
from queue_world import QueueWorld
from state_oracle import recomputed_use

from extender.planner.actions.allocate import Allocate
from extender.planner.actions.backfill import Backfill
from extender.planner.framework import decisions
from extender.planner.plugins.order import Reservations
from muster.api.kubernetes.core import PriorityClass
from muster.api.kubernetes.meta import parse_time


def half_full(**head: object) -> QueueWorld:
    """Four nodes, two of them taken for 100 s; `big` wants all four."""
    world = QueueWorld(nodes=4)
    world.joins("old", 2, lasts_s=100, declared_s=100)
    world.submit("big", 4, lasts_s=50, declared_s=50, **head)  # type: ignore[arg-type]
    return world


def test_the_head_gets_nodes_and_the_time_at_which_those_who_run_there_end() -> None:
    """It stands in its Placement and in the reason why it waits."""
    world = half_full()
    began = world.runs["ns/old"].started or 0
    text = world.message("big")
    placement = world.state.placements["ns/big"]
    assert placement.status.phase == "Reserved"
    assert parse_time(placement.status.expected_at) == began + 100
    assert "reserved: 4 nodes, node-0, node-1, node-2 and 1 more, expected at 2027-01-15T" in text
    assert "because 1 workload is expected to have ended there" in text
    assert "ns/" not in text, "whose it is, is not for everybody who reads the PodGroup"


def test_who_ends_before_runs_on_the_reserved_nodes_and_who_does_not_waits_and_says_why() -> None:
    """A short one, a long one, and one that does not say how long it runs."""
    world = half_full()
    world.step()
    world.submit("short", 1, lasts_s=60, declared_s=60)
    world.submit("long", 1, lasts_s=120, declared_s=120)
    world.submit("unknown", 1, lasts_s=10)
    text = world.message("long")
    assert world.started == {"old", "short"}
    assert "reserved for a gang of queue default" in text
    assert "the gang would run into the reservation of a gang of queue default on " in text
    assert "ns/" not in text
    assert "expected at 2027-01-15T" in text
    began = world.runs["ns/old"].started or 0
    assert world.until_started("ns/big", 200) == began + 100
    assert world.state.placements["ns/big"].status.phase != "Reserved"
    assert world.state.placements["ns/big"].status.expected_at == ""


def test_whoever_leaves_enough_room_starts() -> None:
    """The head needs one GPU of a node that will have two; a long gang may have the other."""
    world = QueueWorld(nodes=1, gpus=3)
    world.joins("old", 2, lasts_s=100, declared_s=100)
    world.joins("big", 2, lasts_s=50)
    world.joins("long", 1, lasts_s=1000)
    assert world.started == {"old", "long"}
    world.submit("longer", 1, lasts_s=1000)
    assert world.until_started("ns/big", 200)


def test_a_new_leader_keeps_the_reservation() -> None:
    """Nothing but the Placement tells of it; the node that is free stays free, and nothing is written again."""
    world = half_full()
    world.step()
    before = world.state.placements["ns/big"]
    world.submit("long", 1, lasts_s=1000)
    session = world.session(Allocate())  # an action that knows nothing of the cycles before
    assert not of(session, (decisions.Place, decisions.Reserve, decisions.Unreserve))
    assert world.state.placements["ns/big"] is before


def urgent(pods: int) -> QueueWorld:
    """After the head is reserved for, a gang of so many pods with a higher priority comes."""
    world = half_full()
    world.step()
    world.state.on_priority_class(None, PriorityClass(metadata=world.meta("high", namespace=""), value=1000))
    world.joins("first", pods, lasts_s=1000, priority_class="high")
    return world


def test_it_ends_with_the_gang_that_is_the_head_no_more() -> None:
    """What is reserved is for the one that comes before it."""
    placements = urgent(4).state.placements
    assert [placements[key].status.phase for key in ("ns/first", "ns/big")] == ["Reserved", "Abandoned"]
    assert placements["ns/big"].spec.pod_sets == []


def test_a_gang_that_comes_before_the_head_in_its_queue_may_use_its_nodes() -> None:
    """Priority goes before what is reserved for those behind it."""
    assert urgent(2).started == {"old", "first"}


def test_gangs_of_other_queues_are_held_back_too() -> None:
    """Whichever queue is tried first, while the head waits for pods of others than its own queue."""
    world = QueueWorld(nodes=4).queue("other")
    world.joins("old", 2, lasts_s=100, declared_s=100, queue="other")
    world.joins("big", 4, lasts_s=50, declared_s=50)
    world.submit("long", 1, lasts_s=1000, queue="other")
    world.joins("short", 1, lasts_s=10, declared_s=10, queue="other")
    assert world.started == {"old", "short"}


def test_nothing_is_reserved_for_a_gang_of_which_nobody_knows_when_it_can_start_until_it_has_waited_for_long() -> None:
    """Then what becomes free on the nodes that have least to give back is reserved for it, no more than it needs."""
    world = QueueWorld(nodes=4)
    for index in range(4):
        world.submit(f"s{index}", 1, lasts_s=590 + 20 * index)
    world.step()
    world.submit("big", 2, lasts_s=50)
    for index in range(4):
        world.submit(f"t{index}", 1, lasts_s=400)
    world.step(595)
    assert "ns/big" not in world.state.placements
    assert world.started >= {"t0"}
    world.step(5)
    placement = world.state.placements["ns/big"]
    assert (placement.status.phase, placement.status.expected_at) == ("Reserved", "")
    assert sum(run.count for run in placement.spec.pod_sets[0].runs) == 2
    assert world.until_started("ns/big", 450)


def test_a_queue_that_is_strictly_ordered_starts_nobody_behind_its_head() -> None:
    """By an annotation of the queue; the other queue goes on."""
    world = QueueWorld(nodes=4).queue("fifo", reservations="strict").queue("other")
    world.joins("old", 2, lasts_s=100)
    world.submit("big", 4, lasts_s=50, queue="fifo")
    world.submit("short", 1, lasts_s=10, declared_s=10, queue="fifo")
    world.submit("long", 1, lasts_s=1000, queue="other")
    assert world.message("short") == (
        "queue 'fifo' starts its gangs strictly in order, and Job big before it waits for room"
    )
    assert world.started == {"old", "long"}


def test_a_queue_of_best_effort_reserves_nothing() -> None:
    """Whoever fits starts, as with Volcano."""
    world = half_full(queue="free").queue("free", reservations="besteffort")
    world.step()
    assert "ns/big" not in world.state.placements
    world.joins("long", 2, lasts_s=1000)
    assert world.started == {"old", "long"}


def test_a_reservation_ends_when_its_queue_becomes_best_effort_or_its_node_goes() -> None:
    """It is valid as long as its nodes can take the gang."""
    world = half_full()
    world.step()
    phases = []
    for mode in ({"reservations": "besteffort"}, {}):
        world.queue("default", **mode)
        world.step()
        phases.append(world.state.placements["ns/big"].status.phase)
    world.state.on_node(world.state.nodes.nodes[world.state.nodes.index["node-3"]], None)
    world.step()
    assert [*phases, world.state.placements["ns/big"].status.phase] == ["Abandoned", "Reserved", "Abandoned"]


def test_who_runs_longer_than_it_said_moves_the_time_and_frees_nobody() -> None:
    """The free nodes stay kept; after twice the time the one that overruns is believed no more."""
    world = QueueWorld(nodes=4)
    world.joins("old", 2, lasts_s=1000, declared_s=100)
    world.joins("big", 4, lasts_s=50)
    world.submit("short", 1, lasts_s=10, declared_s=10)
    world.step(150)
    assert (world.started, world.state.placements["ns/big"].status.phase) == ({"old"}, "Reserved")
    world.step(100)
    assert (world.started, world.state.placements["ns/big"].status.phase) == ({"old", "short"}, "Abandoned")


def test_a_time_that_stays_is_not_written_again() -> None:
    """A hundred cycles write one placement."""
    world = half_full()
    assert sum(len(of(world.step(), decisions.Reserve)) for _ in range(98)) == 1


def test_a_reserved_placement_holds_no_room_and_is_carried_out_by_nobody() -> None:
    """Its slots are not charged, and no pod is released to them."""
    world = half_full()
    world.step()
    used = world.state.nodes.used.copy()
    assert not world.view("ns/big").active
    assert not world.state.ledger.placed["ns/big"]
    assert (recomputed_use(world.state.ledger) == used).all()
    world.pod("ns/big", "worker", 0, {"nvidia.com/gpu": 1}, gated=True)
    assert not of(world.step(), decisions.Release)


@pytest.mark.parametrize(("lasts_s", "pods"), [(20, 2), (200, 0)])
def test_growth_does_not_take_what_is_reserved(lasts_s: int, pods: int) -> None:
    """The pods above the minimum of a gang come if they end before, and wait as others do else."""
    world = QueueWorld(nodes=4)
    world.joins("old", 2, lasts_s=100, declared_s=100)
    world.joins("big", 4, lasts_s=50)
    world.joins("elastic", 2, lasts_s=lasts_s, declared_s=lasts_s, min_member=1, min_task_member={})
    assert len(world.runs["ns/elastic"].pods) == pods


def test_a_deadline_of_pods_is_an_end_too() -> None:
    """ActiveDeadlineSeconds in the template, and in a pod that runs."""
    world = QueueWorld(nodes=2)
    assert world.view(world.submit("old", 1, lasts_s=100, spec={"activeDeadlineSeconds": 100})).runtime_s == 100
    both = world.submit("both", 1, lasts_s=1, declared_s=30, spec={"activeDeadlineSeconds": 50})
    assert world.view(both).runtime_s == 30
    assert world.view(world.submit("none", 1, lasts_s=1)).runtime_s is None


@pytest.mark.parametrize("wrong", ["soon", "-5s", "0s", "99999999h", ""])
def test_a_runtime_that_says_nothing_is_none(wrong: str) -> None:
    """The gang is one that may run for ever."""
    assert (world := World()).view(world.gang("a", {"worker": (1, {})}, runtime=wrong)).runtime_s is None


def test_the_arguments_of_the_plugin_are_checked() -> None:
    """Each sentence names the argument and what it may be."""
    world = half_full()
    world.plugins.append(Reservations({"mode": "besteffort", "patience": "1m", "heads": 4}))
    world.step()
    assert "ns/big" not in world.state.placements
    for arguments, words in (
        ({"mode": "greedy"}, "must be one of strict, reserve, besteffort"),
        ({"patience": "long"}, "patience: 'long' is not a duration"),
        ({"expiry": "never"}, "expiry: 'never' is not a duration"),
        ({"heads": True}, "a number from 0 to 256"),
        ({"patients": "1m"}, "no argument 'patients'"),
    ):
        with pytest.raises(ValueError, match=words):
            Reservations(arguments)


def test_backfill_starts_gangs_that_ask_for_nothing_behind_the_head_of_a_strict_queue() -> None:
    """Nobody else, and with its own action only."""
    world = QueueWorld(nodes=4).queue("fifo", reservations="strict")
    world.joins("old", 2, lasts_s=100)
    world.submit("big", 4, lasts_s=50, queue="fifo")
    world.submit("small", 1, lasts_s=50, queue="fifo")
    world.gang("idle", {"worker": (2, {})}, queue="fifo")
    world.gang("mixed", {"idle": (1, {}), "worker": (1, {"nvidia.com/gpu": 1})}, queue="fifo")
    session = world.session(Allocate(), Backfill())
    assert [place.gang.key for place in of(session, decisions.Place)] == ["ns/idle"]
    assert {waits.gang.key for waits in of(session, decisions.Unschedulable)} == {"ns/big", "ns/small", "ns/mixed"}


TICK_S = 5
"""Whatever begins or ends in the simulations does so at a multiple of it: seconds between would decide nothing."""


def lasting(least: int, most: int) -> st.SearchStrategy[int]:
    """Seconds between these, in ticks."""
    return st.integers(-(-least // TICK_S), most // TICK_S).map(lambda ticks: ticks * TICK_S)


SMALL = st.tuples(st.integers(1, 3), lasting(5, 60), lasting(0, 40), st.booleans())


@settings(max_examples=settings().max_examples // 3)
@given(
    running=st.lists(st.tuples(st.integers(1, 3), lasting(10, 80)), min_size=1, max_size=4),
    small=st.lists(SMALL, max_size=8),
)
def test_no_backfill_delays_the_head(running: list[tuple[int, int]], small: list[tuple[int, int, int, bool]]) -> None:
    """It starts when it was first expected to, or earlier; gangs that say nothing may run for ever."""
    world = QueueWorld(nodes=6)
    for index, (members, lasts) in enumerate(running):
        world.submit(f"r{index}", members, lasts_s=lasts, declared_s=lasts)
        world.step(0)
    for run in [run for run in world.runs.values() if run.started is None]:
        world.state.on_pod_group(world.state.groups[run.key], None)
        del world.runs[run.key]
    world.step(TICK_S)
    key = world.submit("big", 6, lasts_s=20)
    world.step(0)
    expected = parse_time(world.state.placements[key].status.expected_at) if world.runs[key].started is None else None
    for index, (members, lasts, later, says) in enumerate(sorted(small, key=lambda each: each[2])):
        while world.runs[key].started is None and world.now < world.runs[key].submitted + later:
            world.step(TICK_S)
        world.submit(f"s{index}", members, lasts_s=lasts if says else 10_000, declared_s=lasts if says else None)
        world.step(0)
    assert expected is None or world.until_started(key, 300, TICK_S) <= expected


@settings(max_examples=settings().max_examples // 20)
@given(lasts=st.lists(lasting(20, 200), min_size=20, max_size=40), wanted=st.integers(2, 6))
def test_a_stream_of_small_gangs_starves_nobody(lasts: list[int], wanted: int) -> None:
    """No runtimes are known. The head starts within its patience and the time of the longest small one."""
    world = QueueWorld(nodes=6)
    patience = 100
    world.plugins.append(Reservations({"patience": f"{patience}s"}))
    for index, seconds in enumerate(lasts[:6]):
        world.submit(f"s{index}", 1, lasts_s=seconds)
    world.step()
    key = world.submit("big", wanted, lasts_s=20)
    rest = list(lasts[6:]) * 10
    for index, seconds in enumerate(rest):
        if world.runs[key].started is not None:
            break
        world.submit(f"t{index}", 1, lasts_s=seconds)
        world.step(TICK_S)
        assert world.now <= world.runs[key].submitted + patience + max(lasts) + TICK_S, "the head starves"
    assert world.runs[key].started is not None or len(rest) * TICK_S < patience + max(lasts)


@pytest.mark.parametrize("hopeless", [0, 6])
def test_each_head_of_many_queues_is_searched_for_in_turn(hopeless: int) -> None:
    """However long a cycle takes, and whatever changes meanwhile; some want more than there will ever be."""
    world, allocate, queues = QueueWorld(nodes=9), Allocate(), [f"q{number}" for number in range(9)]
    for number, queue in enumerate(queues):
        world.queue(queue)
        world.submit(f"old-{number}", 1, lasts_s=1000, declared_s=1000, queue=queue)
    world.step()
    for number, queue in enumerate(queues):
        world.submit(f"new-{number}", 20 if 0 < number <= hopeless else 1, lasts_s=1000, queue=queue)
        world.node("door", gpus=0)
    for cycle in range(12):
        world.now += 6
        world.node("door", gpus=0, cpu=1 + cycle)
        world.write_reservations(world.session(world.progress, allocate))
    reserved = {key for key, placement in world.state.placements.items() if placement.status.phase == "Reserved"}
    assert reserved == {f"ns/new-{number}" for number in range(9) if not 0 < number <= hopeless}


def test_broken_words_in_a_placement_harm_nobody() -> None:
    """Somebody edited the time and the slots."""
    world = half_full()
    world.step()
    world.change(world.state.placements["ns/big"], status={"expected_at": "soon"})
    assert not world.step().failures
    assert parse_time(world.state.placements["ns/big"].status.expected_at)


@settings(max_examples=settings().max_examples // 8)
@given(
    heads=st.lists(st.tuples(st.integers(3, 6), lasting(5, 40)), min_size=2, max_size=3),
    small=st.lists(SMALL, max_size=6),
)
def test_heads_do_not_delay_each_other(heads: list[tuple[int, int]], small: list[tuple[int, int, int, bool]]) -> None:
    """Each starts when it was first expected to, or earlier."""
    world = QueueWorld(nodes=6)
    for index, lasts in enumerate((30, 50)):
        world.submit(f"r{index}", 3, lasts_s=lasts, declared_s=lasts)
    world.step()
    expected: dict[str, float] = {}
    for index, (members, lasts) in enumerate(heads):
        world.queue(f"q{index}")
        world.submit(f"head{index}", members, lasts_s=lasts, declared_s=lasts, queue=f"q{index}")
    for index, (members, lasts, _, says) in enumerate(small):
        world.submit(f"s{index}", members, lasts_s=lasts if says else 10_000, declared_s=lasts if says else None)
    keys = [f"ns/head{index}" for index in range(len(heads))]
    for _ in range(0, 300, TICK_S):
        if all(world.runs[key].started is not None for key in keys):
            break
        for key in keys:
            placement = world.state.placements.get(key)
            at = parse_time(placement.status.expected_at) if placement and not world.runs[key].started else None
            if at is not None:
                expected.setdefault(key, at)
        world.step(TICK_S)
    late = {
        key: (world.runs[key].started, at) for key, at in expected.items() if (world.runs[key].started or at + 1) > at
    }
    assert not late
