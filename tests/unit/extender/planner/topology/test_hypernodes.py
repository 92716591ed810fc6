"""HyperNodes become a tree: domains that nest, and for whatever does not fit a reason that names it."""

import pytest
from hypernode_world import HyperNodeWorld, hyper_node, labelled, matching, named, node, paths, within

from extender.planner.topology.hypernodes import HyperNodes, HyperNodeTree
from muster.api.kubernetes.core import Node
from muster.api.kubernetes.meta import LabelSelector, LabelSelectorRequirement
from muster.api.limits import ALL_PATTERNS, PLACES, TIERS
from muster.api.volcano.topology import HyperNode, HyperNodeMember, MemberSelector


def made(world: HyperNodeWorld) -> HyperNodes:
    """What the HyperNodes come to."""
    return HyperNodeTree().tree_of(world)


def reasons(found: HyperNodes) -> dict[str, list[str]]:
    """Per HyperNode what is wrong, in words for machines."""
    return {name: [problem.reason for problem in problems] for name, problems in found.problems.items()}


def test_members_by_name_pattern_and_label() -> None:
    """All three ways, and HyperNodes of HyperNodes."""
    world = HyperNodeWorld().tell(
        *(node(f"n{number}") for number in range(4)),
        node("x1", rack="c"),
        hyper_node("a", 1, named("n0", "gone")),
        hyper_node("b", 1, matching("n[12]")),
        hyper_node("c", 1, labelled(rack="c")),
        hyper_node("ab", 2, within("a", "b", "not-yet")),
    )
    found = made(world)
    assert not found.problems
    assert (found.tree.levels, found.tree.tiers) == (("tier 2", "tier 1"), (2, 1))
    assert found.tree.domains == (("ab", "c"), ("a", "b", "c"))
    assert paths(world, found.tree) == {
        "n0": ("ab", "a"),
        "n1": ("ab", "b"),
        "n2": ("ab", "b"),
        "n3": (),
        "x1": ("c", "c"),
    }
    assert (found.node_counts, found.missing) == ({"a": 1, "b": 2, "c": 1, "ab": 2}, {"ab": ("not-yet",)})
    found = made(world.tell(hyper_node("b", 1, matching("("))))
    assert (found.node_counts["b"], found.node_counts["ab"]) == (0, 2), "one that is left out exists"


def test_patterns_are_searched_for_anywhere_in_the_name() -> None:
    """As Volcano's: `node-1` takes `node-10` as well, `^node-1$` does not."""
    world = HyperNodeWorld().tell(node("node-1"), node("node-10"), hyper_node("a", 1, matching("node-1")))
    assert made(world).node_counts == {"a": 2}
    world.tell(hyper_node("a", 1, matching("^node-1$")))
    assert made(world).node_counts == {"a": 1}


def test_selectors_with_expressions() -> None:
    """As the API server's label selectors; an empty one takes nothing."""

    def selected(*expressions: tuple[str, str, list[str]]) -> list[HyperNodeMember]:
        terms = [LabelSelectorRequirement(key=key, operator=how, values=values) for key, how, values in expressions]
        selector = MemberSelector(label_match=LabelSelector(match_expressions=terms))
        return [HyperNodeMember(type="Node", selector=selector)]

    world = HyperNodeWorld().tell(
        node("a", rack="1", gpu="h100"),
        node("b", rack="2"),
        node("c"),
        hyper_node("in", 1, selected(("rack", "In", ["1", "2"]))),
        hyper_node("exists", 2, selected(("rack", "Exists", []), ("gpu", "NotIn", ["h100"]))),
        hyper_node("absent", 3, selected(("rack", "DoesNotExist", []))),
        hyper_node("nothing", 4, selected()),
        hyper_node("odd", 5, selected(("rack", "Like", ["1"]))),
    )
    assert made(world).node_counts == {"in": 2, "exists": 1, "absent": 1, "nothing": 0, "odd": 0}


def nodes(count: int) -> list[Node]:
    """So many nodes, n0 and so on."""
    return [node(f"n{number}") for number in range(count)]


SHAPES: dict[str, tuple[list[Node | HyperNode], dict[str, tuple[str, ...]], dict[str, list[str]], dict[str, str]]] = {
    "a node in two HyperNodes of a tier is in no domain of it, and in one above": (
        [*nodes(4), hyper_node("a", 1, named("n0", "n1")), hyper_node("b", 1, named("n1", "n2")),
         hyper_node("top", 2, within("a", "b"))],
        {"n0": ("top", "a"), "n1": ("top",), "n2": ("top", "b"), "n3": ()},
        {"a": ["Overlap"], "b": ["Overlap"]},
        {"a": "other HyperNodes of tier 1 too: n1 (in b).", "b": "n1 (in a)"},
    ),
    "a HyperNode with two parents has none, and its nodes are together": (
        [*nodes(2), hyper_node("a", 1, named("n0")), hyper_node("b", 1, named("n1")),
         hyper_node("p", 2, within("a", "b")), hyper_node("q", 2, within("a"))],
        {"n0": ("a", "a"), "n1": ("p", "b")},
        {name: ["SeveralParents"] for name in "apq"},
        {"a": "HyperNode a is a member of p, q"},
    ),
    "circles are broken where tiers do not fall, and the other links count": (
        [*nodes(1), hyper_node("a", 1, [*named("n0"), *within("b")]), hyper_node("b", 2, within("a")),
         hyper_node("c", 2, within("d")), hyper_node("d", 2, within("c"))],
        {"n0": ("b", "a")},
        {"a": ["TierOrder"], "b": ["TierOrder"], "c": ["TierOrder"] * 2, "d": ["TierOrder"] * 2},
        {"a": "HyperNode b of tier 2 cannot be a member of a of tier 1"},
    ),
    "an unbalanced tree has the topmost domain of a tier or lower, as Volcano reads a highest tier": (
        [*nodes(3), hyper_node("leaf", 1, named("n0")), hyper_node("mid", 2, named("n1")),
         hyper_node("top", 3, [*within("leaf", "mid"), *named("n2")])],
        {"n0": ("top", "leaf", "leaf"), "n1": ("top", "mid"), "n2": ("top",)}, {}, {},
    ),
    "nodes named on every tier nest, and a HyperNode whose nodes part above is no domain": (
        [*nodes(6), hyper_node("a", 1, named("n0", "n1")), hyper_node("b", 1, named("n2", "n3")),
         hyper_node("p", 2, named("n0", "n1", "n2")), hyper_node("q", 2, named("n3", "n4"))],
        {"n0": ("p", "a"), "n1": ("p", "a"), "n2": ("p",), "n3": ("q",), "n4": ("q",), "n5": ()},
        {"b": ["Torn"], "p": ["Torn"], "q": ["Torn"]},
        {"b": "the nodes of HyperNode b are in several HyperNodes of tier 2 or lower (p, q): they are in no domain of "
         "tier 1 and below"},
    ),
    "one that cannot be evaluated, as admission was bypassed, is left out alone": (
        [*nodes(1), hyper_node("a", 1, named("n0")), hyper_node("bad", 1, matching("(")),
         hyper_node("empty", 2, []), hyper_node("top", 2, within("a", "bad"))],
        {"n0": ("top", "a")},
        {"bad": ["Invalid"], "empty": ["Invalid"]},
        {"bad": "regexMatch pattern is invalid"},
    ),
    "a node that more HyperNodes take than are kept of it is in no domain": (
        [*nodes(2), hyper_node("mine", 1, named("n1")),
         *(hyper_node(f"h{number}", 1 + number % 4, named("n0")) for number in range(PLACES.value + 1))],
        {"n0": (), "n1": ("mine",) * 4},
        {f"h{number}": ["TooMany"] for number in range(PLACES.value + 1)},
        {"h3": f"nodes that are members of more than {PLACES.value} HyperNodes (limit {PLACES.name!r}): n0."},
    ),
    "no HyperNodes make a tree without levels": (nodes(1), {"n0": ()}, {}, {}),
}  # fmt: skip
"""Name → objects, path of each node, words for machines by HyperNode, and what is told."""


@pytest.mark.parametrize("name", SHAPES)
def test_domains_nest_and_what_does_not_is_told(name: str) -> None:
    """What cannot be is named at each HyperNode that it is about, and all others are as before."""
    objects, expected, problems, told = SHAPES[name]
    world = HyperNodeWorld().tell(*objects)
    found = made(world)
    assert paths(world, found.tree) == expected
    assert reasons(found) == problems
    assert [words for name, words in told.items() if words not in found.problems[name][0].message] == []


def test_names_of_tiers() -> None:
    """A tier has one name, and a name one tier: the lowest; who says otherwise is told."""
    world = HyperNodeWorld().tell(
        hyper_node("a", 1, named("n"), "rack"),
        hyper_node("b", 1, named("n"), "rack"),
        hyper_node("c", 1, named("n"), "shelf"),
        hyper_node("d", 2, named("n"), "rack"),
        hyper_node("e", 3, named("n")),
    )
    found = made(world)
    assert found.tree.tier_names == ("", "", "rack")
    assert reasons(found) == {"c": ["TierName"], "d": ["TierName"]}
    assert found.tree.level("rack") == 2


def test_more_tiers_than_a_tree_has_levels() -> None:
    """The lowest count, the others say why they do not."""
    tiers = [hyper_node(f"t{tier}", tier, named("n")) for tier in range(TIERS.value + 2)]
    found = made(HyperNodeWorld().tell(node("n"), *tiers))
    assert found.tree.tiers == tuple(range(TIERS.value - 1, -1, -1))
    assert reasons(found) == {"t16": ["TooMany"], "t17": ["TooMany"]}
    for words in (f"more than {TIERS.value} tiers", f"tiers above {TIERS.value - 1}"):
        assert words in found.problems["t16"][0].message


def test_more_patterns_than_are_compared() -> None:
    """The oldest HyperNodes count; equal patterns are one."""
    per = 64

    def one(name: str, pattern: str, created: str) -> HyperNode:
        return hyper_node(name, 1, [each for k in range(per) for each in matching(f"{pattern}-{k}$")], created=created)

    fourth = ALL_PATTERNS.value // per // 4
    several = [one(f"h{number}", f"x{number}", f"2026-01-{number + 1:02}") for number in range(fourth)]
    world = HyperNodeWorld().tell(node("x0-0"), *several)
    assert not made(world).problems
    many = [one(f"i{number:03}", f"y{number}", "2027") for number in range(3 * ALL_PATTERNS.value // per // 4 + 1)]
    found = made(world.tell(*many, hyper_node("same", 2, matching("x0-0$"), created="2028")))
    assert reasons(found) == {many[-1].metadata.name: ["TooMany"]}
    assert paths(world, found.tree) == {"x0-0": ("same", "h0")}


def test_nothing_is_made_anew_while_nothing_changes_that_matters() -> None:
    """Heartbeats, cordons and statuses are none of a tree's business."""
    kept, world = HyperNodeTree(), HyperNodeWorld().tell(node("n"), hyper_node("a", 1, named("n")))
    before = kept.tree_of(world)
    cordoned = node("n")
    cordoned.spec.unschedulable = True
    counted = hyper_node("a", 1, named("n"))
    counted.status.node_count = 1
    assert kept.tree_of(world.tell(cordoned, counted)) is before
    assert kept.tree_of(world.tell(node("n", rack="1"))) is not before


@pytest.mark.parametrize(("gone", "change", "expected"), [
    pytest.param(True, node("n", rack="1"), {"a": 0, "b": 0}, id="node gone"),
    pytest.param(False, node("n", rack="2"), {"a": 0, "b": 1}, id="relabelled"),
    pytest.param(True, hyper_node("a", 1, []), {"b": 0}, id="hyper node gone"),
    pytest.param(False, node("m", rack="2"), {"a": 1, "b": 1}, id="late node"),
])  # fmt: skip
def test_a_relabelled_node_leaves_its_old_hyper_node(
    change: Node | HyperNode, expected: dict[str, int], *, gone: bool
) -> None:
    """Volcano leaves it in both; whoever goes takes its membership along."""
    kept, two = HyperNodeTree(), [hyper_node(name, 1, labelled(rack=rack)) for name, rack in (("a", "1"), ("b", "2"))]
    world = HyperNodeWorld().tell(node("n", rack="1"), *two)
    assert kept.tree_of(world).node_counts == {"a": 1, "b": 0}
    (world.forget if gone else world.tell)(change)
    assert kept.tree_of(world).node_counts == expected
