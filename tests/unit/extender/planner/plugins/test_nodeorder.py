"""Scores of nodeorder and binpack: Volcano's, with their weights."""

from typing import Any

import pytest
from extender_world import World
from numpy.testing import assert_allclose

from extender.planner.plugins.nodeorder import WEIGHTS, Binpack, NodeOrder

CPU16 = {"cpu": 16, "memory": "128Gi"}


def scores(world: World, plugin: Any, requests: dict[str, Any], **spec: Any) -> list[float]:
    """The scores of the nodes for one pod."""
    world.plugins.append(plugin)
    key = world.gang("a", {"worker": (1, requests)}, spec=spec)
    session = world.session()
    cls = session.snapshot.gangs[[gang.key for gang in session.snapshot.gangs].index(key)].pod_sets[0].cls
    assert cls is not None
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


@pytest.mark.parametrize(
    ("plugin", "expected"),
    [
        (only("mostrequested"), [25, 75, 62.5]),
        (only("leastrequested"), [75, 25, 37.5]),
        (only("mostrequested", 3), [75, 225, 187.5]),
        (only("balancedresource"), [100, 100, 62.5]),
        (Binpack({}), [25, 75, 62.5]),
        (Binpack({"binpack.weight": "10", "binpack.memory": 0}), [250, 750, 1000]),
        (Binpack({"binpack.cpu": 3}), [25, 75, 81.25]),
    ],
)
def test_how_full_a_node_would_be(plugin: Any, expected: list[float]) -> None:
    """With the pod, of cpu and memory: a quarter of both, three quarters of both, all and a quarter."""
    assert_allclose(scores(half_full(), plugin, {"cpu": 8, "memory": "64Gi"}), expected)


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
    preferred = [{"weight": 30, "preference": wish}, {"weight": 10, "preference": other}]
    affinity = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}
    assert_allclose(scores(world, only("nodeaffinity", 2), {"cpu": 1}, affinity=affinity), [200, 50])


@pytest.mark.parametrize(
    "arguments", [{"leastrequested": 1}, {"mostrequested.weight": "many"}, {"nodeaffinity.weight": -1}]
)
def test_arguments_are_checked(arguments: dict[str, Any]) -> None:
    """Names and numbers."""
    with pytest.raises(ValueError, match="nodeorder"):
        NodeOrder(arguments)
