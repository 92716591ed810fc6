"""What a gang requires of its nodes holds under every configuration, whatever trees its levels are in.

What is required in two places, or beside a wish, holds in both; else the gang waits and is told.
"""

import json
from collections.abc import Mapping
from typing import Any

import pytest
from extender_world import of, waiting
from hypernode_world import hyper_node, matching
from hypothesis import given, settings
from hypothesis import strategies as st
from topology_world import Racks, racks_of

from extender.planner.cycle import parts_of
from extender.planner.framework import config, decisions
from muster.api import names
from muster.api.volcano.scheduling import NetworkTopology, SubGroupPolicy

LEAF = NetworkTopology(highest_tier_allowed=1)
KUEUE = "kueue.x-k8s.io/podset"
OURS, SLICE_LEVEL, SLICE_SIZE = (f"muster.dev/topology-{each}" for each in ("required", "slice-required", "slice-size"))
PAIRS = {f"{KUEUE}-slice-required-topology": "host", f"{KUEUE}-slice-size": "2"}
REQUIRED = {f"{KUEUE}-required-topology": "rack"}
OTHER = {"pod": ["block", "host"]}
"""Another topology, which has the innermost level of the first one, too."""


def switches(world: Racks) -> None:
    """A HyperNode for every rack."""
    for rack in sorted({each.metadata.name[:4] for each in world.state.nodes.nodes if each}):
        world.state.on_hyper_node(None, hyper_node(f"leaf-{rack}", 1, matching(f"^{rack}")))


def half_used(world: Racks) -> Racks:
    """A pod takes half of the first node, so that one more fits beside it, and a pair does not."""
    filler = world.asks("filler", 1, 4)
    world.plan()
    assert world.placed(filler)["worker"] == ["b0r0n0"]
    return world


@pytest.mark.parametrize("said", [
    PAIRS,
    PAIRS | REQUIRED,
    PAIRS | {"muster.dev/topology": "pod", "muster.dev/topology-required": "block"},
    PAIRS | {"muster.dev/topology": "pod"} | {f"{KUEUE}-required-topology": "block"},
    REQUIRED | {f"{KUEUE}-slice-required-topology": "cable", f"{KUEUE}-slice-size": "2"},
    {f"{KUEUE}-slice-required-topology-constraints": json.dumps([{"topology": "host", "size": 2}])} | REQUIRED,
], ids=["alone", "in a rack", "a level of another tree", "Kueue's there", "a label outside", "as layers"])  # fmt: skip
def test_pairs_share_a_node(said: dict[str, str]) -> None:
    """The level of a slice is in the part's own tree, in another one, or in none; a pair is never split."""
    world = Racks(1, 1, 0, topologies=OTHER)
    for number in range(2):
        name = f"b0r0n{number}"
        world.node(name, gpus=8, cpu=64, labels={"block": "b0", "rack": "r0", "host": name, "cable": name})
    half_used(world)
    assert world.workers("a", 2, 4, template=said) == ["b0r0n1", "b0r0n1"]


def test_a_layer_that_no_node_has_keeps_the_gang_waiting_and_is_told() -> None:
    """Neither it nor the layer around it is dropped."""
    world = Racks(1, 1, 2)
    layers = [{"topology": "rack", "size": 2}, {"topology": "hots", "size": 2}]
    world.asks("a", 2, 4, template={f"{KUEUE}-slice-required-topology-constraints": json.dumps(layers)})
    assert "hots" in waiting(world.plan())["a"][1]


def test_partitions_in_hyper_nodes_within_a_rack_of_labels() -> None:
    """The sub-groups of a PodGroup are about HyperNodes, whatever tree the gang is in."""
    world = Racks(1, 2, 2)
    switches(world)
    policy = SubGroupPolicy(name="worker", sub_group_size=2, network_topology=LEAF)
    racks = racks_of(world.workers("a", 4, 8, template={f"{KUEUE}-required-topology": "block"}, policies=[policy]))
    assert (racks[0], racks[2]) == (racks[1], racks[3])


@pytest.mark.parametrize("topology", [{"muster.dev/topology": "default"}, {"muster.dev/topology-preferred": "host"}])
def test_what_kueues_annotations_require_holds_beside_ours(topology: Mapping[str, str]) -> None:
    """The name of a topology, or a wish, does not drop the requirement."""
    world = Racks(1, 2, 2)
    world.asks("a", 3, 8, template={**REQUIRED, **topology})
    assert "must be in one domain of level rack" in waiting(world.plan())["a"][1]


def test_network_topology_and_annotations_both_hold() -> None:
    """On one PodGroup, and as partitions beside slices."""
    world = Racks(2, 2, 2)
    switches(world)
    world.asks("a", 3, 8, required="rack", network=NetworkTopology(mode="soft"))
    assert "must be in one domain of level rack" in waiting(world.plan())["a"][1]
    policy = SubGroupPolicy(name="worker", sub_group_size=4, network_topology=LEAF)
    both = world.asks("b", 8, 4, policies=[policy], template={SLICE_LEVEL: "host", SLICE_SIZE: "2"})
    world.plan()
    nodes = world.placed(both)["worker"]
    assert [len(set(racks_of(nodes[first : first + 4]))) for first in (0, 4)] == [1, 1]
    assert [len(set(nodes[first : first + 2])) for first in (0, 2, 4, 6)] == [1, 1, 1, 1]


def test_partitions_and_slices_that_cross_are_told() -> None:
    """Neither size divides the other: nobody has to guess which one counts."""
    world = Racks(2, 2, 2)
    policy = SubGroupPolicy(name="worker", sub_group_size=4, network_topology=LEAF)
    world.asks("a", 12, 1, policies=[policy], template={SLICE_LEVEL: "rack", SLICE_SIZE: "6"})
    assert "grouped by 6 and by 4" in waiting(world.plan())["a"][1]


def test_each_wish_of_a_group_is_about_all_of_it() -> None:
    """A leader that names a block and workers that name a rack are in one rack."""
    world = Racks(1, 2, 2)
    key = world.gang("a", {"leader": (1, {"nvidia.com/gpu": 8}), "worker": (2, {"nvidia.com/gpu": 8})})
    group = {"muster.dev/topology-group": "g"}
    world.annotate_templates(key, {"leader": {OURS: "block", **group}, "worker": {OURS: "rack", **group}})
    assert "must be in one domain of level rack" in waiting(world.plan())["a"][1]


def pairs(world: Racks, said: Mapping[str, str]) -> str:
    """A gang of four pods in two pairs by label, whose template says this."""
    policy = SubGroupPolicy(name="pairs", match_label_keys=["pair"], network_topology=LEAF)
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
    key = pairs(world, {OURS: "block"})
    assert "must be in one domain of level block" in waiting(world.plan())["a"][1]
    world.rack_node(0, 1, 0, gpus=8)
    world.plan()
    nodes = world.placed(key)["worker"]
    assert {node[:2] for node in nodes} == {"b0"}
    assert (nodes[0], nodes[1]) == (nodes[2], nodes[3])


def test_sub_groups_by_labels_and_slices_that_may_cross_are_told() -> None:
    """Ranks of a slice may be of different sub-groups."""
    world = Racks(2, 2, 1)
    switches(world)
    pairs(world, {SLICE_LEVEL: "rack", SLICE_SIZE: "2"})
    assert "the labels of subGroupPolicy request different groups" in waiting(world.plan())["a"][1]


NAMES = ("gang", "priority", "proportion", "predicates", "topology", "network-topology-aware", "binpack", "nodeorder")
SWITCHED = ("enablePredicate", "enableNodeOrder", "enableJobOrder")
OFF = st.dictionaries(st.sampled_from(SWITCHED), st.booleans())
PLUGINS = st.lists(st.tuples(st.sampled_from(NAMES), OFF), max_size=5)
"""Names and switches of plugins."""
WISHES: dict[str, tuple[dict[str, Any], str, int]] = {
    "rack": ({"required": "rack"}, "rack", 0),
    "rack, of pods": ({"template": REQUIRED}, "rack", 0),
    "pairs": ({"template": PAIRS}, "", 2),
    "pairs in a rack": ({"template": PAIRS | REQUIRED}, "rack", 2),
    "leaf": ({"network": LEAF}, "rack", 0),
    "partitions": ({"policies": [SubGroupPolicy(name="worker", sub_group_size=4, network_topology=LEAF)]}, "part", 0),
}
"""Name → the wish, the domain of all pods ("part": of each four), and the size of slices that are on one node."""


@settings(max_examples=settings().max_examples * 3 // 2)
@given(
    plugins=PLUGINS, wish=st.sampled_from([*WISHES]), closed=st.sets(st.integers(0, 3)), pods=st.sampled_from([4, 8])
)
def test_no_configuration_drops_a_requirement(
    plugins: list[tuple[str, dict[str, bool]]], wish: str, closed: set[int], pods: int
) -> None:
    """Either the gang has the nodes that it requires, or it waits and is told why."""
    world = Racks(1, 2, 2, checked=False)
    switches(world)
    tiers = [{"plugins": [{"name": name, **off} for name, off in plugins]}]
    _, world.plugins = parts_of(config.parse(json.dumps({"actions": "enqueue, allocate", "tiers": tiers})))
    cordoned = {f"b0r{place // 2}n{place % 2}" for place in closed}
    for name in cordoned:
        world.node(name, gpus=8, cpu=64, unschedulable=True, labels={"block": "b0", "rack": name[2:4], "host": name})
    asked, domain, size = WISHES[wish]
    key = world.asks("a", pods, 2, **asked)
    found = world.plan()
    nodes = world.placed(key).get("worker", [])
    assert bool(nodes) != bool(of(found, decisions.Unschedulable))
    assert not cordoned & set(nodes)
    wide = 4 if domain == "part" else pods
    if domain:
        assert all(len(set(racks_of(nodes[first : first + wide]))) == 1 for first in range(0, len(nodes), wide))
    if size:
        assert all(len(set(nodes[first : first + size])) == 1 for first in range(0, len(nodes), size))
    if not cordoned and wish != "pairs":
        assert nodes, "there is room"
