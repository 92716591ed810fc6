"""Victims and reservations: a gang at the head of its queue is not in its own way."""

import pytest
from extender_world import of
from hypothesis import given, settings
from hypothesis import strategies as st
from victims_world import Cluster, victims

from extender.planner.actions.displace import Preempt
from extender.planner.framework.decisions import Place, Reserve
from extender.planner.plugins.order import Reservations

PATIENCE_S = 600.0


def one_node(*, patient: bool) -> tuple[Cluster, str]:
    """A node with four small gangs, and a gang for half of it that has waited for long, unless it is `patient`."""
    world = Cluster(1)
    world.plugins = [Reservations({}), *world.plugins]
    for number in range(4):
        world.runs(f"low{number}", 1, gpus=2)
    asker = world.asks("high", 2, gpus=2)
    world.now += 0.0 if patient else 2 * PATIENCE_S
    return world, asker


@pytest.mark.parametrize("patient", [True, False])
def test_a_new_reservation_is_not_in_the_way_of_its_own_gang(patient: bool) -> None:  # noqa: FBT001 - pytest's way
    """Two pods need the room of two, also in the cycle in which their gang becomes the head."""
    world, asker = one_node(patient=patient)
    session = world.cycle()
    assert [place.gang.key for place in of(session, Place)] == [asker]
    assert len(victims(session)) == 2


def test_nothing_is_reserved_any_more_once_victims_go() -> None:
    """Else the room of the gang would be kept twice in this cycle, and from pods without a gang after it."""
    world, _ = one_node(patient=False)
    session = world.cycle()
    assert not of(session, Reserve)
    assert not session.reserved_rooms


@settings(max_examples=settings().max_examples * 3 // 5)
@given(
    gpus=st.sampled_from([1, 2, 4]),
    pods=st.integers(1, 4),
    asked=st.sampled_from([1, 2, 4, 8]),
    waited=st.booleans(),
)
def test_reservations_cost_no_victims(gpus: int, pods: int, asked: int, waited: bool) -> None:  # noqa: FBT001
    """With one gang that waits, as many go with reservations as without any, however long it has waited."""
    counts = []
    for mode in ("reserve", "besteffort"):
        world = Cluster(3)
        world.actions = [Preempt()]
        world.plugins = [Reservations({"mode": mode}), *world.plugins]
        for number in range(24 // gpus):
            world.runs(f"low{number}", 1, gpus=gpus, first=number * gpus // 8)
        world.asks("high", pods, gpus=asked)
        world.now += 2 * PATIENCE_S * waited
        counts.append(len(victims(world.cycle())))
    assert counts[0] == counts[1]
