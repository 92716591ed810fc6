"""Demands of a pod on other pods, as queries: (anti-)affinity and topology spread constraints.

The demands follow kube-scheduler's rules. For `matchLabelKeys` and `mismatchLabelKeys`, the API server adds conditions
with the pod's own label values to the selectors of a new pod. Templates lack these conditions, so the module adds them
for templates, too.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from extender.planner import reasons
from extender.planner.state.queries import Labels, Mark, Marks, PodSelector, Query, QueryTable, requirements
from muster.api.kubernetes.constraints import PodAffinity, PodAffinityTerm, TopologySpreadConstraint
from muster.api.kubernetes.core import PodSpec
from muster.api.limits import CONDITIONS, TERMS, LimitError
from muster.resources.labels import Requirement, Requirements


@dataclass(frozen=True, slots=True)
class AntiAffinityRule:
    """Rule that no pod that matches the query is allowed in the same domain."""

    query: Query
    topology_key: str

    @property
    def mark(self) -> Mark:
        """Mark (id) of pods with this rule: the rule's query, its topology key, and the query as text."""
        return ("apart", self.query.mark, self.topology_key, str(self.query))


@dataclass(frozen=True, slots=True)
class Spread:
    """A required topology spread constraint."""

    topology_key: str
    query: Query | None
    """Selects the pods that the constraint counts. None if the selector is missing or empty, so that no existing pods
    count.
    """
    max_skew: int
    min_domains: int
    honor_affinity: bool
    honor_taints: bool
    empty_selector: bool
    """True for an empty selector: the constraint counts the pod that is being placed, but no existing pods."""


@dataclass(frozen=True, slots=True)
class AffinityPreference:
    """Preference for (weight 1 to 100) or against (-100 to -1) pods that match a query in the same domain."""

    query: Query
    topology_key: str
    weight: int


@dataclass(frozen=True, slots=True)
class Neighbours:
    """All demands of one pod on other pods."""

    together: Query | None = None
    """Selects the pods that match all affinity terms; one must be in the domain of each of `together_keys`."""
    together_keys: tuple[str, ...] = ()
    apart: tuple[AntiAffinityRule, ...] = ()
    spreads: tuple[Spread, ...] = ()
    preferences: tuple[AffinityPreference, ...] = ()
    """Preferences, which affect only the scores of nodes."""

    def __bool__(self) -> bool:
        return bool(self.together or self.apart or self.spreads)

    def shape(self) -> list[object]:
        """The demands as a part of a pod class's key; equal demands have equal shapes."""
        return [
            self.together.mark if self.together else None,
            self.together_keys,
            [rule.mark for rule in self.apart],
            [spread.query.mark if spread.query else None for spread in self.spreads],
            [(wish.query.mark, wish.topology_key, wish.weight) for wish in self.preferences],
        ]

    @property
    def queries(self) -> list[Query]:
        """Queries of the required demands."""
        asked = (self.together, *(rule.query for rule in self.apart), *(spread.query for spread in self.spreads))
        return [query for query in asked if query is not None]

    def restrict_own_kind(self, matched: Marks) -> bool:
        """Return True if placing a pod with these marks can change which nodes the next pod of its class may use."""
        return any(query.mark in matched for query in self.queries)


NONE = Neighbours()


def neighbours_of(spec: PodSpec, namespace: str, labels: Labels, queries: QueryTable) -> Neighbours:
    """Return a pod's demands on other pods. Raises LimitError for more terms, or conditions in them, than allowed."""
    near, far = _affinities(spec)
    preferred = [(one.pod_affinity_term, one.weight) for one in near.preferred]
    preferred += [(one.pod_affinity_term, -one.weight) for one in far.preferred]
    terms = [*near.required, *far.required, *(term for term, _ in preferred)]
    spreads = [one for one in spec.topology_spread_constraints if one.when_unsatisfiable == "DoNotSchedule"]
    if not terms and not spreads:
        return NONE
    parts = {id(term): _part(term, namespace, labels) for term in terms}
    counted = [_spread_part(spread, namespace, labels) for spread in spreads]
    conditions = sum(part.conditions for part in (*parts.values(), *counted) if part is not None)
    for limit, count in ((TERMS, len(terms) + len(spreads)), (CONDITIONS, conditions)):
        if count > limit.value:
            raise LimitError(reasons.exclusions.too_many_terms(count=count, limit=limit))

    def query(term: PodAffinityTerm) -> Query | None:
        return queries.intern([parts[id(term)]], namespace)

    together = queries.intern((parts[id(term)] for term in near.required), namespace) if near.required else None
    return Neighbours(
        together,
        tuple(dict.fromkeys(term.topology_key for term in near.required)) if together else (),
        _rules(far.required, query),
        tuple(
            _spread(spread, part, found)
            for spread, part in zip(spreads, counted, strict=True)
            for found in (queries.intern([part], namespace, staying=True) if part is not None else None,)
            if found is not None or part is None
        ),
        tuple(
            AffinityPreference(found, term.topology_key, weight) for term, weight in preferred if (found := query(term))
        ),
    )


def rules_of(spec: PodSpec, namespace: str, labels: Labels, queries: QueryTable) -> Neighbours:
    """Return the demands of a bound pod that exclude other pods, up to the maximum number of terms.

    Demands that do not exclude other pods have no effect after the binding. A bound pod with too many terms is not
    rejected, because it already uses the node.
    """
    _, far = _affinities(spec)
    parts, left = {}, CONDITIONS.value
    for term in far.required[: TERMS.value]:
        part = _part(term, namespace, labels)
        left -= part.conditions
        if left < 0:
            break
        parts[id(term)] = part
    terms = [term for term in far.required if id(term) in parts]
    apart = _rules(terms, lambda term: queries.intern([parts[id(term)]], namespace))
    return Neighbours(apart=apart) if apart else NONE


def _affinities(spec: PodSpec) -> tuple[PodAffinity, PodAffinity]:
    near = (spec.affinity and spec.affinity.pod_affinity) or PodAffinity()
    far = (spec.affinity and spec.affinity.pod_anti_affinity) or PodAffinity()
    return near, far


def _rules(
    terms: Iterable[PodAffinityTerm], query: Callable[[PodAffinityTerm], Query | None]
) -> tuple[AntiAffinityRule, ...]:
    found = ((query(term), term.topology_key) for term in terms)
    return tuple(
        dict.fromkeys(AntiAffinityRule(each, key) for each, key in found if each is not None and each.takes(key))
    )


_NOTHING = (Requirement("", "In", frozenset()),)


def _part(term: PodAffinityTerm, namespace: str, labels: Labels) -> PodSelector:
    wanted: Requirements = _NOTHING  # without a selector, no pod matches
    if term.label_selector is not None:
        wanted = (
            requirements(term.label_selector)
            + _own(term.match_label_keys, "In", labels)
            + _own(term.mismatch_label_keys, "NotIn", labels)
        )
    selector = term.namespace_selector
    own = not term.namespaces and selector is None
    return PodSelector(
        tuple(dict.fromkeys(wanted)),
        frozenset([namespace] if own else term.namespaces),
        requirements(selector) if selector is not None else None,
    )


def _own(keys: Iterable[str], operator: str, labels: Labels) -> Requirements:
    """Return conditions with the pod's own label values; a label that the pod lacks adds no condition."""
    return tuple(Requirement(key, operator, frozenset((labels[key],))) for key in keys if key in labels)


def _spread_part(spread: TopologySpreadConstraint, namespace: str, labels: Labels) -> PodSelector | None:
    """Return a selector of the pods that a spread constraint counts; None if its selector is missing or empty."""
    if spread.label_selector is None:
        return None
    wanted = requirements(spread.label_selector) + _own(spread.match_label_keys, "In", labels)
    return PodSelector(tuple(dict.fromkeys(wanted)), frozenset((namespace,))) if wanted else None


def _spread(constraint: TopologySpreadConstraint, part: PodSelector | None, query: Query | None) -> Spread:
    return Spread(
        constraint.topology_key,
        query,
        constraint.max_skew,
        constraint.min_domains or 1,
        constraint.node_affinity_policy == "Honor",
        constraint.node_taints_policy == "Honor",
        empty_selector=constraint.label_selector is not None and part is None,
    )
