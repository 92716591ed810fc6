"""Scores of nodes as numbers: Volcano's nodeorder and binpack with their weights, and densities."""

from typing import Any

import numpy as np
import pytest
from extender_world import World, where
from gpus_world import shares
from numpy.testing import assert_allclose

from extender.planner.configuration.knownplugins import PLUGINS
from extender.planner.plugins.nodeorder import WEIGHTS, Binpack, NodeOrder
from extender.planner.plugins.scores import (
    DENSITY,
    GpuPack,
    GpuSharingOrder,
    GpuSpread,
    NodeAvailability,
    NodePlacement,
    PodAffinityScore,
    ResourceType,
)
from muster.api.kubernetes.core import Taint

CPU16 = {"cpu": 16, "memory": "128Gi"}
GPU2 = {"nvidia.com/gpu": 2}
NOBODY = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "none"}}}


def scores(world: World, plugin: Any, requests: dict[str, Any], **spec: Any) -> list[float]:
    """The scores of the nodes for one pod."""
    world.plugins.append(plugin)
    key = world.gang("a", {"worker": (1, requests)}, spec=spec)
    session = world.session()
    cls = session.snapshot.gangs[[gang.key for gang in session.snapshot.gangs].index(key)].pod_sets[0].cls
    return [float(each) for each in session.scores(cls)[session.snapshot.order]]


def half_full() -> World:
    """node-0 is empty, on node-1 half of cpu and memory is used, on node-2 three quarters of the cpu."""
    world = World().nodes(3)
    world.pod("ns/x", "t", 0, CPU16, node="node-1", phase="Running")
    world.pod("ns/y", "t", 0, {"cpu": 24}, node="node-2", phase="Running")
    return world


def only(part: str, weight: float = 1) -> NodeOrder:
    """Nodeorder with one part."""
    return NodeOrder({f"{each}.weight": (weight if each == part else 0) for each in WEIGHTS})


@pytest.mark.parametrize(("plugin", "expected"), [
    (only("mostrequested"), [25, 75, 62.5]),
    (only("leastrequested"), [75, 25, 37.5]),
    (only("mostrequested", 3), [75, 225, 187.5]),
    (only("balancedresource"), [100, 100, 62.5]),
    (Binpack({}), [25, 75, 62.5]),
    (Binpack({"binpack.weight": "10", "binpack.memory": 0}), [250, 750, 1000]),
    (Binpack({"binpack.cpu": 3}), [25, 75, 81.25]),
])  # fmt: skip
def test_how_full_a_node_would_be(plugin: Any, expected: list[float]) -> None:
    """With the pod, of cpu and memory: a quarter of both, three quarters of both, all and a quarter."""
    assert_allclose(scores(half_full(), plugin, {"cpu": 8, "memory": "64Gi"}), expected)


@pytest.mark.parametrize(("plugin", "requests", "expected"), [
    pytest.param(NodePlacement({}), {"cpu": 8}, [0, 6, 9, 0], id="full nodes first"),
    pytest.param(NodePlacement({"cpu": "spread"}), {"cpu": 8}, [9, 4.5, 2.25, 9], id="empty nodes first"),
    pytest.param(NodePlacement({}), GPU2, [9, 0, 0, 0], id="full nodes first, by GPUs"),
    pytest.param(NodePlacement({"gpu": "spread"}), GPU2, [4.5, 9, 9, 0], id="empty nodes first, by GPUs"),
    pytest.param(GpuPack({}), GPU2, [1000, 0, 0, 0], id="gpupack"),
    pytest.param(GpuPack({}), {"cpu": 8}, [0, 0, 0, 0], id="gpupack without GPUs"),
    pytest.param(GpuSpread({}), GPU2, [500, 1000, 1000, 0], id="gpuspread"),
    pytest.param(NodeAvailability({}), {"cpu": 16}, [100, 100, 0, 100], id="room now"),
    pytest.param(NodeAvailability({}), {"cpu": 17}, [100, 0, 0, 100], id="no room now"),
    pytest.param(ResourceType({}), {"cpu": 8}, [0, 0, 0, 10], id="no GPUs on the node"),
    pytest.param(ResourceType({}), GPU2, [0, 0, 0, 0], id="GPUs wanted"),
])  # fmt: skip
def test_scores_by_density(plugin: Any, requests: dict[str, Any], expected: list[float]) -> None:
    """In their magnitudes; half of node-0's GPUs are used, and node-3 has none."""
    world = half_full()
    world.pod("ns/z", "t", 0, {"nvidia.com/gpu": 4}, node="node-0", phase="Running")
    world.node("node-3", gpus=0)
    assert_allclose(scores(world, plugin, requests), expected)


@pytest.mark.parametrize(("part", "expected"), [("0.5", [1000, 0, 0]), ("0.75", [1000, 0, 0]), ("0.8", [0, 0, 0])])
def test_parts_of_gpus_go_where_one_is_used_in_part(part: str, expected: list[float]) -> None:
    """If that has room for them."""
    world = World().nodes(3)
    shares(world, "x", 1, gpu_fraction="0.25")
    assert where(world.plan()) == {"x": ["node-0"]}
    world.plugins.append(GpuSharingOrder({}))
    key = shares(world, "a", 1, gpu_fraction=part)
    session = world.session()
    cls = world.view(key).pod_sets[0].cls
    assert_allclose(session.scores(cls)[session.snapshot.order], expected)


@pytest.mark.parametrize(("plugin", "sign"), [(GpuPack, 1), (GpuSpread, -1)])
def test_a_part_goes_to_the_gpu_that_is_used_most_or_least(plugin: type[GpuPack], sign: int) -> None:
    """Its use counts as the density of a node, so that larger magnitudes of other plugins decide."""
    world = World().nodes(1)
    world.plugins.append(plugin({}))
    key = shares(world, "a", 1, gpu_fraction="0.5")
    cls = world.view(key).pod_sets[0].cls
    found = world.session().hooks.gpu_order.call(cls, 0, np.array([0, 500, 1000]))
    assert_allclose(found, [0, sign * DENSITY / 2, sign * DENSITY])


def test_binpack_looks_at_listed_resources_only() -> None:
    """A node without room for one of them gets 0; one that is not listed does not count."""
    world = half_full()
    world.pod("ns/z", "t", 0, {"nvidia.com/gpu": 4}, node="node-0", phase="Running")
    listed = Binpack({"binpack.resources": "nvidia.com/gpu, example.com/foo", "binpack.resources.nvidia.com/gpu": 3})
    assert_allclose(scores(world, listed, {"cpu": 8, "nvidia.com/gpu": 2}), [62.5, 37.5, 43.75])
    assert_allclose(scores(half_full(), Binpack({}), {"cpu": 8, "nvidia.com/gpu": 2}), [25, 75, 100])
    assert_allclose(scores(half_full(), Binpack({}), {"cpu": 16}), [50, 100, 0])


def test_wishes_and_advice_about_nodes() -> None:
    """Preferred node affinity by its weights, and taints that only advise."""
    world = World().nodes(1, labels={"disk": "ssd"})
    world.node("node-1", labels={"disk": "hdd"}, taints=[])
    wish = {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]}
    other = {"matchExpressions": [{"key": "disk", "operator": "Exists"}]}
    nobody = {"matchExpressions": [{"key": "disk", "operator": "NotIn", "values": ["ssd", "hdd"]}]}
    wishes = ((30, wish), (10, other), (100, nobody))
    preferred = [{"weight": weight, "preference": each} for weight, each in wishes]
    affinity = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}
    assert_allclose(scores(world, only("nodeaffinity", 2), {"cpu": 1}, affinity=affinity), [200, 50])


@pytest.mark.parametrize(("tolerations", "expected"), [
    ([], [100, 50, 0]),
    ([{"key": "a", "operator": "Exists"}], [100, 100, 0]),
    ([{"key": "b", "operator": "Exists"}], [100, 0, 0]),
    ([{"operator": "Exists"}], [100, 100, 100]),
])  # fmt: skip
def test_nodes_with_fewer_taints_against_it_go_first(tolerations: list[dict[str, str]], expected: list[float]) -> None:
    """Of those that are not tolerated, in proportion to the most on a node; others refuse it."""
    world = World()
    for number, keys in enumerate(("", "a", "ab")):
        world.node(f"node-{number}", taints=[Taint(key=key, effect="PreferNoSchedule") for key in keys])
    assert_allclose(scores(world, only("tainttoleration"), {"cpu": 1}, tolerations=tolerations), expected)


def test_the_weights_of_nodeorder_are_volcanos() -> None:
    """As the table of all known names has them."""
    known = PLUGINS["nodeorder"].arguments
    assert {f"{part}.weight": weight for part, weight in WEIGHTS.items()} == {
        name: each.default for name, each in known.items() if not each.without
    }


@pytest.mark.parametrize(
    ("kind", "expected"), [("podAffinity", [0, 1, 0.5, 0, 0]), ("podAntiAffinity", [1, 0, 0.5, 1, 1])]
)
def test_preferred_affinity_counts_pods_by_domain(kind: str, expected: list[float]) -> None:
    """Weight times pods, from 0 for the lowest sum to 1 for the highest, each in its plugin's magnitude."""
    for plugin, most in ((PodAffinityScore({}), 100_000), (only("podaffinity", 2), 200)):
        world = World()
        for number, zone in enumerate(("a", "b", "c", "")):
            world.node(f"node-{number}", labels={"zone": zone} if zone else {})
        world.node("node-4", labels={"zone": "d"})
        for number, node in enumerate(("node-1", "node-1", "node-2")):
            world.pod("ns/x", "t", number, {"cpu": 1}, node=node, phase="Running", labels={"app": "cache"})
        world.pod("ns/y", "t", 0, {"cpu": 1}, node="node-0", phase="Running", labels={"app": "other"})
        term = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "cache"}}}
        wishes = [{"weight": 10, "podAffinityTerm": term}, {"weight": 5, "podAffinityTerm": NOBODY}]
        affinity = {kind: {"preferredDuringSchedulingIgnoredDuringExecution": wishes}}
        assert_allclose(scores(world, plugin, {"cpu": 1}, affinity=affinity), [most * each for each in expected])
