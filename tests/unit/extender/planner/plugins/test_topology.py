"""Gangs that sit together: where the planner puts them, on small trees that can be looked through whole."""

from collections import Counter, defaultdict
from itertools import pairwise

import numpy as np
import pytest
from extender_world import of, only
from hypernode_world import hyper_node, matching, within
from hypothesis import given, settings
from hypothesis import strategies as st
from topology_world import Racks, racks_of

from extender.planner.actions.allocate import Allocate
from extender.planner.actions.enqueue import Enqueue
from extender.planner.framework import decisions
from extender.planner.framework.answers import NodeSet
from extender.planner.framework.registry import PlainPlugin
from extender.planner.framework.session import Session
from extender.planner.plugins.scores import GpuPack, GpuSpread
from extender.planner.plugins.topology import PROFILES, TopologyPlugin
from extender.planner.state.gangs import GangView
from extender.planner.timing import Timing
from extender.planner.topology.parts import SlotGroup
from muster.api.volcano.scheduling import NetworkTopology, SubGroupPolicy

ROOMS = st.lists(st.integers(0, 8), min_size=12, max_size=12)
SLICE = {"kueue.x-k8s.io/podset-slice-required-topology": "rack", "kueue.x-k8s.io/podset-slice-size": "3"}


def cluster(rooms: list[int], **arguments: object) -> Racks:
    """Two blocks of two racks of three nodes, with so many free GPUs."""
    world = Racks(0, checked=False, **arguments)
    for number, room in enumerate(rooms):
        world.rack_node(number // 6, number // 3 % 2, number % 3, gpus=room)
    return world


def domains(rooms: list[int], gpus: int) -> dict[str, dict[str, int]]:
    """Level → domain → pods of so many GPUs that it holds."""
    held: dict[str, dict[str, int]] = {level: defaultdict(int) for level in ("host", "rack", "block", "")}
    for number, room in enumerate(rooms):
        name = f"b{number // 6}r{number // 3 % 2}n{number % 3}"
        for level, domain in (("host", name), ("rack", name[:4]), ("block", name[:2]), ("", "")):
            held[level][domain] += room // gpus
    return held


@settings(max_examples=settings().max_examples * 3)
@given(rooms=ROOMS, pods=st.integers(1, 20), gpus=st.integers(1, 4), required=st.sampled_from(["", "rack", "block"]))
def test_the_smallest_domain_is_always_found(rooms: list[int], pods: int, gpus: int, required: str) -> None:
    """Of the lowest level that holds the gang the tightest domain, and in it as few children as can be."""
    world = cluster(rooms)
    wish = {"required": required} if required else {"preferred": "host"}
    nodes = world.workers("a", pods, gpus, **wish)  # type: ignore[arg-type]  # texts
    held = domains(rooms, gpus)
    levels = ["host", "rack", "block"][: 3 if required != "rack" else 2] + ([] if required else [""])
    level = next((each for each in levels if max(held[each].values()) >= pods), None)
    if level is None:
        assert not nodes
        return
    width = {"host": 6, "rack": 4, "block": 2, "": 0}
    (domain,) = {node[: width[level]] for node in nodes}
    enough = [count for count in held[level].values() if count >= pods]
    assert held[level][domain] == min(enough), "the tightest one, so that larger ones stay whole"
    inner = {"": "block", "block": "rack", "rack": "host"}.get(level)
    if inner:
        children = sorted((n for name, n in held[inner].items() if name.startswith(domain)), reverse=True)
        fewest = next(number for number in range(1, 9) if sum(children[:number]) >= pods)
        assert len({node[: width[inner]] for node in nodes}) == fewest
    _neighbours(nodes)


def _neighbours(nodes: list[str]) -> None:
    """Ranks of one domain follow each other, at every level."""
    for width in (2, 4, 6):
        changes = sum(left[:width] != right[:width] for left, right in pairwise(nodes))
        assert changes == len({node[:width] for node in nodes}) - 1


@settings(max_examples=settings().max_examples * 2)
@given(rooms=ROOMS, slices=st.integers(1, 5), gpus=st.integers(1, 4), required=st.sampled_from(["", "block"]))
def test_slices_are_whole_wherever_they_fit(rooms: list[int], slices: int, gpus: int, required: str) -> None:
    """Each three ranks share a rack, and a gang of slices that fit is never left waiting."""
    nodes = cluster(rooms).workers("a", 3 * slices, gpus, required=required, template=SLICE)
    whole = {rack: count // 3 for rack, count in domains(rooms, gpus)["rack"].items()}
    around = Counter({block: sum(n for rack, n in whole.items() if rack.startswith(block)) for block in ("b0", "b1")})
    fits = max(around.values()) >= slices if required else around.total() >= slices
    assert bool(nodes) == fits
    for first in range(0, len(nodes), 3):
        assert len(set(racks_of(nodes[first : first + 3]))) == 1


@given(rooms=ROOMS, pods=st.integers(1, 20), profile=st.sampled_from(sorted(PROFILES)))
def test_every_profile_places_what_fits(rooms: list[int], pods: int, profile: str) -> None:
    """Profiles differ in which nodes they take, not in whether a gang starts."""
    nodes = cluster(rooms, profile=profile).workers("a", pods, 1, required="block")
    held = domains(rooms, 1)
    assert bool(nodes) == (max(held["block"].values()) >= pods)
    assert all(count <= held["host"][node] for node, count in Counter(nodes).items())


def test_the_rest_goes_where_it_just_fits() -> None:
    """Whole racks first, and then the tightest one, so that the others stay whole: Kueue's BestFit."""
    world = Racks(0, levels=["block", "rack"])
    for rack, gpus in enumerate((8, 8, 2, 4)):
        world.rack_node(0, rack, 0, gpus=gpus)
    assert Counter(racks_of(world.workers("a", 10, 1, required="block"))) == {"b0r0": 8, "b0r2": 2}


@pytest.mark.parametrize("levels", [["block"], ["block", "rack"], ["block", "rack", "host"]])
@pytest.mark.parametrize("plugins", [(), (GpuPack,), (GpuSpread,)])
def test_fewest_hosts_of_several_blocks(levels: list[str], plugins: tuple[type[PlainPlugin], ...]) -> None:
    """The block that is not filled gives its largest host: no block is filled first with its small ones."""
    world = Racks(0, levels=levels)
    world.plugins += [plugin({}) for plugin in plugins]
    for block, rooms in enumerate(([3, 3, 3], [6])):
        for number, gpus in enumerate(rooms):
            world.rack_node(block, 0, number, gpus=gpus)
    nodes = Counter(world.workers("a", 12, 1, preferred="block"))
    assert sorted(nodes.values()) == [3, 3, 6]


@settings(max_examples=settings().max_examples * 2)
@given(rooms=ROOMS, pods=st.integers(1, 60), levels=st.sampled_from([["block"], ["block", "host"]]))
def test_no_host_less_of_the_same_blocks_is_enough(rooms: list[int], pods: int, levels: list[str]) -> None:
    """Wherever a gang goes beyond one block."""
    world = cluster(rooms, levels=levels)
    nodes = Counter(world.workers("a", pods, 1, preferred="block"))
    held = domains(rooms, 1)["host"]
    blocks = {node[:2] for node in nodes}
    there = sorted((held[node] for node in held if node[:2] in blocks), reverse=True)
    assert not nodes or sum(there[: len(nodes) - 1]) < pods


def test_ranks_go_along_the_tree_and_not_along_names() -> None:
    """Neighbouring ranks are neighbours in the network, whatever the nodes are called."""
    world = Racks(0)
    for number in range(8):
        labels = {"block": f"b{number % 2}", "rack": f"r{number // 2 % 2}", "host": f"node-{number}"}
        world.node(f"node-{number}", labels=labels)
    numbers = [int(node.removeprefix("node-")) for node in world.workers("a", 8, 8, preferred="rack")]
    assert numbers == [0, 4, 2, 6, 1, 5, 3, 7]


def test_a_domain_for_the_whole_gang_comes_before_a_tighter_one() -> None:
    """It starts with two, and can have four: where there is room for four."""
    world = Racks(0)
    world.timing = Timing(growth_delay_s=1.0)
    for rack, nodes in enumerate((2, 4)):
        for number in range(nodes):
            world.rack_node(0, rack, number)
    nodes = world.workers("a", 4, 8, required="rack", min_member=2, min_task_member={"worker": 2})
    assert set(racks_of(nodes)) == {"b0r1"}


def test_unconstrained_pods_take_what_is_left() -> None:
    """Kueue's Mixed profile: where little is free anyway, so that whole domains stay whole."""
    world = cluster([8, 8, 8, 8, 2, 0, 8, 8, 8, 8, 8, 8], levels=["block", "rack", "host"])
    nodes = world.workers("a", 4, 1, template={"kueue.x-k8s.io/podset-unconstrained-topology": "true"})
    assert set(racks_of(nodes)) == {"b0r1"}


def test_preferred_goes_up_a_level_and_required_does_not() -> None:
    """A rack is wished for and a block is a must: the whole of it, or the gang waits and is told by how much."""
    world = Racks(2, 2, 2)
    wide = world.asks("wide", 4, required="block", preferred="rack")
    narrow = world.asks("narrow", 4, required="rack")
    session = world.plan()
    assert len(set(racks_of(world.placed(wide)["worker"]))) == 2
    (why,) = of(session, decisions.Unschedulable)
    assert why.gang.key == narrow
    assert why.message == "4 pods must be in one domain of level rack; b1/r0, the closest of 4, has room for 2: 2 short"


def test_a_gang_that_no_domain_can_ever_hold_is_told_so_at_once() -> None:
    """Before its pods are made: in the condition of its PodGroup."""
    world = Racks(2, 2, 2)
    world.asks("a", 5, required="rack", phase="Pending")
    session = world.plan()
    (why,) = of(session, decisions.Unschedulable)
    assert why.message == (
        "5 pods must be in one domain of level rack; b0/r0, the closest of 4, has room for 2: 3 short; even if all "
        "nodes were empty"
    )
    assert not of(session, decisions.AdmitGang)


def test_pod_sets_have_levels_of_their_own() -> None:
    """The workers in one rack, the servers in another, and the gang in one block."""
    world = Racks(2, 2, 2)
    key = world.gang("a", {"worker": (2, {"nvidia.com/gpu": 8}), "server": (2, {"nvidia.com/gpu": 8})})
    world.said_of(key, {"muster.dev/topology-required": "block"})
    rack = {"muster.dev/topology-required": "rack"}
    world.annotate_templates(key, {"worker": rack, "server": rack})
    world.plan()
    placed = world.placed(key)
    assert [len(set(racks_of(nodes))) for nodes in placed.values()] == [1, 1]
    assert len({node[:2] for nodes in placed.values() for node in nodes}) == 1


def test_a_leader_sits_with_its_workers() -> None:
    """Two pod sets of one group are in one rack as a whole."""
    world = Racks(1, 3, 2)
    world.asks("first", 1, 8, required="host")
    key = world.gang("a", {"leader": (1, {"cpu": 1}), "worker": (2, {"nvidia.com/gpu": 8})})
    said = {"kueue.x-k8s.io/podset-group-name": "g", "kueue.x-k8s.io/podset-required-topology": "rack"}
    world.annotate_templates(key, {"leader": said, "worker": said})
    world.plan()
    placed = world.placed(key)
    assert len({*racks_of(placed["leader"]), *racks_of(placed["worker"])}) == 1


def switched(blocks: int, racks_each: int, nodes: int) -> Racks:
    """Racks with HyperNodes: a leaf for each rack (tier 1), a spine for each block (tier 2)."""
    world = Racks(blocks, racks_each, nodes)
    racks = sorted({name[:4] for name in world.state.nodes.index})
    for rack in racks:
        world.state.on_hyper_node(None, hyper_node(f"leaf-{rack}", 1, matching(f"^{rack}n")))
    for block in sorted({rack[:2] for rack in racks}):
        leaves = [f"leaf-{rack}" for rack in racks if rack.startswith(block)]
        world.state.on_hyper_node(None, hyper_node(f"spine-{block}", 2, within(*leaves), "spine"))
    return world


@pytest.mark.parametrize(
    ("pods", "network", "racks", "blocks"),
    [
        (2, NetworkTopology(highest_tier_allowed=1), 1, 1),
        (4, NetworkTopology(highest_tier_allowed=2), 2, 1),
        (4, NetworkTopology(highest_tier_name="spine"), 2, 1),
        (2, NetworkTopology(highest_tier_allowed=2), 1, 1),  # the lowest tier that holds it
        (6, NetworkTopology(highest_tier_allowed=3), 3, 2),  # above all tiers: anywhere, as in Volcano
        (2, NetworkTopology(mode="soft", highest_tier_allowed=1), 1, 1),
        (6, NetworkTopology(mode="soft", highest_tier_allowed=1), 3, 2),
    ],
)
def test_hyper_nodes(pods: int, network: NetworkTopology, racks: int, blocks: int) -> None:
    """As few leaves and spines as the mode allows."""
    world = switched(2, 2, 2)
    nodes = world.workers("a", pods, network=network)
    assert (len(set(racks_of(nodes))), len({node[:2] for node in nodes})) == (racks, blocks)


@pytest.mark.parametrize(("network", "words"), [
    (NetworkTopology(highest_tier_allowed=0), "no HyperNode has a tier of at most 0; there are tier 2, tier 1"),
    (NetworkTopology(highest_tier_name="x"), "topology 'hypernodes' has no level 'x'; its levels are"),
    (NetworkTopology(highest_tier_allowed=1), "must be in one domain of level tier 1; leaf-b0r0, the closest of 4"),
])  # fmt: skip
def test_what_no_hyper_node_can_hold_waits_and_is_told(network: NetworkTopology, words: str) -> None:
    """Volcano drops a constraint that it cannot read; here the gang says why it waits."""
    world = switched(2, 2, 2)
    world.asks("a", 3, network=network)
    assert words in only(world.plan(), decisions.Unschedulable).message


def test_a_gang_that_waits_starts_when_hyper_nodes_allow_it() -> None:
    """Who did not fit is tried again once HyperNodes change."""
    world = switched(1, 2, 2)
    key = world.asks("a", 3, network=NetworkTopology(highest_tier_allowed=1))
    enqueue, allocate = Enqueue(), Allocate()
    assert not of(world.session(enqueue, allocate), decisions.Place)
    old = world.state.hyper_nodes["leaf-b0r0"]
    world.state.on_hyper_node(world.state.hyper_nodes["leaf-b0r1"], None)
    world.state.on_hyper_node(old, hyper_node("leaf-b0r0", 1, matching("^b0")))
    assert only(world.session(enqueue, allocate), decisions.Place).gang.key == key


def test_partitions_are_each_in_one_domain() -> None:
    """A task's partitions are sub-groups: each under a leaf, whatever the gang is under; and they start in any room."""
    world = switched(2, 2, 3)
    policy = SubGroupPolicy(name="worker", sub_group_size=2, network_topology=NetworkTopology(highest_tier_allowed=1))
    nodes = world.workers("a", 4, network=NetworkTopology(highest_tier_allowed=2), policies=[policy])
    assert len({node[:2] for node in nodes}) == 1
    assert [len(set(racks_of(nodes[first : first + 2]))) for first in (0, 2)] == [1, 1]


def test_sub_groups_by_labels() -> None:
    """Pods with equal labels sit together, wherever their ranks are."""
    world = switched(1, 2, 2)
    policy = SubGroupPolicy(
        name="pairs", match_label_keys=["pair"], network_topology=NetworkTopology(highest_tier_allowed=1)
    )
    key = world.asks("a", 4, policies=[policy])
    for rank in range(4):
        world.pod(key, "worker", rank, {"nvidia.com/gpu": 8}, gated=True, labels={"pair": str(rank % 2)})
    world.plan()
    racks = racks_of(world.placed(key)["worker"])
    assert (racks[0], racks[1]) == (racks[2], racks[3])
    assert racks[0] != racks[1]


def test_a_member_that_comes_again_joins_the_others() -> None:
    """Required: the same rack, although another one has more room; it waits when its rack is full."""
    world = Racks(2, 2, 3)
    key = world.asks("a", 2, 8, required="rack", phase="Running")
    nodes = world.start(key, {"nvidia.com/gpu": 8})
    world.state.on_pod(world.pod(key, "worker", 1, {"nvidia.com/gpu": 8}, node=nodes[1], phase="Failed"), None)
    world.pod(key, "worker", 1, {"nvidia.com/gpu": 8}, gated=True)
    world.rack_node(0, int(nodes[0][3]), int(nodes[1][5]), gpus=0)
    world.plan()
    (again,) = {*world.placed(key)["worker"]} - {nodes[0]}
    assert racks_of([again]) == racks_of(nodes[:1])
    assert again != nodes[1]


def test_scaled_members_stay_in_the_domain() -> None:
    """Growth is of use only beside the others; what does not fit there waits."""
    world = Racks(2, 1, 3)
    key = world.asks("a", 2, 8, required="rack", phase="Running")
    world.start(key, {"nvidia.com/gpu": 8})
    world.scale(key, "worker", 4)
    world.members(key, (2, 3), {"nvidia.com/gpu": 8}, gated=True)
    world.plan()
    placed = [node for node in world.placed(key)["worker"] if node]
    assert (len(placed), len(set(racks_of(placed)))) == (3, 1)


def test_a_running_gang_stays_when_labels_change() -> None:
    """It is nobody's victim for it, and who comes later follows the new labels."""
    world = Racks(1, 2, 2)
    nodes = world.start(world.asks("a", 2, 8, required="rack", phase="Running"), {"nvidia.com/gpu": 8})
    world.node(nodes[0], cpu=64, labels={"block": "b9", "rack": "r9", "host": nodes[0]})
    assert not of(world.plan(), decisions.Evict)
    later = world.asks("later", 2, 8, required="rack")
    world.plan()
    assert len(set(racks_of(world.placed(later)["worker"]))) == 1


def test_gangs_that_do_not_ask_are_placed_as_before() -> None:
    """The same decisions with the plugin and without it."""
    worlds = [Racks(2, 2, 2), Racks(2, 2, 2)]
    worlds[1].plugins.pop()
    for world in worlds:
        for name, pods, gpus in (("a", 5, 4), ("b", 2, 8), ("c", 7, 1)):
            world.gang(name, {"worker": (pods, {"nvidia.com/gpu": gpus})})
        world.plan()
    assert [worlds[0].placed(f"ns/{name}") for name in "abc"] == [worlds[1].placed(f"ns/{name}") for name in "abc"]


class _NotThere(PlainPlugin):
    """Keeps every part away from some nodes."""

    name = "notthere"

    def on_session_open(self, session: Session) -> None:
        """Registers."""
        allowed = [node is not None and "r0" not in node.metadata.name for node in session.snapshot.nodes]

        def subsets(nodes: NodeSet, _gang: GangView, _part: SlotGroup) -> list[NodeSet]:
            return [nodes.within(np.array(allowed))]

        session.hooks.subset_nodes.add(subsets)


def test_another_plugin_can_narrow_the_domains() -> None:
    """What it answers changes where gangs go: those that ask for a topology, and those that do not."""
    world = Racks(1, 2, 2)
    world.plugins = [*world.plugins, _NotThere({})]
    asking, plain = world.asks("asking", 1, 8, required="rack"), world.gang("plain", {"w": (1, {"cpu": 1})})
    world.plan()
    assert racks_of([*world.placed(asking)["worker"], *world.placed(plain)["w"]]) == ["b0r1", "b0r1"]


def test_a_level_that_nobody_configured_is_a_label_all_the_same() -> None:
    """`topology.kubernetes.io/zone` works at once; a label that no node has is told."""
    world = Racks(2, 1, 2)
    world.topology = TopologyPlugin({})
    world.plugins = [*world.plugins[:-1], world.topology]
    key = world.asks("a", 2, required="block")
    none = world.asks("none", 2, required="example.com/row")
    session = world.plan()
    assert len({node[:2] for node in world.placed(key)["worker"]}) == 1
    (why,) = [each for each in of(session, decisions.Unschedulable) if each.gang.key == none]
    assert why.message == "2 pods must be in one domain of level example.com/row, but no node is in such a domain"
