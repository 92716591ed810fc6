"""HyperNodes at random: the tree is that of a plain reading, and one kept by changes is the one made at once."""

import re
from collections.abc import Mapping

from hypernode_world import HyperNodeWorld, hyper_node, labelled, matching, named, node, path_of, within
from hypothesis import given, settings
from hypothesis import strategies as st

from extender.planner.topology.hypernodes import HyperNodes, HyperNodeTree
from muster.api.kubernetes.core import Node
from muster.api.volcano.topology import HyperNode

NODES = [f"n{number}" for number in range(8)]
NAMES = [f"h{number}" for number in range(7)]
PATTERNS = ["n", "n[0-3]", "^n5$", "[02468]", "x"]
MEMBERS = st.lists(
    st.one_of(
        st.sampled_from([*NODES, "gone"]).map(named),
        st.sampled_from(PATTERNS).map(matching),
        st.sampled_from("abc").map(lambda value: labelled(rack=value)),
        st.sampled_from([*NAMES, "gone"]).map(within),
    ),
    min_size=1,
    max_size=4,
).map(lambda several: [member for each in several for member in each])
HYPER_NODES = st.builds(hyper_node, st.sampled_from(NAMES), st.integers(0, 3), MEMBERS, st.sampled_from(["", "r", "s"]))
LABELLED = st.builds(lambda name, rack: node(name, rack=rack), st.sampled_from(NODES), st.sampled_from("abc"))


def direct(spec: HyperNode, of: Node) -> bool:
    """Whether a node is a direct member."""
    for member in spec.spec.members:
        chosen = member.selector
        if member.type == "Node" and (
            (chosen.exact_match and chosen.exact_match.name == of.metadata.name)
            or (chosen.regex_match and re.search(chosen.regex_match.pattern, of.metadata.name))
            or (chosen.label_match and chosen.label_match.match_labels.items() <= of.metadata.labels.items())
        ):
            return True
    return False


def chain(name: str, all_of_them: Mapping[str, HyperNode]) -> list[str]:
    """A HyperNode and all that it is in."""
    mine = all_of_them[name]
    parents = {
        other.metadata.name
        for other in all_of_them.values()
        for member in other.spec.members
        if member.type == "HyperNode"
        and member.selector.exact_match
        and member.selector.exact_match.name == name
        and other.spec.tier > mine.spec.tier
    }
    return [name, *(chain(parents.pop(), all_of_them) if len(parents) == 1 else ())]


def expected(world: HyperNodeWorld) -> dict[str, tuple[str, ...]]:
    """Per node its path, worked out node by node and name by name."""
    known = world.hyper_nodes
    tiers = sorted({each.spec.tier for each in known.values()}, reverse=True)
    rows: dict[str, list[str | None]] = {}
    for each in filter(None, world.nodes):
        inside = {up for name in known if direct(known[name], each) for up in chain(name, known)}
        row: list[str | None] = []
        for tier in tiers:
            lower = [name for name in inside if known[name].spec.tier <= tier]
            top = max((known[name].spec.tier for name in lower), default=0)
            best = [name for name in lower if known[name].spec.tier == top]
            row.append(best[0] if len(best) == 1 else None)
        rows[each.metadata.name] = row
    for level in range(len(tiers)):
        over: dict[str, set[str | None]] = {}
        for row in rows.values():
            if level and row[level - 1] is None:
                row[level] = None
            if row[level] is not None:
                over.setdefault(str(row[level]), set()).add(row[level - 1] if level else "")
        for row in rows.values():
            if len(over.get(str(row[level]), ())) > 1:
                row[level] = None
    return {name: tuple(each for each in row if each) for name, row in rows.items()}


def paths(world: HyperNodeWorld, found: HyperNodes) -> dict[str, tuple[str, ...]]:
    """Per node the path that the tree has."""
    return {name: path_of(found.tree, column) for name, column in world.index.items()}


CHANGES = st.lists(st.tuples(st.booleans(), st.one_of(HYPER_NODES, LABELLED)), max_size=4)


@settings(max_examples=settings().max_examples * 3)
@given(st.lists(CHANGES, min_size=1, max_size=6))
def test_kept_by_changes_it_is_what_a_plain_reading_says(rounds: list[list[tuple[bool, HyperNode | Node]]]) -> None:
    """After every round of changes: paths, nesting, counts; and who is in no domain has a reason."""
    kept, world = HyperNodeTree(), HyperNodeWorld().tell(*(node(name, rack="a") for name in NODES[:4]))
    for changes in rounds:
        for gone, each in changes:
            (world.forget if gone else world.tell)(each)
        found, fresh = kept.of(world), HyperNodeTree().of(world)
        assert paths(world, found) == expected(world) == paths(world, fresh)
        assert (found.problems, found.node_counts, found.missing) == (fresh.problems, fresh.node_counts, fresh.missing)
        assert (found.tree.domains, found.tree.tier_names) == (fresh.tree.domains, fresh.tree.tier_names)
        for level in range(1, len(found.tree.levels)):
            inner, outer = found.tree.domain_of[level], found.tree.domain_of[level - 1]
            assert (outer[inner >= 0] >= 0).all()
            assert (found.tree.parents[level][inner[inner >= 0]] == outer[inner >= 0]).all()
        for name, hyper in world.hyper_nodes.items():
            own = sum(direct(hyper, each) for each in world.nodes if each)
            children = {member.selector.exact_match.name for member in hyper.spec.members
                        if member.type == "HyperNode" and member.selector.exact_match}  # fmt: skip
            assert found.node_counts[name] == own + len(children & world.hyper_nodes.keys())
            mine = {each.metadata.name for each in world.nodes if each and direct(hyper, each)}
            if any(name not in paths(world, found)[each] for each in mine):
                assert found.problems
