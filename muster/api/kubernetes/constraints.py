"""Scheduling constraints in the spec of a pod: tolerations, affinities, spreading and gates of core/v1.

kube-scheduler evaluates all fields of this module. Muster's planner evaluates the fields in the same way, so that its
plans pass kube-scheduler's checks.
"""

from collections.abc import Mapping

from msgspec import field

from muster.api.base import Wire
from muster.api.kubernetes.meta import LabelSelector, LabelSelectorRequirement


class Toleration(Wire):
    """A toleration of a pod, which matches certain taints."""

    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""
    toleration_seconds: int | None = None


class NodeSelectorTerm(Wire):
    """One term of a node selector, in which all expressions and fields must match; an empty term matches no node."""

    match_expressions: list[LabelSelectorRequirement] = field(default_factory=list)
    match_fields: list[LabelSelectorRequirement] = field(default_factory=list)


class NodeSelector(Wire):
    """A list of alternative terms, at least one of which must match the node."""

    node_selector_terms: list[NodeSelectorTerm] = field(default_factory=list)


class PreferredSchedulingTerm(Wire):
    """A preference for nodes, with its weight (1-100)."""

    weight: int
    preference: NodeSelectorTerm


class NodeAffinity(Wire):
    """Node affinity; the field names are Kubernetes' own."""

    required: NodeSelector | None = field(default=None, name="requiredDuringSchedulingIgnoredDuringExecution")
    preferred: list[PreferredSchedulingTerm] = field(
        default_factory=list, name="preferredDuringSchedulingIgnoredDuringExecution"
    )


def conditions_of(selector: Mapping[str, str], affinity: NodeAffinity | None) -> int:
    """Return the number of a pod's conditions on nodes: labels in its node selector, and expressions in all terms."""
    terms = [] if affinity is None else [wish.preference for wish in affinity.preferred]
    if affinity is not None and affinity.required is not None:
        terms += affinity.required.node_selector_terms
    return len(selector) + sum(len(term.match_expressions) + len(term.match_fields) for term in terms)


class PodAffinityTerm(Wire):
    """A term that selects other pods, and the key of the topology domain to share with these pods or to avoid."""

    topology_key: str
    label_selector: LabelSelector | None = None
    namespaces: list[str] = field(default_factory=list)
    namespace_selector: LabelSelector | None = None
    match_label_keys: list[str] = field(default_factory=list)
    mismatch_label_keys: list[str] = field(default_factory=list)


class WeightedPodAffinityTerm(Wire):
    """A preferred affinity term about other pods, with its weight (1-100)."""

    weight: int
    pod_affinity_term: PodAffinityTerm


class PodAffinity(Wire):
    """Required and preferred affinity terms: place the pod near other pods or, for anti-affinity, away from them."""

    required: list[PodAffinityTerm] = field(default_factory=list, name="requiredDuringSchedulingIgnoredDuringExecution")
    preferred: list[WeightedPodAffinityTerm] = field(
        default_factory=list, name="preferredDuringSchedulingIgnoredDuringExecution"
    )


class Affinity(Wire):
    """All affinities of a pod."""

    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None


class SchedulingGate(Wire):
    """A gate, which prevents scheduling of the pod until the gate is removed."""

    name: str


class TopologySpreadConstraint(Wire):
    """A limit on how unevenly matching pods may be spread over topology domains."""

    max_skew: int
    topology_key: str
    when_unsatisfiable: str
    label_selector: LabelSelector | None = None
    min_domains: int | None = None
    node_affinity_policy: str = "Honor"
    node_taints_policy: str = "Ignore"
    match_label_keys: list[str] = field(default_factory=list)
