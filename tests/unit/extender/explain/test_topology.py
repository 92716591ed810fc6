"""Why a gang that must be in one domain waits: which came closest, what would have to move, and what is wrong there."""

from explain_world import ExplainWorld
from extender_world import GPU8
from hypernode_world import hyper_node, named

from muster.api.volcano.scheduling import NetworkTopology


def racks(*, asked: int) -> ExplainWorld:
    """Two racks of three nodes; one runs on a node of the first, two on the second, which nobody may move."""
    world = ExplainWorld()
    for index in range(6):
        world.node(f"node-{index}", labels={"rack": f"r{index // 3}"})
    for key in (world.runs("one", 1), world.runs("two", 2, first_node=3)):
        world.change(world.state.groups[key], labels={"volcano.sh/preemptable": "false"})
    group = world.state.groups[world.gang("a", {"worker": (asked, GPU8)})]
    world.change(group, annotations={"muster.dev/topology-required": "rack"})
    return world


def test_the_closest_domain_and_what_would_have_to_go() -> None:
    """The rack with most room; what ends there helps, what ends elsewhere does not."""
    report = racks(asked=3).gang_report("a")
    assert report.cause == "no-domain"
    closest = report.shortage.closest
    assert (closest.domain, closest.held, closest.wanted) == ("r0", 2, 3)
    assert "3 pods must be in one domain of level rack; r0, the closest of 2, has room for 2: 1 short" in report.summary
    assert [each.names for each in report.relief if each.kind == "ends"] == [("ns/one",)]
    [wider] = [each.sentence for each in report.relief if each.kind == "wider"]
    assert wider == "the gang requests a wider level than rack, or only prefers rack"


def test_what_can_never_be() -> None:
    """No rack is so large."""
    world = racks(asked=4)
    world.change(world.state.groups["ns/a"], status={"phase": "Pending"})
    report = world.gang_report("a")
    assert report.cause == "never-fits"
    assert report.summary.endswith("has room for 3: 1 short; even if all nodes were empty")


def test_a_tier_that_is_not_there() -> None:
    """It says which there are."""
    world = racks(asked=1)
    world.change(world.state.groups["ns/a"], spec={"network_topology": NetworkTopology(highest_tier_name="spine")})
    assert "topology 'hypernodes' has no level 'spine'" in world.gang_report("a").summary


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
    assert "HyperNode a is invalid: nodes that are in other HyperNodes of tier 1 too: node-1 (in b)" in details[0]


def test_others_are_not_bothered() -> None:
    """Who does not need one domain waits for something else."""
    assert not [each for near in (None, NetworkTopology(mode="soft")) for each in waiting(near) if "HyperNode" in each]
