"""The output of `muster topo`, from a small cluster to the text."""

from pathlib import Path

from click.testing import CliRunner
from explain_world import ExplainWorld
from extender_world import slots
from hypernode_world import hyper_node, named, within

from extender.explain.clusterdump import save
from extender.explain.find import gang_named
from extender.explain.topology import TopologyReport, topology_reports
from extender.explain.whatif import WhatIf
from extender.simulate.placing import simulate
from gangs.words import ranks_text
from muster.api.kubernetes.meta import ObjectMeta
from muster.api.volcano.topology import HyperNode, Topology, TopologyLevel, TopologySpec
from musterctl.app import main
from musterctl.output.report import NONE_LINES, topology_lines

ZONE = "topology.kubernetes.io/zone"
WORKER = {"cpu": 1, "nvidia.com/gpu": 8}


def world(*hyper_nodes: HyperNode) -> ExplainWorld:
    """Five nodes, the first four in two racks of one block; a gang of two runs, and half of a third node is used."""
    made = ExplainWorld().nodes(5, cpu=4)
    for each in hyper_nodes or racks():
        made.state.on_hyper_node(None, each)
    return made


def racks() -> tuple[HyperNode, ...]:
    """Two racks in a block."""
    return (
        hyper_node("rack-2", 1, named("node-2", "node-3"), "rack"),
        hyper_node("rack-10", 1, named("node-0", "node-1"), "rack"),
        hyper_node("block", 2, within("rack-2", "rack-10", "rack-11")),
    )


def drawn(of: ExplainWorld, gang: str = "", **options: object) -> list[str]:
    """The lines of the only topology."""
    what_if = WhatIf(of.dump())
    view = gang_named(what_if, gang, "ns") if gang else None
    [report] = topology_reports(what_if, gang=view, **options)  # type: ignore[arg-type]
    assert isinstance(report, TopologyReport)
    return list(topology_lines(report, gang))


def test_the_tree_of_hyper_nodes_with_a_gang() -> None:
    """Names in natural order, amounts summed up, ranks where they are, and what is odd below."""
    made = world()
    made.runs("train", 2, WORKER)
    made.runs("other", 1, {"nvidia.com/gpu": 4}, first_node=2)
    assert drawn(made, "train") == [
        "Topology hypernodes: tier 2, tier 1 (rack); 5 nodes",
        "DOMAIN       LEVEL          NODES  UNUSED  nvidia.com/gpu FREE/ALL  cpu FREE/ALL  FRAGMENTED  RANKS OF train",
        "block        tier 2             4       1                    12/32         14/16         33%  worker 0-1",
        "|-- rack-2   tier 1 (rack)      2       1                    12/16           8/8         33%",
        "`-- rack-10  tier 1 (rack)      2       0                     0/16           6/8           -  worker 0-1",
        "in no domain: node-4",
        "HyperNode block names members that do not exist: rack-11",
    ]


def test_nodes_and_one_resource() -> None:
    """As asked for; a cordoned node has nothing free."""
    made = world()
    node = next(each for each in made.state.nodes.nodes if each and each.metadata.name == "node-3")
    made.change(node, spec={"unschedulable": True})
    assert drawn(made, nodes=True, resources=["cpu"])[1:-2] == [
        "DOMAIN          LEVEL          NODES  UNUSED  cpu FREE/ALL  FRAGMENTED",
        "block           tier 2             4       3         12/16          0%",
        "|-- rack-2      tier 1 (rack)      2       1           4/8          0%",
        "|   |-- node-2  node               1       1           4/4          0%",
        "|   `-- node-3  node               1       0           0/4           -",
        "`-- rack-10     tier 1 (rack)      2       2           8/8          0%",
        "    |-- node-0  node               1       1           4/4          0%",
        "    `-- node-1  node               1       1           4/4          0%",
    ]


def test_what_is_wrong_is_told_once() -> None:
    """For all HyperNodes that it is about; those without nodes have no row."""
    lines = drawn(
        world(
            hyper_node("a", 1, named("node-0")),
            hyper_node("p", 2, within("a")),
            hyper_node("q", 2, within("a")),
            hyper_node("late", 1, named("node-9")),
        )
    )
    assert [line.split()[0] for line in lines[1:3]] == ["DOMAIN", "a"]
    assert "without nodes: late, p, q" in lines
    assert lines[-1].startswith("! a, p, q: HyperNode a is a member of p, q, but may be in only one")


def test_a_hyper_node_that_answers_for_lower_tiers_stands_once() -> None:
    """With the level of its own tier, and those in it below it."""
    lines = drawn(
        world(
            hyper_node("leaf", 1, named("node-0")),
            hyper_node("mid", 2, named("node-1")),
            hyper_node("top", 3, within("leaf", "mid")),
        )
    )
    assert [line.split("  ")[0].rstrip() for line in lines[2:5]] == ["top", "|-- leaf", "`-- mid"]
    assert ["tier 3" in lines[2], "tier 1" in lines[3], "tier 2" in lines[4]] == [True] * 3


def test_kueues_topologies_are_drawn_under_their_names() -> None:
    """Domains by their own value; all topologies if none is named."""
    made = world()
    levels = [TopologyLevel(node_label=key) for key in ("block", "rack")]
    made.state.on_topology(None, Topology(metadata=ObjectMeta(name="dc"), spec=TopologySpec(levels=levels)))
    for number, node in enumerate(list(made.state.nodes.nodes)[:4]):
        if node is not None:
            made.change(node, labels={**node.metadata.labels, "block": "b1", "rack": f"r{number // 2}"})
    what_if = WhatIf(made.dump())
    assert {"dc", "hypernodes"} <= {report.name for report in topology_reports(what_if)}
    [report] = topology_reports(what_if, name="dc")
    assert report.levels == ["block", "rack"]
    assert [(each.name, [inner.name for inner in each.domains]) for each in report.domains] == [("b1", ["r0", "r1"])]


def test_without_a_topology_the_hint_is_true(tmp_path: Path) -> None:
    """Nothing is drawn, and a gang that asks for a node label is placed in one domain of it."""
    made = ExplainWorld()
    for number, zone in enumerate(("a", "b", "b")):
        made.node(f"node-{number}", cpu=1, labels={ZONE: zone})
    group = made.state.told["podgroups.scheduling.volcano.sh"][made.gang("train", {"w": (2, {"cpu": 1})})]
    made.change(group, annotations={"muster.dev/topology-required": ZONE})
    file = tmp_path / "snapshot"
    file.write_bytes(save(made.dump()))
    result = CliRunner().invoke(main, ["topo", f"--snapshot={file}"])
    assert result.output.splitlines() == list(NONE_LINES)
    assert "any node label" in result.output
    assert ZONE in result.output
    [gang] = simulate(WhatIf(made.dump()), [])
    assert gang.placed
    assert "node-0" not in " ".join(gang.nodes)


def says(made: ExplainWorld, key: str, **said: str) -> None:
    """The PodGroup of a gang has these annotations of Muster's."""
    annotations = {f"muster.dev/{name.replace('_', '-')}": text for name, text in said.items()}
    made.change(made.state.groups[key], annotations=annotations)


def test_spares_stand_where_they_are_with_who_borrows_them() -> None:
    """Without any there is no such column; with ranks, these come last."""
    made = ExplainWorld().nodes(5, cpu=4)
    made.state.on_hyper_node(None, hyper_node("rack", 1, named(*(f"node-{number}" for number in range(5)))))
    for name, size, said in (("keeps", 2, {"spares": "2"}), ("other", 1, {}), ("guest", 1, {"borrow_spares": "true"})):
        key = made.gang(name, {"worker": (size, WORKER)})
        says(made, key, **said)
        made.plan()
        for rank, node in enumerate(slots(made.state.placements[key])["worker"]):
            made.pod(key, "worker", rank, WORKER, node=node, pin=node, epoch=1, phase="Running")
        made.close(made.plan())
    lines = drawn(made, "keeps", resources=["nvidia.com/gpu"], nodes=True)
    place = lines[1].index("SPARES")
    assert [line[place:].rstrip() for line in lines[1:]] == [
        "SPARES                                     RANKS OF keeps",
        "2 of Job ns/keeps, 1 lent to Job ns/guest  worker 0-1",
        "                                           worker 0",
        "                                           worker 1",
        "1 of Job ns/keeps, 1 lent to Job ns/guest",
        "1 of Job ns/keeps",
        "",
    ]
    says(made, "ns/keeps")
    made.now += 10
    made.plan()
    assert "SPARES" not in drawn(made)[1]


def test_ranks_are_folded() -> None:
    """Runs of ranks, and of many only the first."""
    assert ranks_text({"worker": [0, 1, 2, 5, 7, 8], "launcher": [0]}) == "worker 0-2, 5, 7-8; launcher 0"
    assert ranks_text({"w": list(range(0, 12, 2)), "v": [3]}) == "w 0, 2, 4, 6, 8, 10; v 3"
    assert ranks_text({"w": list(range(0, 14, 2))}) == "w 0, 2, 4, 6, 8, 10 and 1 more run"
    assert ranks_text({"w": list(range(0, 20, 2))}) == "w 0, 2, 4, 6, 8, 10 and 4 more runs"
