"""Domains that hold equally many pods of a gang: the nodes' scores decide, then what is left over."""

import pytest
from hypernode_world import hyper_node, named
from hypothesis import given, settings
from hypothesis import strategies as st
from topology_world import Racks, racks_of

from extender.planner.framework.registry import PlainPlugin
from extender.planner.plugins.scores import GpuPack, GpuSpread
from muster.api.volcano.scheduling import NetworkTopology, SubGroupPolicy


def two_hyper_nodes() -> Racks:
    """Two nodes in each; of one GPUs are used, though as many pods of five fit."""
    world = Racks(0)
    for rack in (0, 1):
        for number in (0, 1):
            world.rack_node(0, rack, number)
        names = [f"b0r{rack}n{number}" for number in (0, 1)]
        world.state.on_hyper_node(None, hyper_node(f"leaf-{rack}", 1, named(*names)))
    other = world.asks("other", 1, 3, phase="Running")
    world.pod(other, "worker", 0, {"nvidia.com/gpu": 3}, node="b0r1n0", phase="Running")
    return world


@pytest.mark.parametrize(("plugin", "rack"), [(None, "b0r1"), (GpuPack, "b0r1"), (GpuSpread, "b0r0")])
def test_a_pair_goes_where_nodes_are_in_use(plugin: type[PlainPlugin] | None, rack: str) -> None:
    """Without scores by what is left over, and never simply to the first; scores decide before that."""
    world = two_hyper_nodes()
    world.plugins = [*world.plugins, *([plugin({})] if plugin else [])]
    assert set(racks_of(world.workers("pair", 2, 5, network=NetworkTopology(highest_tier_allowed=1)))) == {rack}


def test_slices_go_where_nodes_are_in_use() -> None:
    """So do partitions of a task, each of which could go into any HyperNode."""
    world = two_hyper_nodes()
    policy = SubGroupPolicy(name="worker", sub_group_size=2, network_topology=NetworkTopology(highest_tier_allowed=1))
    assert set(racks_of(world.workers("pair", 2, 5, policies=[policy]))) == {"b0r1"}


@settings(max_examples=settings().max_examples * 2)
@given(
    rooms=st.lists(st.integers(0, 8), min_size=8, max_size=8), pods=st.integers(1, 4), gpus=st.integers(2, 5),
    plugin=st.sampled_from((None, GpuPack, GpuSpread)),
)  # fmt: skip
def test_the_tightest_then_the_best_then_the_fullest_domain(
    rooms: list[int], pods: int, gpus: int, plugin: type[PlainPlugin] | None
) -> None:
    """Racks are compared one by one here."""
    world = Racks(0, checked=False, levels=["rack"])
    if plugin:
        world.plugins = [*world.plugins, plugin({})]
    for number, room in enumerate(rooms):
        world.node(f"n{number}", gpus=room, cpu=64, labels={"rack": f"r{number // 2}"})
    key = world.asks("a", pods, gpus, required="rack")
    world.plan()
    placed = world.placed(key).get("worker", [])
    keys = {}
    for rack in range(4):
        own = rooms[2 * rack : 2 * rack + 2]
        held = sum(room // gpus for room in own)
        full = sum((8 - room) * (room // gpus) for room in own)  # all nodes are as they were made: none is in use
        best = {None: 0, GpuPack: -full, GpuSpread: -held}[plugin]
        if held >= pods:
            keys[rack] = held, best, sum(own), rack
    assert {int(node[1:]) // 2 for node in placed} == ({min(keys, key=keys.__getitem__)} if keys else set())
