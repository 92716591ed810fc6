"""The core/v1 objects that Muster reads, trimmed to the fields that decide something."""

from typing import Any

from msgspec import field

from muster.api.base import Resource, Wire
from muster.api.meta import LabelSelector, LabelSelectorRequirement, Object

Quantities = dict[str, str | int | float]
"""Resource name → quantity as written, e.g. {"cpu": "500m", "nvidia.com/gpu": 8}."""


class ResourceRequirements(Wire):
    """requests and limits of a container or pod."""

    requests: Quantities = field(default_factory=dict)
    limits: Quantities = field(default_factory=dict)


class EnvVar(Wire):
    """One environment variable; `value_from` stays as it came."""

    name: str
    value: str = ""
    value_from: dict[str, Any] | None = None


class ContainerPort(Wire):
    """One port of a container."""

    container_port: int
    name: str = ""
    protocol: str = "TCP"
    host_port: int = 0
    host_ip: str = field(default="", name="hostIP")


class Container(Wire):
    """One container, init container or sidecar (an init container whose restart_policy is Always)."""

    name: str = ""
    image: str = ""
    command: list[str] = field(default_factory=list)
    args: list[str] = field(default_factory=list)
    env: list[EnvVar] = field(default_factory=list)
    ports: list[ContainerPort] = field(default_factory=list)
    resources: ResourceRequirements = field(default_factory=ResourceRequirements)
    restart_policy: str = ""


class Toleration(Wire):
    """What taints a pod puts up with."""

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
    """Alternatives: one term must match."""

    node_selector_terms: list[NodeSelectorTerm] = field(default_factory=list)


class PreferredSchedulingTerm(Wire):
    """A wish about nodes, with its weight (1-100)."""

    weight: int
    preference: NodeSelectorTerm


class NodeAffinity(Wire):
    """Node affinity; the field names are Kubernetes' own."""

    required: NodeSelector | None = field(default=None, name="requiredDuringSchedulingIgnoredDuringExecution")
    preferred: list[PreferredSchedulingTerm] = field(
        default_factory=list, name="preferredDuringSchedulingIgnoredDuringExecution"
    )


class PodAffinityTerm(Wire):
    """Pods that must (not) be in the same topology domain."""

    topology_key: str
    label_selector: LabelSelector | None = None
    namespaces: list[str] = field(default_factory=list)
    namespace_selector: LabelSelector | None = None
    match_label_keys: list[str] = field(default_factory=list)
    mismatch_label_keys: list[str] = field(default_factory=list)


class WeightedPodAffinityTerm(Wire):
    """A wish about neighbours, with its weight (1-100)."""

    weight: int
    pod_affinity_term: PodAffinityTerm


class PodAffinity(Wire):
    """Inter-pod affinity or anti-affinity."""

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
    """A gate: the pod is not scheduled while any is left."""

    name: str


class TopologySpreadConstraint(Wire):
    """How evenly matching pods must be spread."""

    max_skew: int
    topology_key: str
    when_unsatisfiable: str
    label_selector: LabelSelector | None = None
    min_domains: int | None = None
    node_affinity_policy: str = "Honor"
    node_taints_policy: str = "Ignore"
    match_label_keys: list[str] = field(default_factory=list)


class PodSpec(Wire):
    """spec of a pod or pod template."""

    containers: list[Container] = field(default_factory=list)
    init_containers: list[Container] = field(default_factory=list)
    volumes: list[dict[str, Any]] = field(default_factory=list)
    node_name: str = ""
    node_selector: dict[str, str] = field(default_factory=dict)
    affinity: Affinity | None = None
    tolerations: list[Toleration] = field(default_factory=list)
    scheduling_gates: list[SchedulingGate] = field(default_factory=list)
    topology_spread_constraints: list[TopologySpreadConstraint] = field(default_factory=list)
    scheduler_name: str = ""
    priority: int | None = None
    priority_class_name: str = ""
    preemption_policy: str = ""
    restart_policy: str = ""
    hostname: str = ""
    subdomain: str = ""
    host_network: bool = False
    overhead: Quantities = field(default_factory=dict)
    resources: ResourceRequirements | None = None


class ContainerStateTerminated(Wire):
    """How a container ended."""

    exit_code: int
    reason: str = ""


class ContainerState(Wire):
    """Only the end of a container matters to Muster."""

    terminated: ContainerStateTerminated | None = None


class ContainerStatus(Wire):
    """State of one container."""

    name: str = ""
    ready: bool = False
    restart_count: int = 0
    state: ContainerState = field(default_factory=ContainerState)


class PodCondition(Wire):
    """A pod condition, e.g. PodScheduled."""

    type: str
    status: str
    reason: str = ""
    message: str = ""
    last_transition_time: str | None = None


class PodStatus(Wire):
    """status of a pod."""

    phase: str = ""
    reason: str = ""
    message: str = ""
    conditions: list[PodCondition] = field(default_factory=list)
    container_statuses: list[ContainerStatus] = field(default_factory=list)
    init_container_statuses: list[ContainerStatus] = field(default_factory=list)
    start_time: str | None = None


class Pod(Object):
    """A pod."""

    spec: PodSpec = field(default_factory=PodSpec)
    status: PodStatus = field(default_factory=PodStatus)

    @property
    def finished(self) -> bool:
        """Succeeded or failed: it holds no resources any more."""
        return self.status.phase in {"Succeeded", "Failed"}


class Taint(Wire):
    """A taint of a node."""

    key: str
    effect: str
    value: str = ""


class NodeSpec(Wire):
    """spec of a node."""

    unschedulable: bool = False
    taints: list[Taint] = field(default_factory=list)


class NodeCondition(Wire):
    """A node condition, e.g. Ready."""

    type: str
    status: str


class NodeStatus(Wire):
    """status of a node."""

    allocatable: Quantities = field(default_factory=dict)
    conditions: list[NodeCondition] = field(default_factory=list)


class Node(Object):
    """A node."""

    spec: NodeSpec = field(default_factory=NodeSpec)
    status: NodeStatus = field(default_factory=NodeStatus)


class Namespace(Object):
    """A namespace; its labels can say "manage this"."""


class PriorityClass(Object):
    """A scheduling.k8s.io/v1 PriorityClass."""

    value: int = 0
    global_default: bool = False
    preemption_policy: str = ""


class LeaseSpec(Wire):
    """spec of a coordination.k8s.io/v1 Lease."""

    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    acquire_time: str | None = None
    renew_time: str | None = None
    lease_transitions: int | None = None


class Lease(Object):
    """A Lease: who leads."""

    spec: LeaseSpec = field(default_factory=LeaseSpec)


class IndexedJobSpec(Wire):
    """spec of a batch/v1 Job; the template stays as it came."""

    parallelism: int | None = None
    completions: int | None = None
    completion_mode: str = "NonIndexed"
    suspend: bool = False
    template: dict[str, Any] = field(default_factory=dict)


class IndexedJob(Object):
    """A Job of batch/v1 (not Volcano's)."""

    spec: IndexedJobSpec = field(default_factory=IndexedJobSpec)
    status: dict[str, Any] = field(default_factory=dict)


class Event(Object):
    """A core/v1 Event."""

    involved_object: dict[str, str] = field(default_factory=dict)
    reason: str = ""
    message: str = ""
    type: str = ""
    count: int = 0
    first_timestamp: str | None = None
    last_timestamp: str | None = None


PODS = Resource("", "v1", "pods", "Pod", Pod)
NODES = Resource("", "v1", "nodes", "Node", Node, namespaced=False)
NAMESPACES = Resource("", "v1", "namespaces", "Namespace", Namespace, namespaced=False)
SERVICES = Resource("", "v1", "services", "Service", Object)
SECRETS = Resource("", "v1", "secrets", "Secret", Object)
CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap", Object)
EVENTS = Resource("", "v1", "events", "Event", Event)
LEASES = Resource("coordination.k8s.io", "v1", "leases", "Lease", Lease)
PRIORITY_CLASSES = Resource(
    "scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", PriorityClass, namespaced=False
)
INDEXED_JOBS = Resource("batch", "v1", "jobs", "Job", IndexedJob)
CRON_JOBS = Resource("batch", "v1", "cronjobs", "CronJob", Object)
REPLICATION_CONTROLLERS = Resource("", "v1", "replicationcontrollers", "ReplicationController", Object)
NETWORK_POLICIES = Resource("networking.k8s.io", "v1", "networkpolicies", "NetworkPolicy", Object)
