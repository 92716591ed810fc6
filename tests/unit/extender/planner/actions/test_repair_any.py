"""Any gangs on any nodes with any faults: what holds for every repair."""

import random

import pytest
from extender_world import of
from repair_world import XID, RepairWorld

from extender.planner.actions.repair import SETTLE_S
from extender.planner.framework import decisions
from muster.api import names
from muster.api.muster.placement import nodes_of

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
    repairs = {repair.gang.key: repair for repair in of(session, decisions.Repair)}
    assert len(repairs) == len(of(session, decisions.Repair))
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
