"""Any gangs on any nodes with any faults: what holds for every repair, also with spares of their own."""

import random

import pytest
from extender_world import of, only, slots
from repair_world import GPU8, XID, RepairWorld, placed
from topology_world import Racks

from extender.planner.actions.allocate import Allocate
from extender.planner.actions.repair import SETTLE_S, Repair
from extender.planner.framework import decisions
from muster.api import names
from muster.api.muster.noderuns import nodes_of
from muster.api.muster.placement import BorrowedSpares

POLICIES = ("", "wait", "replace", "restart")


def any_world(chance: random.Random) -> RepairWorld:
    """Gangs of some members, each on a node of its own, free nodes, and faults of all kinds."""
    world = RepairWorld()
    used = 0
    for number in range(chance.randint(1, 4)):
        members = chance.randint(1, 5)
        for rank in range(members):
            world.node(f"node-{used + rank}")
        said = {key: text for key, text in (("on_node_fault", chance.choice(POLICIES)),) if text}
        labels = {names.FRAMEWORK: chance.choice(["torch", "mpi"])} if chance.random() < 0.5 else {}
        world.runs(f"g{number}", members, used, least=chance.randint(1, members), labels=labels, **said)
        used += members
    for number in range(used, used + chance.randint(0, 4)):
        world.node(f"node-{number}")
    for number in range(used):
        if chance.random() < 0.3:
            dead = {"conditions": {"Ready": "Unknown"}, "since": world.now - 60}
            world.node(f"node-{number}", **chance.choice([{"conditions": XID}, dead]))
    return world


@pytest.mark.parametrize("seed", range(150))
def test_only_members_on_faulty_nodes_are_replaced_and_each_seat_is_planned_or_told(seed: int) -> None:
    """No two members get a node together, no new one is faulty, and nobody hears nothing."""
    world = any_world(random.Random(seed))  # noqa: S311 - chance for tests
    world.look()
    session = world.look(SETTLE_S)
    faults = session.snapshot.faults
    told = {why.gang.key for why in of(session, decisions.Unschedulable)}
    places = {place.gang.key: place for place in of(session, decisions.Place)}
    repairs = {repair.gang.key: repair for repair in of(session, decisions.EvictForFaults)}
    assert len(repairs) == len(of(session, decisions.EvictForFaults))
    taken = [pod.node for gang in session.snapshot.gangs for pod in gang.pods if pod.alive]
    for gang in session.snapshot.gangs:
        lost = {pod.uid for pod in gang.pods if pod.alive and pod.node in faults}
        repair = repairs.get(gang.key)
        gone = {pod.uid for pod in repair.pods} if repair else set()
        waits = gang.group.metadata.annotations.get(names.ON_NODE_FAULT) == "wait"
        if repair is None:
            assert not lost or waits or gang.key in told
            continue
        assert lost
        assert not waits
        if repair.policy == "replace":
            assert gone <= lost
            assert gone == lost or gang.key in told
        elif gang.key in places:
            assert gone == {pod.uid for pod in gang.pods if pod.alive}
        if gang.key in places:
            [placed] = places[gang.key].pod_sets
            nodes = nodes_of(placed.runs, range(len(gang.pods)))
            assert len(nodes) == len(gang.pods)
            assert not set(nodes.values()) & faults.keys()
            new = [node for rank, node in nodes.items() if node != gang.pods[rank].node]
            assert len(new) == len(lost)
            assert not set(new) & set(taken)
            taken += new


@pytest.mark.parametrize("policy", ["replace", "restart"])
def test_a_member_comes_to_a_spare(policy: str) -> None:
    """There is no other room; what it takes is kept no more."""
    world = RepairWorld().nodes(4)
    placed(world, "a", 2, keeps=("node-2", "node-3"), on_node_fault=policy)
    [place] = of(world.faults("node-1"), decisions.Place)
    node = slots(place)["worker"][1]
    assert node in {"node-2", "node-3"}
    assert place.spares is not None
    assert [each.node for each in place.spares] == [{"node-2": "node-3", "node-3": "node-2"}[node]]


def test_a_borrower_leaves_with_the_members() -> None:
    """Both are victims of one placement, so that the gang does not wait for a grace."""
    world = RepairWorld().nodes(3)
    key = placed(world, "a", 2, keeps=("node-2",), on_node_fault="restart")
    other = placed(
        world, "b", 1, 2, loans=(BorrowedSpares(world.state.groups[key].metadata.uid, "worker", "node-2", 1),)
    )
    [place] = of(world.faults("node-1"), decisions.Place)
    assert {(victim.key, pod.name) for victim, pod in place.victims} == {
        (key, "a-worker-0"), (key, "a-worker-1"), (other, "b-worker-0"),
    }  # fmt: skip
    assert slots(place)["worker"] == ["node-0", "node-2"]
    assert place.spares == []


def test_a_borrower_leaves_though_it_borrows_from_others_too() -> None:
    """One lent spare slot is the gang's own, the other one another gang's."""
    world = RepairWorld().nodes(5)
    key = placed(world, "a", 2, keeps=("node-3",), on_node_fault="restart")
    uids = [world.state.groups[each].metadata.uid for each in (key, placed(world, "c", 1, 2, keeps=("node-4",)))]
    loans = tuple(BorrowedSpares(uid, "worker", node, 1) for uid, node in zip(uids, ("node-3", "node-4"), strict=True))
    other = placed(world, "b", 2, 3, loans=loans)
    [place] = of(world.faults("node-1"), decisions.Place)
    assert {victim.key for victim, _ in place.victims} == {key, other}
    assert slots(place)["worker"] == ["node-0", "node-3"]


def test_who_borrows_nothing_of_the_gang_stays() -> None:
    """Free capacity for its members does not entitle the gang to it."""
    world = RepairWorld().nodes(3)
    placed(world, "a", 2, on_node_fault="restart")
    placed(world, "b", 1, 2)
    assert of(world.faults("node-1"), decisions.Place) == []


def test_nobody_else_takes_the_spare_meanwhile() -> None:
    """It is charged until the placement is written."""
    world = RepairWorld().nodes(3)
    placed(world, "a", 2, keeps=("node-2",))
    world.gang("late", {"worker": (1, GPU8)})
    assert of(world.session(Allocate()), decisions.Place) == []


def test_a_repair_whose_eviction_was_refused_is_tried_again() -> None:
    """Its placement waits for the gang's own members, whom nobody else has asked to move."""
    world = RepairWorld().nodes(4)
    key = placed(world, "a", 2)
    place = world.replaced("node-1")
    session = world.session(world.progress, world.repair)
    assert not of(session, decisions.ClosePlacement)
    [again] = of(session, decisions.EvictForFaults)
    assert (again.gang.key, again.epoch) == (key, place.epoch)
    world.now += 61
    [close] = of(world.session(world.progress, world.repair), decisions.ClosePlacement)
    assert close.message == "1 pod that had to leave the gang's nodes was not evicted in time"


def test_an_ended_member_comes_again_near_to_the_others() -> None:
    """Its own old seat does not count as one of them: all move to where there is room for all."""
    world = Racks(1, 2, 3)
    key = world.asks("a", 2, phase="Running", required="rack")
    world.restarts_whole(key)
    one = {"nvidia.com/gpu": 8}
    world.pod(key, "worker", 0, one, node="b0r0n0", phase="Running")
    world.pod(key, "worker", 1, one, node="b0r0n1", phase="Succeeded")
    world.pod(world.asks("b", 1, phase="Running"), "worker", 0, one, node="b0r0n1", phase="Running")
    world.node("b0r0n0", cpu=64, labels={"block": "b0", "rack": "r0", "host": "b0r0n0"}, conditions=XID)
    repair = Repair()
    world.session(repair)
    world.now += SETTLE_S
    assert slots(only(world.session(repair), decisions.Place)) == {"worker": ["b0r1n0", "b0r1n1"]}


@pytest.mark.parametrize(("wishes", "expected"), [
    ({"required": "block", "preferred": "rack"}, "b0r1n0"),
    ({"required": "rack"}, ""),
    ({"preferred": "rack"}, "b0r1n0"),
])  # fmt: skip
def test_a_replacement_is_as_near_as_the_gang_demands(wishes: dict[str, str], expected: str) -> None:
    """In its domain, else in the next larger one that is allowed; where none is, the member stays."""
    world = Racks(2, 2, 2)
    key = world.asks("a", 2, phase="Running", **wishes)
    world.members(key, len(("b0r0n0", "b0r0n1")), {"nvidia.com/gpu": 8}, node=("b0r0n0", "b0r0n1"), phase="Running")
    world.node("b0r0n1", cpu=64, labels={"block": "b0", "rack": "r0", "host": "b0r0n1"}, conditions=XID)
    repair = Repair()
    world.session(repair)
    world.now += SETTLE_S
    places = of(world.session(repair), decisions.Place)
    assert [slots(place)["worker"][1] for place in places] == [expected] * bool(expected)
