"""Demands of a pod on the pods around it: (anti-)affinity and topology spread, as queries.

The rules are kube-scheduler's. `matchLabelKeys` and `mismatchLabelKeys` are conditions on the pod's own labels, which
the API server adds to the selectors of a new pod; here they are added again, as templates need it.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from extender.planner.state.queries import (
    Labels,
    Mark,
    Part,
    Query,
    QueryTable,
    requirements,
)
from muster.api.kubernetes.constraints import PodAffinity, PodAffinityTerm, TopologySpreadConstraint
from muster.api.kubernetes.core import PodSpec
from muster.resources.labels import Requirement, Requirements


@dataclass(frozen=True, slots=True)
class Rule:
    """No pod of the query in the same domain."""

    query: Query
    topology_key: str

    @property
    def mark(self) -> Mark:
        """The mark of pods with this rule: its query, its topology key, and the query in words."""
        return ("apart", self.query.mark, self.topology_key, str(self.query))


@dataclass(frozen=True, slots=True)
class Spread:
    """A required topology spread constraint."""

    topology_key: str
    query: Query | None
    """None if it counts no pods: a selector that is missing or empty."""
    max_skew: int
    min_domains: int
    honor_affinity: bool
    honor_taints: bool
    empty_selector: bool
    """An empty selector counts no existing pod, but the one to be placed."""


@dataclass(frozen=True, slots=True)
class Wish:
    """Pods of the query in the same domain are welcome (weight 1 to 100) or unwelcome (-100 to -1)."""

    query: Query
    topology_key: str
    weight: int


@dataclass(frozen=True, slots=True)
class Neighbours:
    """All demands of one pod."""

    together: Query | None = None
    """Pods that match every affinity term; each of `together_keys` must have one in the same domain."""
    together_keys: tuple[str, ...] = ()
    apart: tuple[Rule, ...] = ()
    spreads: tuple[Spread, ...] = ()
    wishes: tuple[Wish, ...] = ()
    """Preferences, which only score nodes."""

    def __bool__(self) -> bool:
        return bool(self.together or self.apart or self.spreads)

    def shape(self) -> list[object]:
        """Return a value for the key of a class, equal for equal demands."""
        return [
            self.together.mark if self.together else None,
            self.together_keys,
            [rule.mark for rule in self.apart],
            [spread.query.mark if spread.query else None for spread in self.spreads],
            [(wish.query.mark, wish.topology_key, wish.weight) for wish in self.wishes],
        ]

    def concern_themselves(self, matched: frozenset[Mark]) -> bool:
        """Return True if a pod with these marks, once placed, changes where the next of its kind can be."""
        asked = [self.together, *(rule.query for rule in self.apart), *(spread.query for spread in self.spreads)]
        return any(query is not None and query.mark in matched for query in asked)


NONE = Neighbours()


def neighbours_of(spec: PodSpec, namespace: str, labels: Labels, queries: QueryTable) -> Neighbours:
    """Return the demands of a pod with this spec, namespace and labels."""
    near = (spec.affinity and spec.affinity.pod_affinity) or PodAffinity()
    far = (spec.affinity and spec.affinity.pod_anti_affinity) or PodAffinity()
    spreads = [one for one in spec.topology_spread_constraints if one.when_unsatisfiable == "DoNotSchedule"]

    def query(term: PodAffinityTerm) -> Query:
        return queries.intern([_part(term, namespace, labels)])

    weighted = [(term.pod_affinity_term, term.weight) for term in near.preferred]
    weighted += [(term.pod_affinity_term, -term.weight) for term in far.preferred]
    wishes = tuple(Wish(query(term), term.topology_key, weight) for term, weight in weighted)
    if not (near.required or far.required or spreads or wishes):
        return NONE
    return Neighbours(
        queries.intern(_part(term, namespace, labels) for term in near.required) if near.required else None,
        tuple(dict.fromkeys(term.topology_key for term in near.required)),
        tuple(dict.fromkeys(Rule(query(term), term.topology_key) for term in far.required)),
        tuple(_spread(constraint, namespace, labels, queries) for constraint in spreads),
        wishes,
    )


_NOTHING = (Requirement("", "In", frozenset()),)


def _part(term: PodAffinityTerm, namespace: str, labels: Labels) -> Part:
    wanted: Requirements = _NOTHING  # no selector matches no pod
    if term.label_selector is not None:
        wanted = (
            requirements(term.label_selector)
            + _own(term.match_label_keys, "In", labels)
            + _own(term.mismatch_label_keys, "NotIn", labels)
        )
    selector = term.namespace_selector
    own = not term.namespaces and selector is None
    return Part(
        tuple(dict.fromkeys(wanted)),
        frozenset([namespace] if own else term.namespaces),
        requirements(selector) if selector is not None else None,
    )


def _own(keys: Iterable[str], operator: str, labels: Labels) -> Requirements:
    """Return conditions with the pod's own values; a label that the pod lacks makes none."""
    return tuple(Requirement(key, operator, frozenset((labels[key],))) for key in keys if key in labels)


def _spread(constraint: TopologySpreadConstraint, namespace: str, labels: Labels, queries: QueryTable) -> Spread:
    selector, query, empty = constraint.label_selector, None, False
    if selector is not None:
        wanted = requirements(selector) + _own(constraint.match_label_keys, "In", labels)
        empty = not wanted
        if wanted:
            query = queries.intern([Part(tuple(dict.fromkeys(wanted)), frozenset((namespace,)))], staying=True)
    return Spread(
        constraint.topology_key,
        query,
        constraint.max_skew,
        constraint.min_domains or 1,
        constraint.node_affinity_policy == "Honor",
        constraint.node_taints_policy == "Honor",
        empty,
    )
