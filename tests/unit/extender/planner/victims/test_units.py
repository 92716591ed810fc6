"""The parts of a gang that can be evicted, as far as its own budget and its minimum allow."""

import pytest
from victims_world import Cluster

from extender.planner.victims.units import Catalogue, units_of
from muster.api.names import JDB_MAX_UNAVAILABLE, JDB_MIN_AVAILABLE, PREEMPTABLE


def parts(minimum: int = 1, *, gone: int = 0, pods: int = 4, **annotations: str) -> list[tuple[list[int], bool]]:
    """The ranks of each piece of a gang of which some pods are gone, and whether it is the rest."""
    world = Cluster(1, checked=False)
    key = world.runs("a", pods, gpus=1, min_member=minimum, min_task_member={})
    for rank in range(pods - gone, pods):
        world.state.on_pod(world.state.pod_objects[f"uid-a-worker-{rank}"], None)
    if annotations:
        world.change(world.state.groups[key], annotations=annotations)
    session = world.session()
    [gang] = session.snapshot.gangs
    found = units_of(session.snapshot, gang, session.ask(gang).units)
    return [([pod.slot.rank for pod in each.pods if pod.slot], each.rest) for each in found]


@pytest.mark.parametrize(("minimum", "expected"), [
    (1, [([3], False), ([2], False), ([1], False), ([0], True)]),
    (3, [([3], False), ([0, 1, 2], True)]),
    (4, [([0, 1, 2, 3], True)]),
])  # fmt: skip
def test_pods_above_the_minimum_go_one_by_one_and_the_rest_together(
    minimum: int, expected: list[tuple[list[int], bool]]
) -> None:
    """The last ranks first."""
    assert parts(minimum) == expected


def test_a_gang_that_may_not_be_preempted_has_none() -> None:
    """Its own word is enough."""
    assert parts(**{PREEMPTABLE: "false"}) == []


@pytest.mark.parametrize(("name", "value", "gone", "pods"), [
    (JDB_MIN_AVAILABLE, "0", 0, 4), (JDB_MIN_AVAILABLE, "1", 0, 3), (JDB_MIN_AVAILABLE, "1", 1, 2),
    (JDB_MIN_AVAILABLE, "50%", 0, 2), (JDB_MIN_AVAILABLE, "30%", 0, 2), (JDB_MIN_AVAILABLE, "101%", 0, 0),
    (JDB_MIN_AVAILABLE, "100%", 0, 0), (JDB_MIN_AVAILABLE, "two", 0, 0), (JDB_MAX_UNAVAILABLE, "0", 0, 0),
    (JDB_MAX_UNAVAILABLE, "1", 0, 1), (JDB_MAX_UNAVAILABLE, "3", 1, 2), (JDB_MAX_UNAVAILABLE, "50%", 0, 2),
    (JDB_MAX_UNAVAILABLE, "30%", 0, 1), (JDB_MAX_UNAVAILABLE, "100%", 0, 4), (JDB_MAX_UNAVAILABLE, "two", 0, 0),
])  # fmt: skip
def test_a_gangs_own_budget_bounds_what_goes(name: str, value: str, gone: int, pods: int) -> None:
    """Percentages are of all its pods and protect more rather than less; what cannot be read protects everybody."""
    assert sum(len(ranks) for ranks, _ in parts(gone=gone, **{name: value})) == pods


def test_units_are_computed_once_until_the_gang_changes() -> None:
    """Each search of a cycle asks for those of all gangs."""
    world, catalogue = Cluster(1, checked=False), Catalogue()
    key = world.runs("a", 2, gpus=1)
    session = world.session()
    first = catalogue.units_of_gang(session, world.view(key))
    assert catalogue.units_of_gang(session, world.view(key)) is first
    world.state.on_pod(world.state.pod_objects["uid-a-worker-1"], None)
    session = world.session()
    assert len(first[0].pods) > len(catalogue.units_of_gang(session, session.snapshot.gangs[0])[0].pods)
