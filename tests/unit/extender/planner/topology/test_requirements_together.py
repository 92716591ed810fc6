"""What is required in two places, or beside a wish, holds in both; else the gang waits and is told."""

from collections.abc import Mapping

import pytest
from extender_world import of
from hypernode_world import hyper_node, matching
from topology_world import Racks, racks_of

from extender.planner.framework import decisions
from extender.planner.framework.session import Session
from muster.api import names
from muster.api.volcano.scheduling import NetworkTopology, SubGroupPolicy

SLICE_LEVEL, SLICE_SIZE = "muster.dev/topology-slice-required", "muster.dev/topology-slice-size"
KUEUE = "kueue.x-k8s.io/podset-required-topology"
REQUIRED = "muster.dev/topology-required"


def waits(session: Session, key: str) -> str:
    """The words to a gang that waits."""
    return next(each.message for each in of(session, decisions.Unschedulable) if each.gang.key == key)


def switches(world: Racks) -> None:
    """A HyperNode for each rack."""
    for rack in sorted({each.metadata.name[:4] for each in world.state.nodes.nodes if each}):
        world.state.on_hyper_node(None, hyper_node(rack, 1, matching(f"^{rack}"), "leaf"))


@pytest.mark.parametrize("topology", [{"muster.dev/topology": "default"}, {"muster.dev/topology-preferred": "host"}])
def test_what_kueues_annotations_require_holds_beside_ours(topology: Mapping[str, str]) -> None:
    """The name of a topology, or a wish, does not drop the requirement."""
    world = Racks(1, 2, 2)
    key = world.asks("a", 3, 8, template={KUEUE: "rack", **topology})
    assert "must be in one domain of level rack" in waits(world.plan(), key)


def test_network_topology_and_annotations_both_hold() -> None:
    """On one PodGroup, and as partitions beside slices."""
    world = Racks(2, 2, 2)
    switches(world)
    key = world.asks("a", 3, 8, required="rack", network=NetworkTopology(mode="soft"))
    assert "must be in one domain of level rack" in waits(world.plan(), key)
    policy = SubGroupPolicy(name="worker", sub_group_size=4, network_topology=NetworkTopology(highest_tier_allowed=1))
    both = world.asks("b", 8, 4, policies=[policy], template={SLICE_LEVEL: "host", SLICE_SIZE: "2"})
    world.plan()
    nodes = world.placed(both)["worker"]
    assert [len(set(racks_of(nodes[first : first + 4]))) for first in (0, 4)] == [1, 1]
    assert [len(set(nodes[first : first + 2])) for first in (0, 2, 4, 6)] == [1, 1, 1, 1]


def test_partitions_and_slices_that_cross_are_told() -> None:
    """Neither size divides the other: nobody has to guess which one counts."""
    world = Racks(2, 2, 2)
    policy = SubGroupPolicy(name="worker", sub_group_size=4, network_topology=NetworkTopology(highest_tier_allowed=1))
    key = world.asks("a", 12, 1, policies=[policy], template={SLICE_LEVEL: "rack", SLICE_SIZE: "6"})
    assert "together by 6 and by 4" in waits(world.plan(), key)


def test_each_wish_of_a_group_is_about_all_of_it() -> None:
    """A leader that names a block and workers that name a rack are in one rack."""
    world = Racks(1, 2, 2)
    key = world.gang("a", {"leader": (1, {"nvidia.com/gpu": 8}), "worker": (2, {"nvidia.com/gpu": 8})})
    group = {"muster.dev/topology-group": "g"}
    world.annotate_templates(key, {"leader": {REQUIRED: "block", **group}, "worker": {REQUIRED: "rack", **group}})
    assert "must be in one domain of level rack" in waits(world.plan(), key)


def pairs(world: Racks, said: Mapping[str, str]) -> str:
    """A gang of four pods in two pairs by label, whose template says this."""
    policy = SubGroupPolicy(
        name="pairs", match_label_keys=["pair"], network_topology=NetworkTopology(highest_tier_allowed=1)
    )
    key = world.asks("a", 4, 4, policies=[policy], template=said)
    for rank in range(4):
        noted = {names.GROUP_NAME: "a", names.TASK_SPEC: "worker", names.TASK_INDEX: str(rank), **said}
        labels = {"pair": str(rank % 2)}
        world.pod(key, "worker", rank, {"nvidia.com/gpu": 4}, gated=True, labels=labels, annotations=noted)
    return key


def test_sub_groups_by_labels_keep_what_their_template_requires() -> None:
    """Pairs under one leaf, and all pods of the template in one block, of which each has room for one pair."""
    world = Racks(2, 2, 1)
    switches(world)
    for block, rack in ((0, 1), (1, 0)):
        world.rack_node(block, rack, 0, gpus=0)
    key = pairs(world, {REQUIRED: "block"})
    assert "must be in one domain of level block" in waits(world.plan(), key)
    world.rack_node(0, 1, 0, gpus=8)
    world.plan()
    nodes = world.placed(key)["worker"]
    assert {node[:2] for node in nodes} == {"b0"}
    assert (nodes[0], nodes[1]) == (nodes[2], nodes[3])


def test_sub_groups_by_labels_and_slices_that_may_cross_are_told() -> None:
    """Ranks of a slice may be of different sub-groups."""
    world = Racks(2, 2, 1)
    switches(world)
    key = pairs(world, {SLICE_LEVEL: "rack", SLICE_SIZE: "2"})
    assert "as subGroupPolicy says by labels" in waits(world.plan(), key)
