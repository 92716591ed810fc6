"""The extender's wire types (kube-scheduler extender/v1), in PascalCase because the Go types have no json tags."""

from msgspec import Struct, field

from muster.api.kubernetes.core import Pod


class ExtenderWire(Struct, rename="pascal", omit_defaults=False, kw_only=True, gc=False):
    """Base type of the extender's wire types, with keys exactly as Go writes them."""


class ExtenderArgs(ExtenderWire):
    """Arguments of the extender's calls `filter` and `prioritize`.

    Only the names of nodes are sent, because nodeCacheCapable is set.
    """

    pod: Pod
    node_names: list[str] | None = None


class ExtenderFilterResult(ExtenderWire):
    """Result of a filter call: the nodes that pass the filter.

    An empty list rejects the pod; an error makes kube-scheduler try again.
    """

    node_names: list[str] = field(default_factory=list)
    failed_nodes: dict[str, str] = field(default_factory=dict)
    failed_and_unresolvable_nodes: dict[str, str] = field(default_factory=dict)
    error: str = ""


class HostPriority(ExtenderWire):
    """Score of one node, from 0 to 10."""

    host: str
    score: int


class MetaPod(ExtenderWire):
    """A reference to a pod, by its UID."""

    uid: str = field(name="UID")


class MetaVictims(ExtenderWire):
    """Pods that would be evicted from one node."""

    pods: list[MetaPod] = field(default_factory=list)
    num_pdb_violations: int = field(default=0, name="NumPDBViolations")


class ExtenderPreemptionArgs(ExtenderWire):
    """Candidate nodes of a preemption, with the UIDs of their victims only, because nodeCacheCapable is set."""

    pod: Pod
    node_name_to_meta_victims: dict[str, MetaVictims] | None = None


class ExtenderPreemptionResult(ExtenderWire):
    """Result of a preemption call: the nodes that remain candidates."""

    node_name_to_meta_victims: dict[str, MetaVictims] = field(default_factory=dict)


class ExtenderBindingArgs(ExtenderWire):
    """Arguments of a bind call: the pod to bind, and its node."""

    pod_name: str
    pod_namespace: str
    pod_uid: str = field(name="PodUID")
    node: str


class ExtenderBindingResult(ExtenderWire):
    """Result of a bind call; an empty error means that the pod is bound."""

    error: str = ""
