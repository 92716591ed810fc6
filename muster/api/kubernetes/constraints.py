"""Scheduling constraints in the spec of a pod: tolerations, affinities, spreading and gates of core/v1.

kube-scheduler reads all of these fields, and Muster's planner models them, so that its plans pass kube-scheduler's
checks.
"""

from collections.abc import Mapping

from msgspec import field

from muster.api.base import Wire
from muster.api.kubernetes.meta import LabelSelector, LabelSelectorRequirement


class Toleration(Wire):
    """The taints that a pod tolerates."""

    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""
    toleration_seconds: int | None = None


class NodeSelectorTerm(Wire):
    """All expressions and fields must match; an empty term matches nothing."""

    match_expressions: list[LabelSelectorRequirement] = field(default_factory=list)
    match_fields: list[LabelSelectorRequirement] = field(default_factory=list)


class NodeSelector(Wire):
    """Alternatives, of which one term must match."""

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
    """Return the number of conditions on nodes: labels of the selector, and expressions of all terms."""
    terms = [] if affinity is None else [wish.preference for wish in affinity.preferred]
    if affinity is not None and affinity.required is not None:
        terms += affinity.required.node_selector_terms
    return len(selector) + sum(len(term.match_expressions) + len(term.match_fields) for term in terms)


class PodAffinityTerm(Wire):
    """Pods that must (not) be in the same topology domain."""

    topology_key: str
    label_selector: LabelSelector | None = None
    namespaces: list[str] = field(default_factory=list)
    namespace_selector: LabelSelector | None = None
    match_label_keys: list[str] = field(default_factory=list)
    mismatch_label_keys: list[str] = field(default_factory=list)


class WeightedPodAffinityTerm(Wire):
    """A preference about other pods, with its weight (1-100)."""

    weight: int
    pod_affinity_term: PodAffinityTerm


class PodAffinity(Wire):
    """Pods that this pod must or should be near to, or away from."""

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
    """A gate, which prevents scheduling of the pod until it is removed."""

    name: str


class TopologySpreadConstraint(Wire):
    """A limit on uneven spreading of matching pods."""

    max_skew: int
    topology_key: str
    when_unsatisfiable: str
    label_selector: LabelSelector | None = None
    min_domains: int | None = None
    node_affinity_policy: str = "Honor"
    node_taints_policy: str = "Ignore"
    match_label_keys: list[str] = field(default_factory=list)
