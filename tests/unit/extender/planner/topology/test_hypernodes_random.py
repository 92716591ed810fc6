"""HyperNodes at random: the tree is that of a plain reading, and one kept by changes is the one made at once.

Whatever is written in a HyperNode that admission did not see, there is a tree, and the others are in it.
"""

import re
from collections.abc import Mapping

import msgspec
from hypernode_world import HyperNodeWorld, hyper_node, labelled, matching, named, node, paths, within
from hypothesis import given, settings
from hypothesis import strategies as st

from extender.planner.topology.hypernodes import HyperNodeTree
from muster.api.kubernetes.core import Node
from muster.api.limits import TIERS
from muster.api.volcano.topology import HyperNode
from muster.kube.codec import decoder

NODES = [f"n{number}" for number in range(8)]
NAMES = [f"h{number}" for number in range(7)]
PATTERNS = ["n", "n[0-3]", "^n5$", "[02468]", "x"]
MEMBERS = st.lists(st.one_of(
    st.sampled_from([*NODES, "gone"]).map(named), st.sampled_from(PATTERNS).map(matching),
    st.sampled_from("abc").map(lambda value: labelled(rack=value)), st.sampled_from([*NAMES, "gone"]).map(within),
), min_size=1, max_size=4).map(lambda several: [member for each in several for member in each])  # fmt: skip
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


CHANGES = st.lists(st.tuples(st.booleans(), st.one_of(HYPER_NODES, LABELLED)), max_size=4)


@settings(max_examples=settings().max_examples * 3)
@given(st.lists(CHANGES, min_size=1, max_size=6))
def test_kept_by_changes_it_is_what_a_plain_reading_says(rounds: list[list[tuple[bool, HyperNode | Node]]]) -> None:
    """After every round of changes: paths, nesting, counts; and who is in no domain has a reason."""
    kept, world = HyperNodeTree(), HyperNodeWorld().tell(*(node(name, rack="a") for name in NODES[:4]))
    for changes in rounds:
        for gone, each in changes:
            (world.forget if gone else world.tell)(each)
        found, fresh = kept.tree_of(world), HyperNodeTree().tree_of(world)
        assert paths(world, found.tree) == expected(world) == paths(world, fresh.tree)
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
            if any(name not in paths(world, found.tree)[each] for each in mine):
                assert found.problems


TEXTS = st.sampled_from(
    ["", "a", "mine", "node-0", "(", "[", "x{999}", ".{0,999}", "\\", "\u0000", "é", "$^", "a" * 5_000]
)
TIERS_WRITTEN = st.sampled_from([0, 1, 2, 7, 2**31 - 1, 2**31, 2**62, 2**63, 2**64, 10**30, -1, "1", None, 1.5])
SELECTORS = st.fixed_dictionaries({}, optional={
    "exactMatch": st.none() | st.fixed_dictionaries({"name": TEXTS}),
    "regexMatch": st.none() | st.fixed_dictionaries({"pattern": TEXTS}),
    "labelMatch": st.none() | st.fixed_dictionaries({}, optional={
        "matchLabels": st.dictionaries(TEXTS, TEXTS, max_size=70),
        "matchExpressions": st.lists(st.fixed_dictionaries(
            {"key": TEXTS, "operator": TEXTS | st.just("In"), "values": st.lists(TEXTS)}), max_size=3),
    }),
})  # fmt: skip
TYPES = st.sampled_from(["Node", "HyperNode", "x"])
WRITTEN_MEMBERS = st.fixed_dictionaries({"type": TYPES}, optional={"selector": SELECTORS})
SPECS = st.fixed_dictionaries({"tier": TIERS_WRITTEN}, optional={
    "tierName": TEXTS,
    "members": st.lists(WRITTEN_MEMBERS, max_size=5)
    | st.lists(WRITTEN_MEMBERS, min_size=1, max_size=1).map(lambda one: one * 10_001),
})  # fmt: skip


@settings(max_examples=settings().max_examples * 2)
@given(st.lists(st.tuples(st.sampled_from("abcd"), SPECS), max_size=6))
def test_there_is_always_a_tree(written: list[tuple[str, object]]) -> None:
    """What does not decode never comes; of the rest each is in the tree or says why not."""
    world = HyperNodeWorld().tell(node("own-7"), node("node-0"), hyper_node("mine", 1, named("own-7")))
    kept = HyperNodeTree()
    for name, spec in written:
        try:
            made = decoder(HyperNode).decode(msgspec.json.encode({"metadata": {"name": name}, "spec": spec}))
        except msgspec.ValidationError:
            continue
        found = kept.tree_of(world.tell(made))
        assert found.node_counts.keys() == world.hyper_nodes.keys()
        assert len(found.tree.levels) <= TIERS.value
        domains = {each for names in found.tree.domains for each in names}
        assert domains | found.problems.keys() >= world.hyper_nodes.keys()
        assert "mine" in domains
