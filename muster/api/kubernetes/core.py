"""Kubernetes' own objects that Muster reads, reduced to the relevant fields; most are in core/v1.

Scheduling constraints of pods are in `constraints`, volumes in `storage`, StatefulSets in `apps`.
"""

from typing import Any

from msgspec import field

from muster.api import names
from muster.api.base import Resource, Wire
from muster.api.kubernetes import constraints, devices, meta
from muster.api.kubernetes.scheduling import JobScheduling, PodSchedulingGroup

Quantities = dict[str, str | int | float]
"""Maps a resource to its quantity as written, e.g. {"cpu": "500m", "nvidia.com/gpu": 8}."""
DEFAULT_GRACE_S = 30.0
"""Kubernetes' default grace period of a pod."""


class ResourceRequirements(Wire):
    """requests and limits of a container or pod, and the claims that a container uses."""

    requests: Quantities = field(default_factory=dict)
    limits: Quantities = field(default_factory=dict)
    claims: list[devices.UsedClaim] = field(default_factory=list)


class EnvVar(Wire):
    """One environment variable; `value_from` stays plain JSON."""

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


class ContainerStateWaiting(Wire):
    """The reason why a container has not started yet, or is waiting to be restarted."""

    reason: str = ""
    message: str = ""


class ContainerStateTerminated(Wire):
    """The state of a terminated container; policies of a Job refer to the container's exit code."""

    exit_code: int
    reason: str = ""
    finished_at: str | None = None


class ContainerState(Wire):
    """The state of a container that is waiting or has terminated.

    Both fields are unset while the container is running.
    """

    waiting: ContainerStateWaiting | None = None
    terminated: ContainerStateTerminated | None = None


class ContainerStatus(Wire):
    """The status of one container, as kubelet reports it."""

    name: str = ""
    ready: bool = False
    restart_count: int = 0
    resources: ResourceRequirements | None = None
    """Actual resources of the container, which may differ from its requests while a resize is pending."""
    allocated_resources: Quantities = field(default_factory=dict)
    """Resources that kubelet has allocated to the container."""
    state: ContainerState = field(default_factory=ContainerState)


class PodResourceClaim(Wire):
    """An entry of a pod's `resourceClaims`: a name, and an existing claim or the template of a claim."""

    name: str = ""
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class PodSpec(Wire):
    """spec of a pod or pod template."""

    containers: list[Container] = field(default_factory=list)
    init_containers: list[Container] = field(default_factory=list)
    volumes: list[dict[str, Any]] = field(default_factory=list)
    node_name: str = ""
    node_selector: dict[str, str] = field(default_factory=dict)
    affinity: constraints.Affinity | None = None
    tolerations: list[constraints.Toleration] = field(default_factory=list)
    scheduling_gates: list[constraints.SchedulingGate] = field(default_factory=list)
    topology_spread_constraints: list[constraints.TopologySpreadConstraint] = field(default_factory=list)
    scheduler_name: str = ""
    priority: int | None = None
    priority_class_name: str = ""
    preemption_policy: str = ""
    active_deadline_seconds: int | None = None
    termination_grace_period_seconds: int | None = None
    restart_policy: str = ""
    hostname: str = ""
    subdomain: str = ""
    host_network: bool = False
    overhead: Quantities = field(default_factory=dict)
    resources: ResourceRequirements | None = None
    resource_claims: list[PodResourceClaim] = field(default_factory=list)
    scheduling_group: PodSchedulingGroup | None = None


class PodStatus(Wire):
    """Status of a pod, as kubelet and kube-scheduler report it."""

    phase: str = ""
    reason: str = ""
    message: str = ""
    conditions: list[meta.ReportedCondition] = field(default_factory=list)
    container_statuses: list[ContainerStatus] = field(default_factory=list)
    init_container_statuses: list[ContainerStatus] = field(default_factory=list)
    start_time: str | None = None
    resources: ResourceRequirements | None = None
    """Actual resources of the whole pod, if the spec sets resources for the pod as a whole."""
    allocated_resources: Quantities = field(default_factory=dict)
    """Resources that kubelet has allocated to the pod as a whole."""
    resource_claim_statuses: list[devices.PodResourceClaimStatus] = field(default_factory=list)
    extended_resource_claim_status: devices.PodExtendedResourceClaimStatus | None = None

    def condition(self, kind: str) -> meta.ReportedCondition | None:
        """Return the condition of this type, such as PodScheduled; None if the pod has no such condition."""
        return next((condition for condition in self.conditions if condition.type == kind), None)


class Pod(meta.Object):
    """A pod: a member of a gang, or another user of a node's capacity."""

    spec: PodSpec = field(default_factory=PodSpec)
    status: PodStatus = field(default_factory=PodStatus)

    @property
    def finished(self) -> bool:
        """True if the pod has succeeded or failed, and therefore no longer uses resources."""
        return self.status.phase in {"Succeeded", "Failed"}

    @property
    def deciding_statuses(self) -> list[ContainerStatus]:
        """Statuses of the containers that determine the pod's phase: all but sidecars, as in Kubernetes."""
        sidecars = {each.name for each in self.spec.init_containers if each.restart_policy == "Always"}
        init = [status for status in self.status.init_container_statuses if status.name not in sidecars]
        return [*init, *self.status.container_statuses]


class Taint(Wire):
    """A taint of a node."""

    key: str
    effect: str
    value: str = ""


class NodeSpec(Wire):
    """Taints of a node, and the flag `unschedulable` of a cordoned node."""

    unschedulable: bool = False
    taints: list[Taint] = field(default_factory=list)


class NodeCondition(Wire):
    """A condition of a node, such as Ready."""

    type: str
    status: str
    last_transition_time: str | None = None


class NodeStatus(Wire):
    """status of a node: the resources that are available to pods, and the conditions."""

    allocatable: Quantities = field(default_factory=dict)
    conditions: list[NodeCondition] = field(default_factory=list)


class Node(meta.Object):
    """A node, on which the planner places pods."""

    spec: NodeSpec = field(default_factory=NodeSpec)
    status: NodeStatus = field(default_factory=NodeStatus)


class Namespace(meta.Object):
    """A namespace, whose labels can opt in to Muster."""

    @property
    def queue(self) -> str:
        """The queue for pods of the namespace; empty if the namespace names no queue, or opts out of Muster."""
        labels = self.metadata.labels
        return "" if names.opted_out(labels) else labels.get(names.QUEUE, "")


class PriorityClass(meta.Object):
    """A scheduling.k8s.io/v1 PriorityClass, which orders gangs."""

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


class Lease(meta.Object):
    """A Lease, whose holder is the leader."""

    spec: LeaseSpec = field(default_factory=LeaseSpec)


class IndexedJobSpec(Wire):
    """spec of a batch/v1 Job; the pod template stays plain JSON."""

    parallelism: int | None = None
    completions: int | None = None
    completion_mode: str = "NonIndexed"
    suspend: bool = False
    backoff_limit: int | None = None
    success_policy: dict[str, Any] | None = None
    template: dict[str, Any] = field(default_factory=dict)
    scheduling: JobScheduling | None = None


class IndexedJob(meta.Object):
    """A Job of batch/v1 (not Volcano's)."""

    spec: IndexedJobSpec = field(default_factory=IndexedJobSpec)
    status: dict[str, Any] = field(default_factory=dict)


class Event(meta.Object):
    """A core/v1 Event, which is a message about an object."""

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
SERVICES = Resource("", "v1", "services", "Service", meta.Object)
SECRETS = Resource("", "v1", "secrets", "Secret", meta.Object)
CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap", meta.Object)
EVENTS = Resource("", "v1", "events", "Event", Event)
LEASES = Resource("coordination.k8s.io", "v1", "leases", "Lease", Lease)
PRIORITY_CLASSES = Resource(
    "scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", PriorityClass, namespaced=False
)
INDEXED_JOBS = Resource("batch", "v1", "jobs", "Job", IndexedJob)
CRON_JOBS = Resource("batch", "v1", "cronjobs", "CronJob", meta.Object)
REPLICATION_CONTROLLERS = Resource("", "v1", "replicationcontrollers", "ReplicationController", meta.Object)
NETWORK_POLICIES = Resource("networking.k8s.io", "v1", "networkpolicies", "NetworkPolicy", meta.Object)
