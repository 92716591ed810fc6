"""Slices of gangs that run: they grow and are repaired as a whole, or wait."""

from collections.abc import Iterable, Mapping
from typing import Any

import pytest
from extender_world import of
from hypothesis import given, settings
from hypothesis import strategies as st
from topology_world import Racks, racks_of, racks_with

from extender.planner.framework import decisions
from muster.api.kubernetes.core import Pod
from muster.api.volcano.scheduling import NetworkTopology, SubGroupPolicy

WHOLE_NODE = {"nvidia.com/gpu": 8}
PAIRS = {"muster.dev/topology-slice-required": "rack", "muster.dev/topology-slice-size": "2"}


def slices_of(size: int) -> dict[str, str]:
    """Annotations of a template."""
    return PAIRS | {"muster.dev/topology-slice-size": str(size)}


def member(world: Racks, key: str, rank: int, said: Mapping[str, str], **more: Any) -> Pod:
    """A pod, with the annotations of its template."""
    slot = {
        "scheduling.k8s.io/group-name": key.partition("/")[2],
        "volcano.sh/task-spec": "worker",
        "volcano.sh/task-index": str(rank),
    }
    return world.pod(key, "worker", rank, WHOLE_NODE, annotations={**slot, **said}, **more)


def run(world: Racks, key: str, nodes: list[str], said: Mapping[str, str]) -> None:
    """The placed pods start."""
    for rank, node in enumerate(nodes):
        pinned = {"muster.dev/node": node, "muster.dev/epoch": "1"}
        member(world, key, rank, {**said, **pinned}, node=node, pin=node, epoch=1, phase="Running")
    world.close(world.plan())


def grown(
    world: Racks, key: str, before: int, after: int, said: Mapping[str, str], *, born: Iterable[int] = ()
) -> list[str]:
    """The nodes after the gang has been scaled, and those pods are there (all new ones, unless said)."""
    world.scale(key, "worker", after)
    for rank in born or range(before, after):
        member(world, key, rank, said, gated=True)
    world.plan()
    return [node for node in world.placed(key)["worker"] if node]


def started(racks: Iterable[int], pods: int, said: Mapping[str, str], **more: Any) -> tuple[Racks, str]:
    """Racks with so many empty nodes, and a gang that runs in them."""
    world = racks_with(*racks)
    key = world.asks("a", pods, 8, phase="Running", template=said, **more)
    world.plan()
    run(world, key, world.placed(key)["worker"], said)
    return world, key


def test_a_new_slice_goes_where_it_is_whole() -> None:
    """Beside the others there is room for half of it."""
    world, key = started((3, 4), 2, PAIRS)
    assert set(racks_of(world.placed(key)["worker"])) == {"b0r0"}
    assert racks_of(grown(world, key, 2, 4, PAIRS)) == ["b0r0", "b0r0", "b0r1", "b0r1"]


def test_a_new_slice_without_room_waits_as_a_whole() -> None:
    """Half of it would be of no use, and could not be completed."""
    world, key = started((3, 1), 2, PAIRS)
    assert len(grown(world, key, 2, 4, PAIRS)) == 2


PARTITIONS = SubGroupPolicy(name="worker", sub_group_size=2, network_topology=NetworkTopology(highest_tier_allowed=1))


@pytest.mark.parametrize(("said", "policies"), [(PAIRS, []), ({}, [PARTITIONS])], ids=["slices", "partitions"])
def test_a_slice_waits_for_all_of_its_pods(said: Mapping[str, str], policies: list[SubGroupPolicy]) -> None:
    """The first of them could take a rack that does not hold the others."""
    world, key = started((2, 3), 2, said, policies=policies)
    assert len(grown(world, key, 2, 4, said, born=[2])) == 2
    member(world, key, 3, said, gated=True)
    world.plan()
    assert len([node for node in world.placed(key)["worker"] if node]) == 4


def test_a_slice_is_repaired_as_a_whole() -> None:
    """One that lost all of its pods is placed where there is room for all of them, not for one here and there."""
    world, key = started((2, 2, 1, 1), 4, PAIRS)
    nodes = world.placed(key)["worker"]
    for rank in (2, 3):
        world.state.on_pod(member(world, key, rank, PAIRS, node=nodes[rank], phase="Failed"), None)
        world.node(nodes[rank], gpus=0, labels={"rack": "r9"})
        member(world, key, rank, PAIRS, gated=True)
    assert not of(world.plan(), decisions.Place)
    world.rack_node(0, 3, 1)
    world.plan()
    assert racks_of(world.placed(key)["worker"][2:]) == ["b0r3", "b0r3"]


@settings(max_examples=settings().max_examples // 2)
@given(racks=st.lists(st.integers(0, 5), min_size=1, max_size=3), size=st.integers(2, 3), more=st.integers(1, 2))
def test_slices_are_never_cut(racks: list[int], size: int, more: int) -> None:
    """Whatever room there is, members that are added come by whole slices, as many as fit."""
    said = slices_of(size)
    world, key = started((size, *racks), size, said)
    after = grown(world, key, size, size * (1 + more), said)
    fits = sum(count // size for count in (size, *racks))
    assert len(after) == size * min(1 + more, fits)
    placed = world.placed(key)["worker"]
    for first in range(0, len(placed), size):
        assert len(set(racks_of(placed[first : first + size]))) == 1
