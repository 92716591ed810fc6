"""Spares as room for others: who is to give way gives up spares before pods, and with its pods the spares, too."""

from collections import Counter
from typing import Any

import pytest
from extender_world import of, slots
from hypothesis import given, settings
from hypothesis import strategies as st
from shares_world import cluster
from victims_world import Cluster, victims

from extender.planner.actions.allocate import Allocate
from extender.planner.actions.consolidate import Consolidate
from extender.planner.actions.displace import Preempt, Reclaim, SparesForPreempt, SparesForReclaim
from extender.planner.actions.enqueue import Enqueue
from extender.planner.cycle import Parts
from extender.planner.framework import config
from extender.planner.framework.decisions import KeepSpares, MakeRoom, Place
from extender.planner.framework.session import Session
from muster.api import names

GPUS = "nvidia.com/gpu"


def keeps(world: Cluster, name: str, pods: int, spares: int, gpus: int = 8, **more: Any) -> str:
    """A gang that has started, with spares if there is room for them; it does not run if there is none for it."""
    key = world.asks(name, pods, gpus, **{"priority_class": "low"} | more)
    world.annotate(key, names.SPARES, str(spares))
    world.plan()
    if key not in world.state.placements:
        return key
    nodes = slots(world.state.placements[key])["worker"]
    world.members(key, len(nodes), {GPUS: gpus}, node=nodes, pinned=True, epoch=1, phase="Running")
    world.close(world.plan())
    return key


def spares(world: Cluster, key: str) -> dict[str, int]:
    """Node → seats that the gang keeps there."""
    placement = world.state.placements.get(key)
    return {each.node: each.count for each in placement.spec.spares} if placement else {}


def cycle(world: Cluster, *more: Any) -> Session:
    """One cycle as the planner's, with these actions; its decisions are written."""
    session = world.session(world.progress, Enqueue(), Allocate(), *more)
    for place in of(session, Place):
        world.place(place)
    world.keep_spares(session)
    return session


@pytest.mark.parametrize("actions", [[SparesForPreempt()], [Preempt()], [SparesForPreempt(), Consolidate(), Preempt()]])
def test_spares_of_a_lower_priority_are_enough(actions: list[Any]) -> None:
    """The asker starts at once on one of them, nobody is told or evicted, and the other one stays kept."""
    world = Cluster(4)
    low = keeps(world, "low", 2, 2)
    before = spares(world, low)
    assert len(before) == 2
    asker = world.asks("high", 1)
    session = cycle(world, *actions)
    assert not of(session, MakeRoom)
    (place,) = of(session, Place)
    (node,) = slots(place)["worker"]
    assert (place.gang.key, place.victims, place.pod_sets[0].held) == (asker, (), False)
    assert spares(world, low) == {each: 1 for each in before if each != node}
    world.now += 10
    world.plan()
    assert len(spares(world, low)) == 1, "it has not taken it back"


def test_a_gang_that_leaves_leaves_its_spares() -> None:
    """Three nodes are wanted, and pods of it stand on two: without its spare nothing would help."""
    world = Cluster(3)
    low = keeps(world, "low", 2, 1)
    assert len(spares(world, low)) == 1
    world.asks("high", 3)
    assert victims(cycle(world, SparesForPreempt(), Preempt())) == {"low-worker-0", "low-worker-1"}
    assert not spares(world, low)
    world.close(world.plan())


def test_spares_and_pods_go_together_where_both_are_needed() -> None:
    """Of a gang that keeps its minimum, one pod and one seat go; the seats of a gang that is not asked stay."""
    world = Cluster(5)
    low = keeps(world, "low", 2, 1, min_member=1, min_task_member={})
    peer = keeps(world, "peer", 1, 1, priority_class="high")
    assert (len(spares(world, low)), len(spares(world, peer))) == (1, 1)
    world.asks("high", 2)
    assert victims(cycle(world, SparesForPreempt(), Preempt())) == {"low-worker-1"}
    assert (len(spares(world, low)), len(spares(world, peer))) == (0, 1)


@pytest.mark.parametrize("going", [True, False])
def test_spares_are_not_given_before_the_rest_of_the_room_is_free(*, going: bool) -> None:
    """Half of it is where a pod ends; then both are free, and nobody else has to go."""
    world = Cluster(3)
    low = keeps(world, "low", 1, 1)
    world.runs("ends", 1, first=2, priority_class="high")
    if going:
        world.change(world.state.pod_objects["uid-ends-worker-0"], deletion_timestamp="2027-01-15T08:00:10Z")
        world.change(world.state.groups["ns/ends"], status={"phase": "Completed"})
    world.asks("high", 2)
    assert not of(cycle(world, SparesForPreempt()), Place)
    assert len(spares(world, low)) == 1
    world.state.on_pod(world.state.pod_objects["uid-ends-worker-0"], None)
    world.state.on_pod_group(world.state.groups["ns/ends"], None)
    [place] = of(cycle(world, SparesForPreempt()), Place)
    assert (place.gang.key, place.victims) == ("ns/high", ())


def test_equals_keep_their_spares() -> None:
    """As they keep their pods; so does one that may not be evicted."""
    world = Cluster(4)
    keeps(world, "low", 1, 1)
    firm = keeps(world, "firm", 1, 1)
    world.state.groups[firm].metadata.labels["volcano.sh/preemptable"] = "false"
    world.state.on_pod_group(None, world.state.groups[firm])
    world.asks("equal", 1, priority_class="low")
    assert not of(cycle(world, SparesForPreempt(), Preempt()), Place)
    world.asks("high", 2)
    assert victims(cycle(world, SparesForPreempt(), Preempt())) == {"low-worker-0"}
    assert len(spares(world, firm)) == 1


def test_what_is_lent_is_not_given_to_others() -> None:
    """Who borrows a seat leaves for its lender alone; the asker waits, or takes the lender's place."""
    world = Cluster(3)
    low = keeps(world, "low", 1, 1)
    keeps(world, "fills", 1, 0, priority_class="high")
    (seat,) = spares(world, low)
    guest = world.asks("guest", 1, priority_class="low")
    world.annotate(guest, names.BORROWS, "true")
    world.plan()
    world.pod(guest, "worker", 0, {GPUS: 8}, node=seat, pin=seat, epoch=1, phase="Running")
    world.close(world.plan())
    world.asks("high", 1)
    assert not of(cycle(world, SparesForPreempt()), Place)
    assert victims(cycle(world, Preempt())) == {"low-worker-0"}


def test_reclaim_takes_spares_of_queues_above_their_share() -> None:
    """And not those of a queue that has no more than that."""
    world = cluster(4, 8)
    low = keeps(world, "b1", 2, 2, queue="b")
    assert len(spares(world, low)) == 2
    world.asks("c1", 1, queue="c")
    session = cycle(world, SparesForReclaim(), Consolidate(), Reclaim())
    assert not victims(session)
    assert [place.gang.key for place in of(session, Place)] == ["ns/c1"]
    assert len(spares(world, low)) == 1
    world = cluster(2, 8)
    low = keeps(world, "b1", 1, 1, queue="b")
    world.asks("c1", 1, queue="c")
    assert not of(cycle(world, SparesForReclaim(), Reclaim()), Place)
    assert len(spares(world, low)) == 1


def test_the_planner_tries_spares_before_it_moves_anybody() -> None:
    """For the actions that are configured, right after lent spares were taken back."""
    actions = [type(action).__name__ for action in Parts().parts_of(config.parse(""))[0]]
    at = actions.index("Recall")
    assert actions[at : at + 4] == ["Recall", "SparesForReclaim", "SparesForPreempt", "Consolidate"]
    alone = [
        type(action).__name__ for action in Parts().parts_of(config.parse("actions: enqueue, allocate, preempt"))[0]
    ]
    assert "SparesForReclaim" not in alone
    assert "SparesForPreempt" in alone


PRIORITY = st.sampled_from(["low", "high"])
RUNNING = st.lists(
    st.tuples(st.integers(1, 3), st.sampled_from([2, 4, 8]), st.integers(0, 2), PRIORITY, st.booleans()), max_size=5
)
"""Pods, GPUs of each, spares, priority class, and whether the minimum is one."""
ASKING = st.lists(st.tuples(st.integers(1, 3), st.sampled_from([2, 4, 8])), min_size=1, max_size=3)


@settings(max_examples=settings().max_examples * 2)
@given(nodes=st.integers(1, 6), running=RUNNING, asking=ASKING)
def test_any_world(nodes: int, running: list[tuple[int, int, int, str, bool]], asking: list[tuple[int, int]]) -> None:
    """Nobody goes where spares of lower priorities are enough; no room is given twice, and no seat in vain."""
    world = Cluster(nodes, checked=False)
    for number, (pods, gpus, more, priority, elastic) in enumerate(running):
        said = {"min_member": 1, "min_task_member": {}} if elastic else {}
        if _holds(_room(world, {}), nodes, pods, gpus):
            keeps(world, f"g{number}", pods, more, gpus, priority_class=priority, **said)
    kept = {key: spares(world, key) for key in world.state.placements}
    room = _room(world, {key: seats for key, seats in kept.items() if _is_low(world, key)})
    enough = _holds(room, nodes, *asking[0])
    for number, (size, each) in enumerate(asking):
        world.asks(f"a{number}", size, each)
    session = cycle(world, SparesForPreempt(), Preempt())
    first = [place for place in of(session, Place) if place.gang.key == "ns/a0"]
    if enough:
        assert first, "free room and spares are enough for the first"
        assert not any(place.victims for place in first)
    gone = {pod.uid for make in of(session, MakeRoom) for _, pod in make.victims}
    left = _room(world, {}, gone)
    assert all(amount >= 0 for amount in left.values()), f"a node is overfull: {left}"
    places = {place.gang.key: set(slots(place)["worker"]) for place in of(session, Place)}
    taken = set().union(*places.values())
    for keep in of(session, KeepSpares):
        now = spares(world, keep.gang.key)
        lost = {node for node, count in kept.get(keep.gang.key, {}).items() if now.get(node, 0) < count}
        assert not lost or _is_low(world, keep.gang.key), "only those below the asker give"
        assert any(pod.uid in gone for pod in keep.gang.pods) or lost <= taken, "what is given is used"


def _holds(room: Counter[str], nodes: int, pods: int, gpus: int) -> bool:
    return sum(room[f"node-{number}"] // gpus for number in range(nodes)) >= pods


def _is_low(world: Cluster, key: str) -> bool:
    return world.state.groups[key].spec.priority_class_name == "low"


def _room(
    world: Cluster, given: dict[str, dict[str, int]], gone: set[str] | frozenset[str] = frozenset()
) -> Counter[str]:
    """Free GPUs of each node beside pods, placed slots and spares; these spares and pods count as free."""
    free = Counter({f"node-{number}": 8 for number in range(6)})
    for key, placement in world.state.placements.items():
        view = world.view(key)
        gpus = view.pod_sets[0].class_of(0).requests[GPUS] // 1000
        there = [pod for pod in view.pods if pod.alive and pod.node]
        if any(pod.uid not in gone for pod in there) or not there:
            for node, count in spares(world, key).items():
                free[node] -= gpus * (count - given.get(key, {}).get(node, 0))
        placed = [] if there else [node for node in slots(placement)["worker"] if node]
        nodes = [pod.node for pod in there if pod.uid not in gone] or placed
        free.subtract({node: gpus * count for node, count in Counter(nodes).items()})
    return free
