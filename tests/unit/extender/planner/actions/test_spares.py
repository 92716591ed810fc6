"""Spares: a gang keeps room for members that it loses."""

from collections import Counter
from typing import Any

import pytest
from extender_world import World, of, only, slots
from topology_world import Racks, racks_of

from extender.planner.actions.allocate import Allocate
from extender.planner.actions.displace import Recall
from extender.planner.actions.enqueue import Enqueue
from extender.planner.actions.spares import own_spares
from extender.planner.framework import decisions
from muster.api import names
from muster.api.kubernetes.core import PriorityClass

GPU8 = {"nvidia.com/gpu": 8}


def asks(world: World, key: str, text: str, name: str = names.SPARES) -> None:
    """The gang's PodGroup says how many spares it keeps, or something else."""
    group = world.state.groups[key]
    world.change(group, annotations={**group.metadata.annotations, name: text})


def spares(world: World, key: str) -> dict[str, int]:
    """Node → seats that the gang keeps there, by its placement."""
    return {each.node: each.count for each in world.state.placements[key].spec.spares}


def gang(world: World, size: int, text: str, requests: dict[str, Any] = GPU8, name: str = "a") -> str:
    """A gang that keeps spares."""
    key = world.gang(name, {"worker": (size, requests)})
    asks(world, key, text)
    return key


def test_spares_are_planned_with_the_gang_and_nobody_else_is_placed_there() -> None:
    """Of six nodes the gang has three and keeps two, so that of two gangs of one node each only one starts."""
    world = World().nodes(6)
    key = gang(world, 3, "2")
    nodes = world.start(key, GPU8)
    assert len(spares(world, key)) == 2
    assert not spares(world, key).keys() & set(nodes)
    assert set(spares(world, key).values()) == {1}
    for name in ("b", "c"):
        world.gang(name, {"worker": (1, GPU8)})
    assert not set(slots(only(world.plan(), decisions.Place))["worker"]) & {*nodes, *spares(world, key)}


@pytest.mark.parametrize(("pods", "gpus", "text", "seats"), [
    pytest.param(16, 1, "1", 8, id="eight members have room on a node"),
    pytest.param(1, 8, "64", 1, id="no more than it has, else one pod would hold the cluster"),
])  # fmt: skip
def test_a_node_is_worth_as_many_seats_as_it_has_room_for_members(pods: int, gpus: int, text: str, seats: int) -> None:
    """Whatever number of nodes the gang says."""
    world = World().nodes(6)
    key = gang(world, pods, text, {"nvidia.com/gpu": gpus})
    world.plan()
    assert sum(spares(world, key).values()) == seats


def test_a_rank_in_a_label_gives_no_spare_slots() -> None:
    """Only existing pods do, or one pod with one GPU could hold the cluster. A member that ends frees its slots."""
    world = World().nodes(6)
    key = world.pod_group("a", annotations={names.SPARES: "4"})
    one = {"nvidia.com/gpu": 1}
    world.pod(key, "worker", 19_999, one)
    world.plan()
    assert sum(spares(world, key).values()) == 1
    node = world.state.placements[key].spec.pod_sets[0].runs[-1].node
    started: dict[str, Any] = {"node": node, "pin": node, "epoch": 1}
    world.pod(key, "worker", 19_999, one, phase="Running", **started)
    world.close(world.plan())
    world.members(key, 3, one, node="node-1", phase="Running")
    world.plan()
    assert sum(spares(world, key).values()) == 4
    world.pod(key, "worker", 19_999, one, phase="Succeeded", **started)
    world.plan()
    assert sum(spares(world, key).values()) == 3


def test_each_pod_set_has_the_spares_that_are_asked_for_it() -> None:
    """One node for a leader, no wider than its members, and two for the workers, as wide as a node is by then."""
    world = World().nodes(12)
    one = {"nvidia.com/gpu": 4}
    key = world.gang("a", {"leader": (1, one), "worker": (6, one)})
    asks(world, key, "leader=1,worker=2")
    world.plan()
    kept = Counter[str]()
    for each in world.state.placements[key].spec.spares:
        kept[each.pod_set] += each.count
    assert kept == {"leader": 1, "worker": 4}
    world.nodes(12, gpus=12)
    later = world.gang("b", {"leader": (1, one), "worker": (6, one)})
    asks(world, later, "1")
    world.plan()
    assert {each.pod_set for each in world.state.placements[later].spec.spares} == {"worker"}
    assert sum(spares(world, later).values()) == 3


@pytest.mark.parametrize(("free", "kept"), [(0, 0), (1, 1)])
def test_a_lost_member_takes_a_spare_and_another_one_is_sought(free: int, kept: int) -> None:
    """In the cycle in which its pod is there; what is not there is kept once it is free."""
    world = World().nodes(4 + free)
    key = gang(world, 3, "1")
    nodes = world.start(key, GPU8)
    (spare,) = spares(world, key)
    lose(world, key, 1, nodes[1])
    taken = slots(only(world.plan(), decisions.Place))["worker"]
    assert [taken[0], taken[2]] == [nodes[0], nodes[2]]
    assert taken[1] == spare or free
    world.pod(key, "worker", 1, GPU8, node=taken[1], pin=taken[1], epoch=2, phase="Running", uid="again", name="again")
    world.close(world.plan())
    world.now += 10
    world.plan()
    assert len(spares(world, key)) == kept
    assert not spares(world, key).keys() & set(taken)


def test_a_member_that_is_not_made_again_yet_has_a_spare_as_before() -> None:
    """Of an elastic gang, too, whose controller will make it."""
    world = World().nodes(3)
    key = world.gang("a", {"worker": (4, {"nvidia.com/gpu": 2})}, min_member=1, min_task_member={})
    asks(world, key, "1")
    world.start(key, {"nvidia.com/gpu": 2})
    world.state.on_pod(world.state.pod_objects["uid-a-worker-3"], None)
    for _ in range(2):
        world.plan()
        assert sum(spares(world, key).values()) == 4


@pytest.mark.parametrize("template", [True, False])
def test_spare_slots_stay_until_lost_members_are_created_again(*, template: bool) -> None:
    """The members' node is cordoned and another gang needs the capacity: the spare slots still exist a cycle later."""
    world = World().nodes(2)
    half = {"nvidia.com/gpu": 2}
    key = world.gang("a", {"worker": (4, half)}) if template else world.pod_group("a", 4)
    asks(world, key, "1")
    world.members(key, 0 if template else 4, half, gated=True)
    node = world.start(key, half)[0]
    world.gang("b", {"worker": (3, half)})
    before = spares(world, key)
    assert sum(before.values()) == 4
    world.node(node, unschedulable=True)
    for rank in (1, 2, 3):
        world.state.on_pod(world.state.pod_objects[f"uid-a-worker-{rank}"], None)
    for _ in range(2):
        assert "ns/b" not in {place.gang.key for place in of(world.plan(), decisions.Place)}
        assert sum(spares(world, key).values()) + sum(world.state.ledger.placed.values()) >= 3
        world.now += 1


def test_spares_are_in_the_domain_of_the_gang() -> None:
    """Of racks of four nodes, the one is chosen that has room for members and spares."""
    world = Racks(1, 2, 4)
    world.gang("in-the-way", {"worker": (1, GPU8)}, spec={"nodeSelector": {"kubernetes.io/hostname": "none"}})
    key = world.asks("a", 3, 8, required="rack", phase="Inqueue")
    asks(world, key, "1")
    world.plan()
    assert len(set(racks_of([*world.placed(key)["worker"], *spares(world, key)]))) == 1


def test_a_gang_starts_without_spares_where_there_is_no_room_for_them() -> None:
    """They are kept as soon as there is."""
    world = World().nodes(3)
    key = gang(world, 3, "1")
    world.start(key, GPU8)
    assert not spares(world, key)
    world.now += 10
    world.node("node-9")
    world.plan()
    assert spares(world, key) == {"node-9": 1}


def test_spares_are_given_back() -> None:
    """When the gang has ended, or wants none any more."""
    world = World().nodes(4)
    key = gang(world, 2, "1")
    nodes = world.start(key, GPU8)
    held = spares(world, key)
    asks(world, key, "0")
    world.plan()
    assert not spares(world, key)
    asks(world, key, "1")
    world.now += 10
    world.plan()
    assert spares(world, key).keys() == held.keys()
    world.members(key, len(nodes), GPU8, node=nodes, pinned=True, epoch=1, phase="Succeeded")
    other = world.gang("b", {"worker": (4, GPU8)})
    world.plan()
    assert len(slots(world.state.placements[other])["worker"]) == 4


def test_a_node_that_takes_no_pods_any_more_is_no_spare() -> None:
    """Another one is kept in its place."""
    world = World().nodes(4)
    key = gang(world, 2, "1")
    nodes = world.start(key, GPU8)
    (spare,) = spares(world, key)
    world.node(spare, unschedulable=True)
    world.now += 10
    world.plan()
    (other,) = spares(world, key)
    assert other not in {spare, *nodes}


def borrower(world: World, name: str, size: int, requests: dict[str, Any] = GPU8) -> str:
    """A gang that may run on spares of others."""
    key = world.gang(name, {"worker": (size, requests)})
    asks(world, key, "true", names.BORROWS)
    return key


def loans(world: World, key: str) -> dict[str, int]:
    """Node → seats of others that the gang uses, by its placement."""
    return {each.node: each.count for each in world.state.placements[key].spec.borrows}


def lent_spares() -> tuple[World, str, list[str], str]:
    """A gang of two with two spares on four nodes, one of which is lent to a gang of one node."""
    world = World().nodes(4)
    key = gang(world, 2, "2")
    nodes = world.start(key, GPU8)
    other = borrower(world, "b", 1)
    (there,) = world.start(other, GPU8)
    assert loans(world, other) == {there: 1}
    return world, key, nodes, other


@pytest.mark.parametrize(("taken", "left", "lent"), [(0, 1, 0), (1, 0, 1)])
def test_spares_that_a_search_does_not_take_are_left(taken: int, left: int, lent: int) -> None:
    """Of the two spares one is free."""
    world, key, *_ = lent_spares()
    session = world.session()
    room = own_spares(session, world.view(key))
    [(_, run, column, row)] = room._spares
    with room.free():
        session.snapshot.free[:, column] -= row * taken
    assert [(each.node, each.count) for each in room.left] == [(run.node, 1)] * left
    assert [(each.node, each.count) for each in room.loans] == [(run.node, 1)] * lent


def test_who_leaves_at_once_may_run_on_spares() -> None:
    """Others wait. The lender's queue is charged for the seat all the same, and the node for the borrower alone."""
    world, key, _, other = lent_spares()
    assert len(spares(world, key)) == 2
    world.gang("c", {"worker": (1, GPU8)})
    assert not of(world.plan(), decisions.Place)
    assert world.state.ledger.queues.queues["default"].staying["nvidia.com/gpu"] == 5 * 8_000
    (place,) = [world.place(each) for each in _planned(world, borrower(world, "d", 1))]
    assert loans(world, "ns/d").keys() == set(slots(place)["worker"]) != loans(world, other).keys()


MARKS = [(names.PREEMPTABLE, "false"), (names.JDB_MIN_AVAILABLE, "100%"), (names.JDB_MAX_UNAVAILABLE, "none")]


@pytest.mark.parametrize(("mark", "value"), MARKS)
def test_who_may_not_be_evicted_borrows_nothing(mark: str, value: str) -> None:
    """One spare is free."""
    world, *_ = lent_spares()
    asks(world, key := borrower(world, "d", 1), value, mark)
    assert not _planned(world, key)


def _planned(world: World, key: str) -> list[decisions.Place]:
    return [place for place in of(world.session(*actions(world)), decisions.Place) if place.gang.key == key]


def actions(world: World) -> list[Any]:
    """What the planner does in a cycle, with spares taken back."""
    return [world.progress, Enqueue(), Allocate(), Recall()]


def lose(world: World, key: str, rank: int, node: str) -> None:
    """The node of a member is gone, and its pod made again."""
    world.state.on_pod(world.pod(key, "worker", rank, GPU8, node=node, phase="Failed"), None)
    world.state.on_node(world.state.nodes.nodes[world.state.nodes.index[node]], None)
    world.pod(key, "worker", rank, GPU8, gated=True, uid="again", name="again")


def test_a_spare_that_is_free_is_taken_before_one_that_is_lent() -> None:
    """Nobody is evicted."""
    world, key, nodes, other = lent_spares()
    lose(world, key, 1, nodes[1])
    (place,) = of(world.session(*actions(world)), decisions.Place)
    assert slots(place)["worker"][1] not in loans(world, other)
    assert not place.victims
    assert {each.node for each in place.spares} == loans(world, other).keys()


@pytest.mark.parametrize(("mark", "value"), [("app", "training"), *MARKS])
def test_borrowers_leave_when_the_lender_loses_a_member(mark: str, value: str) -> None:
    """All spares are lent: the member comes to one of them, and its borrower is the victim, also if it was marked."""
    world, key, nodes, other = lent_spares()
    second = borrower(world, "d", 1)
    world.start(second, GPU8)
    for each in (other, second):
        asks(world, each, value, mark)
    lose(world, key, 1, nodes[1])
    (place,) = of(world.session(*actions(world)), decisions.Place)
    victims = {victim.key for victim, _ in place.victims}
    assert len(victims) == 1
    assert victims < {other, second}
    why = "the gang runs on spare slots that a gang of queue default needs for members that it has lost"
    assert str(place.victims_reason) == why
    written = world.place(place)
    (gone,) = victims
    assert slots(written)["worker"][1] in loans(world, gone)
    world.state.on_pod(next(world.state.pod_objects[pod.uid] for _, pod in place.victims), None)
    world.room_is_there(world.session(world.progress))
    assert not world.state.placements[key].spec.victims


def test_a_lender_that_never_preempts_takes_its_spares_back() -> None:
    """What it keeps is its own, whatever its class says of others."""
    world, key, nodes, _ = lent_spares()
    world.start(borrower(world, "d", 1), GPU8)
    gentle = PriorityClass(metadata=world.meta("gentle", namespace=""), value=5, preemption_policy="Never")
    world.state.on_priority_class(None, gentle)
    world.change(world.state.groups[key], spec={"priority_class_name": "gentle"})
    lose(world, key, 1, nodes[1])
    assert not world.view(key).preempts
    assert len(only(world.session(*actions(world)), decisions.Place).victims) == 1
