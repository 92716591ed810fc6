"""Members on faulty nodes come to the gang's own spares, whoever runs there."""

import pytest
from extender_world import of, slots
from repair_world import GPU8, XID, RepairWorld, placed

from extender.planner.actions.allocate import Allocate
from extender.planner.actions.repair import SETTLE_S
from extender.planner.framework import decisions
from muster.api.muster.placement import (
    Loan,
)


@pytest.mark.parametrize("policy", ["replace", "restart"])
def test_a_member_comes_to_a_spare(policy: str) -> None:
    """There is no other room; what it takes is kept no more."""
    world = RepairWorld()
    world.nodes(4)
    placed(world, "a", 2, keeps=("node-2", "node-3"), on_node_fault=policy)
    world.node("node-1", conditions=XID)
    world.look()
    [place] = of(world.look(SETTLE_S), decisions.Place)
    node = slots(place)["worker"][1]
    assert node in {"node-2", "node-3"}
    assert place.spares is not None
    assert [each.node for each in place.spares] == [{"node-2": "node-3", "node-3": "node-2"}[node]]


def test_a_borrower_leaves_with_the_members() -> None:
    """Both are victims of one placement, so that the gang does not wait for a grace."""
    world = RepairWorld()
    world.nodes(3)
    key = placed(world, "a", 2, keeps=("node-2",), on_node_fault="restart")
    loan = Loan(world.state.groups[key].metadata.uid, "worker", "node-2", 1)
    other = placed(world, "b", 1, 2, loans=(loan,))
    world.node("node-1", conditions=XID)
    world.look()
    [place] = of(world.look(SETTLE_S), decisions.Place)
    assert {(victim.key, pod.name) for victim, pod in place.victims} == {
        (key, "a-worker-0"), (key, "a-worker-1"), (other, "b-worker-0"),
    }  # fmt: skip
    assert slots(place)["worker"] == ["node-0", "node-2"]
    assert place.spares == []


def test_nobody_else_takes_the_spare_meanwhile() -> None:
    """It is charged until the placement is written."""
    world = RepairWorld()
    world.nodes(3)
    placed(world, "a", 2, keeps=("node-2",))
    world.gang("late", {"worker": (1, GPU8)})
    assert of(world.session(Allocate()), decisions.Place) == []


def test_a_repair_whose_eviction_was_refused_is_tried_again() -> None:
    """Its placement waits for the gang's own members, whom nobody else has asked to move."""
    world = RepairWorld()
    world.nodes(4)
    key = placed(world, "a", 2)
    world.node("node-1", conditions=XID)
    world.look()
    [place] = of(world.look(SETTLE_S), decisions.Place)
    world.place(place)
    session = world.session(world.progress, world.repair)
    assert not of(session, decisions.ClosePlacement)
    [again] = of(session, decisions.Repair)
    assert (again.gang.key, again.epoch) == (key, place.epoch)
    world.now += 61
    [close] = of(world.session(world.progress, world.repair), decisions.ClosePlacement)
    assert close.message == "1 pods that had to go for it were not evicted in time"
