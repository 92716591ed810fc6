"""Room of pods that are ending goes to the gang whose turn it is: nobody is evicted who would not have to be."""

import pytest
from extender_world import NOW, of
from gpus_world import shares
from hypothesis import given, settings
from hypothesis import strategies as st
from shared_gpus import annotations
from shares_world import deserving
from victims_world import Cluster, victims

from extender.planner.actions.consolidate import Consolidate
from extender.planner.actions.displace import Preempt, Reclaim
from extender.planner.actions.evicting import Evicting
from extender.planner.framework.decisions import ClosePlacement, Place
from extender.planner.victims.notices import LATE_S, expected_to_go
from muster.api import names
from muster.api.kubernetes.meta import format_time

ORDERS = [[Preempt, Reclaim], [Reclaim, Preempt], [Consolidate, Reclaim, Preempt]]
GPU8 = {"nvidia.com/gpu": 8}
QUEUES, PRIORITIES = st.sampled_from("ab"), st.sampled_from(["low", "high"])


def ending(world: Cluster, name: str, node: int, queue: str, *, alone: bool = False) -> str:
    """A gang of one pod on all of a node, or a pod alone, which is being deleted."""
    key = world.gang(name, {"worker": (1, GPU8)}, phase="Completed", queue=queue)
    gone = format_time(world.now + 20)
    said = {"labels": {names.QUEUE: queue}, "annotations": {names.EXPECTED_RUNTIME: "1h"}} if alone else {}
    world.pod(key, "worker", 0, GPU8, node=f"node-{node}", phase="Running", deletion_timestamp=gone, **said)
    return key


def contested(actions: list[type[Evicting]], *ends: int) -> tuple[Cluster, str, str]:
    """These nodes end; b runs a gang within and one beyond what it deserves and asks for two pods, a for one."""
    world = deserving(2 + len(ends), *(action() for action in actions), a=8, b=8)
    for node in ends:
        ending(world, f"gone{node}", node, "a")
    world.runs("inside", 1, first=1, queue="b", priority_class="high")
    world.runs("beyond", 1, first=2, queue="b", priority_class="low")
    return world, world.asks("large", 2, queue="b"), world.asks("mine", 1, queue="a")


@pytest.mark.parametrize("actions", ORDERS)
def test_ending_room_is_kept_for_the_queue_whose_turn_it_is(actions: list[type[Evicting]]) -> None:
    """A gang of b could start on it if one of b went too; then a would take the place of one that b deserves."""
    world, _, mine = contested(actions, 0)
    for _ in range(2):
        assert not victims(world.cycle())
    world.state.on_pod(world.state.pod_objects["uid-gone0-worker-0"], None)
    assert [place.gang.key for place in of(world.cycle(), Place)] == [mine]


@pytest.mark.parametrize("actions", ORDERS)
def test_what_is_left_of_ending_room_is_lent(actions: list[type[Evicting]]) -> None:
    """With two nodes that end there is one for each, and the larger gang gets its second node by a victim."""
    world, large, _ = contested(actions, 0, 3)
    session = world.cycle()
    assert victims(session) == {"beyond-worker-0"}
    assert [place.gang.key for place in of(session, Place)] == [large]


@pytest.mark.parametrize("actions", ORDERS)
@pytest.mark.parametrize("queue", ["a", "b"])
@pytest.mark.parametrize("alone", [False, True])
def test_free_capacity_beside_ending_pods_is_not_given_to_a_later_gang(
    actions: list[type[Evicting]], queue: str, *, alone: bool
) -> None:
    """Both together suffice for the first gang: no other gang is placed there before it, and no pod is evicted."""
    world = deserving(4, *(action() for action in actions), a=16, b=16)
    world.runs("x", 2, queue="a", priority_class="high")
    ending(world, "gone", 3, queue, alone=alone)
    owed = world.asks("owed", 2, queue="b")
    world.asks("mine", 1, queue="a")
    for _ in range(2):
        session = world.cycle()
        assert (victims(session), [place.gang.key for place in of(session, Place)]) == (set(), [])
    world.state.on_pod(world.state.pod_objects["uid-gone-worker-0"], None)
    assert [place.gang.key for place in of(world.cycle(), Place)] == [owed]


def test_ending_shares_are_kept_by_the_gpu() -> None:
    """Half of a GPU that ends is kept for a gang of its size, and the next one gets another."""
    world = deserving(0, Preempt(), a=1, b=1).nodes(1, gpus=1)
    going = shares(world, "going", 1, queue="a", gpu_fraction="0.5")
    told, gone = annotations(going, 0, "0", gpu_fraction="0.5"), format_time(world.now + 20)
    world.pod(going, "worker", 0, {"cpu": 1}, node="node-0", phase="Running", annotations=told, deletion_timestamp=gone)
    low = shares(world, "low", 1, queue="b", priority="low", gpu_fraction="0.5")
    told = annotations(low, 0, "0", gpu_fraction="0.5")
    world.pod(low, "worker", 0, {"cpu": 1}, node="node-0", phase="Running", annotations=told)
    shares(world, "mine", 1, queue="a", gpu_fraction="0.5")
    high = shares(world, "high", 1, queue="b", priority="high", gpu_fraction="0.5")
    session = world.cycle()
    assert victims(session) == {"low-worker-0"}
    assert [place.gang.key for place in of(session, Place)] == [high]


YEAR_S = 365 * 86_400


@pytest.mark.parametrize(("grace_s", "waits_s"), [(20, 20), (600, 600), (900, 600), (60 * YEAR_S, 600)])
def test_nobody_waits_for_longer_than_the_longest_notice_for_a_pod_that_is_being_deleted(
    grace_s: int, waits_s: int
) -> None:
    """Its owner chose its grace period: a minute after that another gang is evicted, or if the clock is set back."""
    world = Cluster(2)
    going = {"deletion_timestamp": format_time(world.now + grace_s), "deletion_grace_period_seconds": grace_s}
    world.change(world.state.pod_objects[f"uid-{world.runs('zombie', 1)[3:]}-worker-0"], **going)
    world.runs("low", 1, first=1)
    world.asks("high", 1)
    for after_s, gone in ((0, set()), (waits_s + LATE_S, set()), (waits_s + LATE_S + 1, {"low-worker-0"})):
        world.now = NOW + after_s
        assert victims(world.cycle()) == gone
        session = world.session()
        for now, goes in ((world.now, not gone), (NOW - 86_400.0, False)):
            session.now = now
            assert all(expected_to_go(session, pod) is goes for pod in session.snapshot.leaving.values())


@pytest.mark.parametrize("namespace", ["ns", "theirs"])
def test_a_victim_that_does_not_end_is_given_up_and_named(namespace: str) -> None:
    """Its grace period is a year. Another pod is evicted; readers without access to pods learn only the node."""
    world = Cluster(2, checked=False)
    for number in range(2):
        world.runs(f"low{number}", 1, first=number)
    asker = world.asks("high", 1)
    [victim] = victims(world.cycle())
    pod = world.state.pod_objects[f"uid-{victim}"]
    going = {"deletion_timestamp": format_time(world.now + YEAR_S), "deletion_grace_period_seconds": YEAR_S}
    world.change(pod, namespace=namespace, **going)
    world.now += 600 + LATE_S
    assert not of(world.cycle(), ClosePlacement)
    world.now += 2
    session = world.cycle()
    [close] = of(session, ClosePlacement)
    assert (close.gang.key, close.evicted_in_vain) == (asker, True)
    name = f"ns/{victim}" if namespace == "ns" else "one"
    assert (
        close.message
        == f"pods that had to leave the gang's nodes do not terminate, {name} on node node-{victim[3]} among them"
    )
    world.close(session)
    world.now += 11
    assert victims(world.cycle()) == {"low0-worker-0", "low1-worker-0"} - {victim}


@settings(max_examples=settings().max_examples * 3 // 5)
@given(
    going=st.integers(1, 3), running=st.lists(st.tuples(QUEUES, PRIORITIES), max_size=3),
    asking=st.lists(st.tuples(QUEUES, PRIORITIES, st.integers(1, 3)), min_size=1, max_size=4),
    actions=st.sampled_from(ORDERS),
)  # fmt: skip
def test_the_first_that_fits_on_ending_room_costs_nobody(
    going: int, running: list[tuple[str, str]], asking: list[tuple[str, str, int]], actions: list[type[Evicting]]
) -> None:
    """If the gang whose turn it is fits when pods have ended, it does beside all who get the room of victims."""
    world = deserving(going + len(running), *(action() for action in actions), a=16, b=16)
    for number in range(going):
        ending(world, f"going{number}", number, "a")
    for number, (queue, priority) in enumerate(running):
        world.runs(f"run{number}", 1, first=going + number, queue=queue, priority_class=priority)
    for number, (queue, priority, pods) in enumerate(asking):
        world.asks(f"ask{number}", pods, queue=queue, priority_class=priority)
    before = world.session()
    first = before.ordered_gangs([gang for gang in before.snapshot.gangs if gang.key.startswith("ns/ask")])[0]
    session = world.cycle()
    places = of(session, Place)
    if first.min_member <= going:
        assert first.key not in {place.gang.key for place in places}
        assert going + len(victims(session)) - sum(place.new_slots for place in places) >= first.min_member
