"""Domains that hold equally many pods of a gang: the nodes' scores decide, then what is left over."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypernode_world import hyper_node, named, within
from hypothesis import given, settings
from hypothesis import strategies as st
from topology_world import Racks, racks_of

from extender.planner.framework.registry import PlainPlugin
from extender.planner.framework.session import Session
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


@pytest.mark.parametrize("plugin", [None, GpuPack, GpuSpread])
def test_a_pair_goes_where_nodes_are_in_use(plugin: type[PlainPlugin] | None) -> None:
    """By what is left over, and never simply to the first; scores of nodes decide after that, as in Volcano."""
    world = two_hyper_nodes()
    world.plugins = [*world.plugins, *([plugin({})] if plugin else [])]
    assert set(racks_of(world.workers("pair", 2, 5, network=NetworkTopology(highest_tier_allowed=1)))) == {"b0r1"}


def eight_nodes(used: Sequence[int] = (0,) * 8) -> Racks:
    """Four pairs in two HyperNodes of tier 2, with so many GPUs in use on each node."""
    world = Racks(0, checked=False)
    for number, there in enumerate(used):
        world.node(f"n{number}")
        if there:
            other = world.asks(f"other-{number}", 1, there, phase="Running")
            world.pod(other, "worker", 0, {"nvidia.com/gpu": there}, node=f"n{number}", phase="Running")
    members = {f"pair-{pair}": named(f"n{2 * pair}", f"n{2 * pair + 1}") for pair in range(4)}
    members |= {f"four-{four}": within(f"pair-{2 * four}", f"pair-{2 * four + 1}") for four in range(2)}
    for name, inside in members.items():
        world.state.on_hyper_node(None, hyper_node(name, 1 if name.startswith("pair") else 2, inside))
    return world


@settings(max_examples=settings().max_examples * 2)
@given(
    used=st.lists(st.integers(0, 8), min_size=8, max_size=8), pods=st.integers(2, 8), gpus=st.integers(1, 5),
    plugin=st.sampled_from((None, GpuPack, GpuSpread)),
)  # fmt: skip
def test_the_hyper_node_that_is_used_most_comes_first(
    used: list[int], pods: int, gpus: int, plugin: type[PlainPlugin] | None
) -> None:
    """Volcano's score of HyperNodes: eight nodes in four pairs, of the lowest tier that holds the gang."""
    world = eight_nodes(used)
    world.plugins = [*world.plugins, *([plugin({})] if plugin else [])]
    nodes = [int(node[1:]) for node in world.workers("a", pods, gpus, network=NetworkTopology(highest_tier_allowed=2))]
    for size in (2, 4):
        domains = [range(first, first + size) for first in range(0, 8, size)]
        fitting = [each for each in domains if sum((8 - used[node]) // gpus for node in each) >= pods]
        if fitting:
            (mine,) = {node // size for node in nodes}
            assert sum(used[node] for node in domains[mine]) == max(
                sum(used[node] for node in each) for each in fitting
            )
            return
    assert not nodes


@pytest.mark.parametrize(("sizes", "nodes"), [
    ((2, 2), {2, 3}), ((1, 3), {1, 2, 3}), ((2, 3), {4, 5, 6}), ((1, 4), {4, 5, 6, 7}), ((1, 3, 2), {4, 5}),
    ((2, 1, 2), {4, 5}), ((2, 1, 3), {4, 5, 6}),
])  # fmt: skip
def test_a_gang_completes_the_domain_that_others_have_begun(sizes: tuple[int, ...], nodes: set[int]) -> None:
    """Volcano's case of four pairs in two domains of tier 2: one pod per node, and the last gang is asked for.

    What a pair does not hold goes to a domain of tier 2, to the one with the least left over that holds it.
    """
    world = eight_nodes()
    network = NetworkTopology(highest_tier_allowed=2)
    placed = [world.workers(f"g{number}", size, 8, network=network) for number, size in enumerate(sizes)]
    assert {int(node[1:]) for node in placed[-1]} == nodes


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


class LastNodes(PlainPlugin):
    """A plugin that prefers later nodes."""

    name = "last-nodes"

    def on_session_open(self, session: Session) -> None:
        """Score nodes by their number."""
        session.hooks.node_order.add(lambda _: np.arange(len(session.snapshot.nodes), dtype=np.float64))


def test_scores_choose_the_racks_of_a_gang_of_several() -> None:
    """Each holds two pods of three; the first one has the least left over."""
    world = Racks(0, checked=False, levels=["rack"])
    world.plugins = [*world.plugins, LastNodes({})]
    for number, room in enumerate((2, 2, 3, 3, 3, 3)):
        world.node(f"n{number}", gpus=room, cpu=64, labels={"rack": f"r{number // 2}"})
    assert sorted(world.workers("a", 3, 2, preferred="rack")) == ["n3", "n4", "n5"]
