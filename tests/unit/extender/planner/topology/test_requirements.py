"""What a gang requires of its nodes holds under every configuration, whatever trees its levels are in."""

import json
from typing import Any

import pytest
from extender_world import of
from hypernode_world import hyper_node, named
from hypothesis import given, settings
from hypothesis import strategies as st
from topology_world import Racks, racks_of

from extender.planner.cycle import parts_of
from extender.planner.framework import config, decisions
from muster.api.volcano.scheduling import NetworkTopology, SubGroupPolicy

KUEUE = "kueue.x-k8s.io/podset"
PAIRS = {f"{KUEUE}-slice-required-topology": "host", f"{KUEUE}-slice-size": "2"}
REQUIRED = {f"{KUEUE}-required-topology": "rack"}
OTHER = {"pod": ["block", "host"]}
"""Another topology, which has the innermost level of the first one, too."""


def switches(world: Racks) -> None:
    """A HyperNode for every rack."""
    for node in world.state.nodes.index:
        rack = node[: node.index("n")]
        inside = [other for other in world.state.nodes.index if other.startswith(f"{rack}n")]
        world.state.on_hyper_node(None, hyper_node(f"leaf-{rack}", 1, named(*inside)))


def half_used(world: Racks) -> Racks:
    """A pod takes half of the first node, so that one more fits beside it, and a pair does not."""
    filler = world.asks("filler", 1, 4)
    world.plan()
    assert world.placed(filler)["worker"] == ["b0r0n0"]
    return world


@pytest.mark.parametrize(
    "said",
    [
        PAIRS,
        PAIRS | REQUIRED,
        PAIRS | {"muster.dev/topology": "pod", "muster.dev/topology-required": "block"},
        PAIRS | {"muster.dev/topology": "pod"} | {f"{KUEUE}-required-topology": "block"},
        REQUIRED | {f"{KUEUE}-slice-required-topology": "cable", f"{KUEUE}-slice-size": "2"},
        {f"{KUEUE}-slice-required-topology-constraints": json.dumps([{"topology": "host", "size": 2}])} | REQUIRED,
    ],
    ids=["alone", "in a rack", "a level of another tree", "Kueue's level there", "a label outside", "as layers"],
)
def test_pairs_share_a_node(said: dict[str, str]) -> None:
    """The level of a slice is in the part's own tree, in another one, or in none; a pair is never split."""
    world = Racks(1, 1, 0, topologies=OTHER)
    for number in range(2):
        name = f"b0r0n{number}"
        world.node(name, gpus=8, cpu=64, labels={"block": "b0", "rack": "r0", "host": name, "cable": name})
    half_used(world)
    key = world.asks("a", 2, 4, template=said)
    world.plan()
    assert world.placed(key)["worker"] == ["b0r0n1", "b0r0n1"]


def test_a_layer_that_no_node_has_keeps_the_gang_waiting_and_is_told() -> None:
    """Neither it nor the layer around it is dropped."""
    world = Racks(1, 1, 2)
    layers = [{"topology": "rack", "size": 2}, {"topology": "hots", "size": 2}]
    key = world.asks("a", 2, 4, template={f"{KUEUE}-slice-required-topology-constraints": json.dumps(layers)})
    (why,) = of(world.plan(), decisions.Unschedulable)
    assert not world.placed(key)
    assert "hots" in why.message


def test_a_topology_beside_kueues_level_is_the_topology_of_that_level() -> None:
    """It does not take the level's place."""
    world = Racks(1, 2, 2)
    key = world.asks("a", 3, 8, template=REQUIRED | {"muster.dev/topology": "default"})
    (why,) = of(world.plan(), decisions.Unschedulable)
    assert not world.placed(key)
    assert "level rack" in why.message


def test_partitions_in_hyper_nodes_within_a_rack_of_labels() -> None:
    """The sub-groups of a PodGroup are about HyperNodes, whatever tree the gang is in."""
    world = Racks(1, 2, 2)
    switches(world)
    policy = SubGroupPolicy(name="worker", sub_group_size=2, network_topology=NetworkTopology(highest_tier_allowed=1))
    key = world.asks("a", 4, 8, template={f"{KUEUE}-required-topology": "block"}, policies=[policy])
    world.plan()
    racks = racks_of(world.placed(key)["worker"])
    assert (racks[0], racks[2]) == (racks[1], racks[3])


NAMES = ("gang", "priority", "proportion", "predicates", "topology", "network-topology-aware", "binpack", "nodeorder")
SWITCHED = ("enablePredicate", "enableNodeOrder", "enableJobOrder")
PLUGINS = st.lists(
    st.tuples(st.sampled_from(NAMES), st.dictionaries(st.sampled_from(SWITCHED), st.booleans())), max_size=5
)
"""Names and switches of plugins."""
LEAF = NetworkTopology(highest_tier_allowed=1)
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
    uses = [{"name": name, **off} for name, off in plugins]
    _, world.plugins = parts_of(
        config.parse(json.dumps({"actions": "enqueue, allocate", "tiers": [{"plugins": uses}]}))
    )
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
