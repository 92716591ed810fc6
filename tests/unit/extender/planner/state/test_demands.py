"""The demands of a pod on the pods around it, as queries: what is asked, of which pods, and for which domains."""

from typing import Any

import msgspec
import pytest

from extender.planner.state.neighbours import NONE, Neighbours, neighbours_of, rules_of
from extender.planner.state.queries import Query, QueryTable
from muster.api.kubernetes.core import PodSpec
from muster.api.limits import CONDITIONS, TERMS, TOPOLOGY_KEYS, LimitError

JSON = dict[str, Any]
REQUIRED, PREFERRED = (f"{each}DuringSchedulingIgnoredDuringExecution" for each in ("required", "preferred"))
APP = {"matchLabels": {"app": "a"}}
PODS = {
    "itself": ("ns", {"app": "a", "tier": "web"}), "same app": ("ns", {"app": "a"}),
    "same tier": ("ns", {"app": "b", "tier": "web"}), "in red": ("red", {"app": "a", "tier": "web"}),
    "in blue": ("blue", {"app": "a", "tier": "db"}),
}  # fmt: skip
RED = {"matchLabels": {"team": "red"}}


def term(**more: Any) -> JSON:
    """A term for the domain of a pod's zone."""
    return {"topologyKey": "zone", **more}


def affinity(kind: str, *terms: JSON) -> JSON:
    """The spec of a pod with these required terms."""
    return {"affinity": {kind: {REQUIRED: list(terms)}}}


def spread(**more: Any) -> JSON:
    """The spec of a pod with one topology spread constraint."""
    one = {"topologyKey": "zone", "maxSkew": 2, "whenUnsatisfiable": "DoNotSchedule", **more}
    return {"topologySpreadConstraints": [one]}


def table() -> QueryTable:
    """A table that knows the labels of namespaces."""
    queries = QueryTable()
    queries.on_namespace("red", {"team": "red"})
    return queries


def demands(spec: JSON, *, rules: bool = False) -> tuple[Neighbours, QueryTable]:
    """Those of a pod, and the table of their queries."""
    read, queries = rules_of if rules else neighbours_of, table()
    return read(msgspec.convert(spec, PodSpec), *PODS["itself"], queries), queries


def matched(query: Query | None, queries: QueryTable) -> set[str]:
    """The pods that a query matches; the table finds it by namespace and label for just those."""
    named = {name for name, pod in PODS.items() if query.matches(*pod, queries.namespaces.get(pod[0], {}))}
    assert {name for name, pod in PODS.items() if query.mark in queries.matching(*pod)} == named
    return named


@pytest.mark.parametrize(("asked", "expected"), [
    (term(labelSelector=APP), {"itself", "same app"}),
    (term(labelSelector={}), {"itself", "same app", "same tier"}),
    (term(), set()),
    (term(labelSelector=APP, namespaces=["red", "blue"]), {"in red", "in blue"}),
    (term(labelSelector=APP, namespaceSelector={}), {"itself", "same app", "in red", "in blue"}),
    (term(labelSelector=APP, namespaceSelector=RED), {"in red"}),
    (term(labelSelector=APP, namespaceSelector=RED, namespaces=["blue"]), {"in red", "in blue"}),
    (term(labelSelector=APP, matchLabelKeys=["tier", "none"]), {"itself"}),
    (term(labelSelector=APP, mismatchLabelKeys=["tier"]), {"same app"}),
    (term(labelSelector={}, mismatchLabelKeys=["app"]), {"same tier"}),
    (term(labelSelector={"matchExpressions": [{"key": "tier", "operator": "Exists"}]}), {"itself", "same tier"}),
    (term(labelSelector={"matchExpressions": [{"key": "tier", "operator": "DoesNotExist"}]}), {"same app"}),
    (term(labelSelector={"matchExpressions": [{"key": "app", "operator": "In", "values": ["b", "c"]}]}), {"same tier"}),
])  # fmt: skip
def test_which_pods_a_term_is_about(asked: JSON, expected: set[str]) -> None:
    """Affinity, anti-affinity and preferences alike; without a selector no pod at all."""
    together, queries = demands(affinity("podAffinity", asked))
    assert (matched(together.together, queries), together.together_keys) == (expected, ("zone",))
    apart, queries = demands(affinity("podAntiAffinity", asked))
    assert [(matched(rule.query, queries), rule.topology_key) for rule in apart.apart] == [(expected, "zone")]
    wish = {PREFERRED: [{"weight": 7, "podAffinityTerm": asked}]}
    found, queries = demands({"affinity": {"podAffinity": wish, "podAntiAffinity": wish}})
    assert [(matched(each.query, queries), each.weight) for each in found.preferences] == [
        (expected, 7),
        (expected, -7),
    ]
    assert not found
    assert together
    assert apart


def test_affinity_terms_hold_together_and_anti_affinity_terms_one_by_one() -> None:
    """Equal rules are one, whatever their order; what kube-scheduler may ignore is no demand."""
    tier = {"matchLabels": {"tier": "web"}}
    terms = term(labelSelector=APP), {"topologyKey": "host", "labelSelector": tier}, term(labelSelector=APP)
    found, queries = demands(affinity("podAffinity", *terms))
    assert (matched(found.together, queries), found.together_keys) == ({"itself"}, ("zone", "host"))
    found, queries = demands(affinity("podAntiAffinity", *terms))
    assert [(matched(rule.query, queries), rule.topology_key) for rule in found.apart] == [
        ({"itself", "same app"}, "zone"),
        ({"itself", "same tier"}, "host"),
    ]
    assert demands(spread(whenUnsatisfiable="ScheduleAnyway"))[0] is NONE
    assert demands({})[0] is NONE


@pytest.mark.parametrize(("constraint", "expected", "empty"), [
    (spread(labelSelector=APP), {"itself", "same app"}, False),
    (spread(labelSelector=APP, matchLabelKeys=["tier"]), {"itself"}, False),
    (spread(labelSelector={}, matchLabelKeys=["tier"]), {"itself", "same tier"}, False),
    (spread(labelSelector={}), None, True),
    (spread(), None, False),
])  # fmt: skip
def test_which_pods_a_spread_constraint_counts(constraint: JSON, expected: set[str] | None, *, empty: bool) -> None:
    """Those of its namespace; a selector that is missing or empty counts none that exists."""
    found, queries = demands(constraint)
    [one] = found.spreads
    assert (matched(one.query, queries) if one.query else None, one.empty_selector) == (expected, empty)
    assert one.query is None or one.query.mark[0] == "staying"
    assert (one.topology_key, one.max_skew, one.min_domains) == ("zone", 2, 1)
    assert (one.honor_affinity, one.honor_taints) == (True, False)
    policies = {"minDomains": 3, "nodeAffinityPolicy": "Ignore", "nodeTaintsPolicy": "Honor"}
    [other] = demands(spread(**policies))[0].spreads
    assert (other.min_domains, other.honor_affinity, other.honor_taints) == (3, False, True)


@pytest.mark.parametrize("over", [0, 1])
def test_the_limits_of_terms_and_conditions_hold_for_all_kinds_together(over: int) -> None:
    """A pod on a node keeps as many of its rules as they allow, and is not refused."""
    keys = [f"key-{number % TOPOLOGY_KEYS.value}" for number in range(TERMS.value - 2 + over)]
    terms = [{"topologyKey": key, "labelSelector": APP} for key in keys]
    wish = {PREFERRED: [{"weight": 1, "podAffinityTerm": term()}]}
    many = {"affinity": {"podAntiAffinity": {REQUIRED: terms}, "podAffinity": wish}, **spread(labelSelector=APP)}
    wide = affinity("podAntiAffinity", term(namespaces=[f"n{number}" for number in range(CONDITIONS.value - 1 + over)]))
    for spec, kept in ((many, TOPOLOGY_KEYS.value), (wide, 1 - over)):
        if over:
            with pytest.raises(LimitError, match="at most"):
                demands(spec)
        else:
            assert demands(spec)[0]
        assert len(demands(spec, rules=True)[0].apart) == kept
    assert len(demands(affinity("podAntiAffinity", *terms, *terms), rules=True)[0].apart) == TOPOLOGY_KEYS.value
    assert demands(affinity("podAffinity", *terms), rules=True)[0] is NONE


def test_equal_demands_have_equal_shapes_and_others_do_not() -> None:
    """By which classes of pods are told apart."""
    queries = table()
    preference = {PREFERRED: [{"weight": 7, "podAffinityTerm": term(labelSelector=APP)}]}
    specs = [
        affinity("podAffinity", term(labelSelector=APP)), affinity("podAntiAffinity", term(labelSelector=APP)),
        affinity("podAffinity", term(labelSelector={})), spread(labelSelector=APP), spread(),
        affinity("podAffinity", {"topologyKey": "host", "labelSelector": APP}),
        affinity("podAntiAffinity", {"topologyKey": "host", "labelSelector": APP}),
        {"affinity": {"podAffinity": preference}}, {"affinity": {"podAntiAffinity": preference}},
    ]  # fmt: skip
    found = [neighbours_of(msgspec.convert(spec, PodSpec), *PODS["itself"], queries) for spec in specs * 2]
    shapes = [repr(each.shape()) for each in found]
    assert len(set(shapes)) == len(specs)
    assert shapes[: len(specs)] == shapes[len(specs) :]
