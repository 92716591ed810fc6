"""Nodes with MIG devices take no parts of GPUs by annotation."""

from typing import Any

import pytest
from extender_world import World, cluster_of, of, only, slots
from gpus_world import divided, shares

from extender.planner.framework.decisions import Place, Unschedulable
from extender.planner.plugins.order import GangPlugin
from extender.verbs.filter import Filter
from muster.api.kubernetes.extender import ExtenderArgs

MIXED = {"nvidia.com/gpu": 4, "nvidia.com/mig-1g.5gb": 7}
ONLY = {"nvidia.com/mig-1g.5gb": 7}
SINGLE = {"nvidia.com/gpu": 7}
PRODUCT = {"nvidia.com/gpu.product": "A100-SXM4-40GB-MIG-1g.5gb", "nvidia.com/gpu.memory": "4864"}


@pytest.mark.parametrize("part", [{"gpu_fraction": "0.5"}, {"gpu_memory": "1000"}])
@pytest.mark.parametrize(("gpus", "labels"), [(MIXED, {}), (ONLY, {}), (SINGLE, PRODUCT), (MIXED, PRODUCT)])
@pytest.mark.parametrize("plugins", [None, [GangPlugin({})]])
def test_parts_of_gpus_are_not_placed_on_divided_ones(
    part: dict[str, str], gpus: dict[str, int], labels: dict[str, str], plugins: list[Any] | None
) -> None:
    """Whatever is configured; they go to a node with whole GPUs."""
    world = World()
    world.plugins = world.plugins if plugins is None else plugins
    divided(world, "node-0", gpus, labels)
    shares(world, "a", 1, **part)
    session = world.plan()
    assert not of(session, Place)
    if plugins is None:
        assert "GPUs divided by MIG" in only(session, Unschedulable).message
    world.node("node-1", labels={"nvidia.com/gpu.memory": "40000"})
    assert slots(only(world.plan(), Place)) == {"worker": ["node-1"]}


def test_a_pod_without_a_gang_is_kept_off_them() -> None:
    """By the filter verb."""
    world = World()
    divided(world, "node-0", MIXED)
    world.node("node-1")
    pod = world.pod("ns/none", "worker", 0, {"cpu": 1}, annotations={"gpu-fraction": "0.5"})
    call = ExtenderArgs(pod=pod, node_names=["node-0", "node-1"])
    assert Filter(cluster_of(world), active=lambda: True)(call).node_names == ["node-1"]


def test_whole_gpus_beside_divided_ones_are_given() -> None:
    """And MIG devices by their resource."""
    world = World()
    divided(world, "node-0", MIXED)
    world.gang("whole", {"worker": (4, {"nvidia.com/gpu": 1})})
    world.gang("slice", {"worker": (7, {"nvidia.com/mig-1g.5gb": 1})})
    assert len(of(world.plan(), Place)) == 2
