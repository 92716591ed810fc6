"""Why a gang that must be in one domain waits: which one came closest, by how much, and what would have to move."""

from explain_world import ExplainWorld

from muster.api.volcano.scheduling import NetworkTopology

GPU8 = {"cpu": 4, "nvidia.com/gpu": 8}


def racks(world: ExplainWorld, *, asked: int) -> None:
    """Two racks of three nodes; one runs on a node of the first, two on the second."""
    for index in range(6):
        world.node(f"node-{index}", labels={"rack": f"r{index // 3}"})
    world.runs("one", 1, GPU8)
    world.runs("two", 2, GPU8, first_node=3)
    for name in ("one", "two"):  # nobody may move them
        group = world.state.groups[f"ns/{name}"]
        group.metadata.labels = {"volcano.sh/preemptable": "false"}
        world.state.on_pod_group(None, group)
    group = world.state.groups[world.gang("a", {"worker": (asked, GPU8)})]
    group.metadata.annotations = {"muster.dev/topology-required": "rack"}
    world.state.on_pod_group(None, group)


def test_the_closest_domain_and_what_would_have_to_go() -> None:
    """The rack with most room; what ends there helps, what ends elsewhere does not."""
    world = ExplainWorld()
    racks(world, asked=3)
    report = world.gang_report("a")
    assert report.cause == "no-domain"
    assert report.shortage is not None
    assert report.shortage.closest is not None
    closest = report.shortage.closest
    assert (closest.domain, closest.held, closest.wanted) == ("r0", 2, 3)
    assert "3 pods must be in one domain of level rack; r0, the closest of 2, has room for 2: 1 short" in report.summary
    assert [each.names for each in report.relief if each.kind == "ends"] == [("ns/one",)]
    assert [each.sentence for each in report.relief if each.kind == "wider"] == [
        "it asks for a wider level than rack, or only prefers rack"
    ]


def test_what_can_never_be() -> None:
    """No rack is so large."""
    world = ExplainWorld()
    racks(world, asked=4)
    group = world.state.groups["ns/a"]
    group.status.phase = "Pending"
    world.state.on_pod_group(None, group)
    report = world.gang_report("a")
    assert report.cause == "never-fits"
    assert report.summary.endswith("has room for 3: 1 short; even were all nodes empty")


def test_a_tier_that_is_not_there() -> None:
    """It says which there are."""
    world = ExplainWorld()
    racks(world, asked=1)
    group = world.state.groups["ns/a"]
    group.spec.network_topology = NetworkTopology(highest_tier_name="spine")
    world.state.on_pod_group(None, group)
    assert "topology 'hypernodes' has no level 'spine'" in world.gang_report("a").summary
