"""A gang that waits for HyperNodes is told what is wrong with them."""

from explain_world import ExplainWorld
from hypernode_world import hyper_node, named

from muster.api.volcano.scheduling import NetworkTopology

NEAR = NetworkTopology(highest_tier_allowed=1)


def waiting(near: NetworkTopology | None) -> list[str]:
    """The details of a gang of two whole nodes, where one of two is in two racks."""
    world = ExplainWorld().nodes(2)
    for name, members in (("a", named("node-0", "node-1")), ("b", named("node-1"))):
        world.state.on_hyper_node(None, hyper_node(name, 1, members))
    world.runs("first", 1, {"nvidia.com/gpu": 1})
    key = world.gang("train", {"worker": (2, {"nvidia.com/gpu": 8})})
    world.change(world.state.groups[key], spec={"network_topology": near})
    return world.gang_report("train").details


def test_what_is_wrong_with_hyper_nodes() -> None:
    """With the names of the nodes; each thing once."""
    details = [each for each in waiting(NEAR) if each.startswith("HyperNode")]
    assert len(details) == 2
    assert "HyperNode a is not right: nodes that are in other HyperNodes of tier 1 too: node-1 (in b)" in details[0]


def test_others_are_not_bothered() -> None:
    """Who does not need one domain waits for something else."""
    assert not [each for near in (None, NetworkTopology(mode="soft")) for each in waiting(near) if "HyperNode" in each]
