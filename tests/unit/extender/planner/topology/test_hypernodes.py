"""HyperNodes become a tree: domains that nest, and for whatever does not fit a reason that names it."""

import pytest
from hypernode_world import HyperNodeWorld, hyper_node, labelled, matching, named, node, path_of, within

from extender.planner.topology.hypernodes import HyperNodes, HyperNodeTree
from muster.api.kubernetes.meta import LabelSelector, LabelSelectorRequirement
from muster.api.limits import ALL_PATTERNS, PLACES, TIERS
from muster.api.volcano.topology import Member, MemberSelector


def made(world: HyperNodeWorld) -> HyperNodes:
    """What the HyperNodes come to."""
    return HyperNodeTree().of(world)


def paths(world: HyperNodeWorld, found: HyperNodes) -> dict[str, tuple[str, ...]]:
    """Per node its domains, outermost first."""
    return {name: path_of(found.tree, column) for name, column in world.index.items()}


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
    assert found.tree.levels == ("tier 2", "tier 1")
    assert found.tree.tiers == (2, 1)
    assert found.tree.domains == (("ab", "c"), ("a", "b", "c"))
    assert paths(world, found) == {"n0": ("ab", "a"), "n1": ("ab", "b"), "n2": ("ab", "b"), "n3": (), "x1": ("c", "c")}
    assert (found.node_counts, found.missing) == ({"a": 1, "b": 2, "c": 1, "ab": 2}, {"ab": ("not-yet",)})
    assert not found.problems


def test_patterns_are_searched_for_anywhere_in_the_name() -> None:
    """As Volcano's: `node-1` takes `node-10` as well, `^node-1$` does not."""
    world = HyperNodeWorld().tell(node("node-1"), node("node-10"), hyper_node("a", 1, matching("node-1")))
    assert made(world).node_counts == {"a": 2}
    world.tell(hyper_node("a", 1, matching("^node-1$")))
    assert made(world).node_counts == {"a": 1}


def test_selectors_with_expressions() -> None:
    """As the API server's label selectors; an empty one takes nothing."""

    def selected(*expressions: tuple[str, str, list[str]]) -> list[Member]:
        terms = [LabelSelectorRequirement(key=key, operator=how, values=values) for key, how, values in expressions]
        return [Member(type="Node", selector=MemberSelector(label_match=LabelSelector(match_expressions=terms)))]

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


def test_no_hyper_nodes_make_a_tree_without_levels() -> None:
    """Every node is in no domain."""
    found = made(HyperNodeWorld().tell(node("a")))
    assert (found.tree.levels, found.tree.domain_of.shape[0]) == ((), 0)


def test_a_node_in_two_hyper_nodes_of_a_tier_is_told_at_both() -> None:
    """It is in no domain of that tier; above, where all agree, it is in one, and the other nodes are as before."""
    world = HyperNodeWorld().tell(
        *(node(f"n{number}") for number in range(4)),
        hyper_node("a", 1, named("n0", "n1")),
        hyper_node("b", 1, named("n1", "n2")),
        hyper_node("top", 2, within("a", "b")),
    )
    found = made(world)
    assert paths(world, found) == {"n0": ("top", "a"), "n1": ("top",), "n2": ("top", "b"), "n3": ()}
    [problem] = found.problems["a"]
    assert problem.reason == "Overlap"
    assert "other HyperNodes of tier 1 too: n1 (in b)." in problem.message
    assert "n1 (in a)" in found.problems["b"][0].message
    assert "top" not in found.problems


def test_a_hyper_node_with_two_parents_has_none() -> None:
    """All three are told; its nodes are together still."""
    world = HyperNodeWorld().tell(
        node("n"),
        node("m"),
        hyper_node("a", 1, named("n")),
        hyper_node("b", 1, named("m")),
        hyper_node("p", 2, within("a", "b")),
        hyper_node("q", 2, within("a")),
    )
    found = made(world)
    assert paths(world, found) == {"n": ("a", "a"), "m": ("p", "b")}
    assert reasons(found) == {name: ["SeveralParents"] for name in "apq"}
    assert "HyperNode a is a member of p, q" in found.problems["a"][0].message


def test_circles_and_tiers_that_do_not_fall_are_broken_where_they_rise() -> None:
    """Each link that cannot be is named at both ends, and the others count."""
    world = HyperNodeWorld().tell(
        node("n"),
        hyper_node("a", 1, [*named("n"), *within("b")]),
        hyper_node("b", 2, within("a")),
        hyper_node("c", 2, within("d")),
        hyper_node("d", 2, within("c")),
    )
    found = made(world)
    assert paths(world, found) == {"n": ("b", "a")}
    assert reasons(found) == {"a": ["TierOrder"], "b": ["TierOrder"], "c": ["TierOrder"] * 2, "d": ["TierOrder"] * 2}
    assert "HyperNode b of tier 2 can not be a member of a of tier 1" in found.problems["a"][0].message


def test_unbalanced_trees_have_the_topmost_domain_of_a_tier_or_lower() -> None:
    """Volcano's reading of a highest tier: whatever HyperNode of that tier or a lower one may hold a gang."""
    world = HyperNodeWorld().tell(
        *(node(f"n{number}") for number in range(3)),
        hyper_node("leaf", 1, named("n0")),
        hyper_node("mid", 2, named("n1")),
        hyper_node("top", 3, [*within("leaf", "mid"), *named("n2")]),
    )
    assert paths(world, made(world)) == {"n0": ("top", "leaf", "leaf"), "n1": ("top", "mid"), "n2": ("top",)}


def test_nodes_named_on_every_tier_nest_as_well() -> None:
    """Without members of type HyperNode; a HyperNode whose nodes part above is told and is no domain."""
    world = HyperNodeWorld().tell(
        *(node(f"n{number}") for number in range(6)),
        hyper_node("a", 1, named("n0", "n1")),
        hyper_node("b", 1, named("n2", "n3")),
        hyper_node("p", 2, named("n0", "n1", "n2")),
        hyper_node("q", 2, named("n3", "n4")),
    )
    found = made(world)
    assert paths(world, found) == {
        "n0": ("p", "a"),
        "n1": ("p", "a"),
        "n2": ("p",),
        "n3": ("q",),
        "n4": ("q",),
        "n5": (),
    }
    assert reasons(found) == {"b": ["Torn"], "p": ["Torn"], "q": ["Torn"]}
    assert "HyperNode b are in several HyperNodes of tier 2 or lower (p, q)" in found.problems["b"][0].message


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


def test_one_that_cannot_be_evaluated_is_left_out_alone() -> None:
    """It got in without admission; the rest is a tree."""
    world = HyperNodeWorld().tell(
        node("n"),
        hyper_node("a", 1, named("n")),
        hyper_node("bad", 1, matching("(")),
        hyper_node("empty", 2, []),
        hyper_node("top", 2, within("a", "bad")),
    )
    found = made(world)
    assert paths(world, found) == {"n": ("top", "a")}
    assert reasons(found) == {"bad": ["Invalid"], "empty": ["Invalid"]}
    assert "regexMatch pattern is invalid" in found.problems["bad"][0].message
    assert found.node_counts == {"a": 1, "bad": 0, "empty": 0, "top": 2}


def test_more_tiers_than_a_tree_has_levels() -> None:
    """The lowest count, the others say why they do not."""
    world = HyperNodeWorld().tell(
        node("n"), *(hyper_node(f"t{tier}", tier, named("n")) for tier in range(TIERS.value + 2))
    )
    found = made(world)
    assert found.tree.tiers == tuple(range(TIERS.value - 1, -1, -1))
    assert reasons(found) == {"t16": ["TooMany"], "t17": ["TooMany"]}


def test_more_patterns_than_are_compared() -> None:
    """The oldest HyperNodes count; equal patterns are one."""
    per = 64
    several = [
        hyper_node(
            f"h{number}",
            1,
            [each for k in range(per) for each in matching(f"x{number}-{k}$")],
            created=f"2026-01-{number + 1:02}",
        )
        for number in range(ALL_PATTERNS.value // per // 4)
    ]
    world = HyperNodeWorld().tell(node("x0-0"), *several)
    assert not made(world).problems
    many = [
        hyper_node(
            f"i{number:03}", 1, [each for k in range(per) for each in matching(f"y{number}-{k}$")], created="2027"
        )
        for number in range(3 * ALL_PATTERNS.value // per // 4 + 1)
    ]
    found = made(world.tell(*many, hyper_node("same", 2, matching("x0-0$"), created="2028")))
    assert reasons(found) == {many[-1].metadata.name: ["TooMany"]}
    assert paths(world, found) == {"x0-0": ("same", "h0")}


def test_a_node_that_everybody_takes() -> None:
    """More HyperNodes than are kept of a node: it is in no domain, and they are told."""
    world = HyperNodeWorld().tell(
        node("n"),
        node("m"),
        hyper_node("mine", 1, named("m")),
        *(hyper_node(f"h{number}", 1 + number % 4, named("n")) for number in range(PLACES.value + 1)),
    )
    found = made(world)
    assert paths(world, found) == {"n": (), "m": ("mine",) * 4}
    assert reasons(found) == {f"h{number}": ["TooMany"] for number in range(PLACES.value + 1)}


def test_nothing_is_made_anew_while_nothing_changes_that_matters() -> None:
    """Heartbeats, cordons and statuses are none of a tree's business."""
    kept, world = HyperNodeTree(), HyperNodeWorld().tell(node("n"), hyper_node("a", 1, named("n")))
    before = kept.of(world)
    cordoned = node("n")
    cordoned.spec.unschedulable = True
    counted = hyper_node("a", 1, named("n"))
    counted.status.node_count = 1
    assert kept.of(world.tell(cordoned, counted)) is before
    assert kept.of(world.tell(node("n", rack="1"))) is not before


@pytest.mark.parametrize("change", ["node gone", "relabelled", "hyper node gone", "late node"])
def test_a_relabelled_node_leaves_its_old_hyper_node(change: str) -> None:
    """Volcano leaves it in both; whoever goes takes its membership along."""
    kept = HyperNodeTree()
    first = node("n", rack="1")
    world = HyperNodeWorld().tell(first, hyper_node("a", 1, labelled(rack="1")), hyper_node("b", 1, labelled(rack="2")))
    assert kept.of(world).node_counts == {"a": 1, "b": 0}
    match change:
        case "node gone":
            world.forget(first)
            expected = {"a": 0, "b": 0}
        case "relabelled":
            world.tell(node("n", rack="2"))
            expected = {"a": 0, "b": 1}
        case "hyper node gone":
            world.forget(hyper_node("a", 1, []))
            expected = {"b": 0}
        case _:
            world.tell(node("m", rack="2"))
            expected = {"a": 1, "b": 1}
    assert kept.of(world).node_counts == expected
