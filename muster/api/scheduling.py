"""scheduling.volcano.sh/v1beta1: PodGroup (no status subresource: clients rely on it) and Queue."""

from typing import Annotated, Literal

from msgspec import Meta, field

from muster.api.base import Resource, Wire
from muster.api.core import Quantities
from muster.api.meta import LabelSelector, Object

PodGroupPhase = Literal["", "Pending", "Running", "Unknown", "Inqueue", "Completed"]
QueueState = Literal["", "Open", "Closed", "Closing", "Unknown"]
NonNegative = Annotated[int, Meta(ge=0)]


class NetworkTopology(Wire):
    """How near to each other pods must be. At most one of the two `highest_tier` fields is set."""

    mode: Literal["hard", "soft"] = "hard"
    highest_tier_allowed: int | None = None
    highest_tier_name: str | None = None


class SubGroupPolicy(Wire):
    """Sub-groups of a gang: pods with the same values under `match_label_keys` belong together."""

    name: str = ""
    network_topology: NetworkTopology | None = None
    sub_group_size: Annotated[int, Meta(ge=1)] | None = None
    min_sub_groups: NonNegative | None = None
    label_selector: LabelSelector | None = None
    match_label_keys: list[str] = field(default_factory=list)


class PodGroupSpec(Wire):
    """spec of a gang."""

    min_member: NonNegative = 0
    min_task_member: dict[str, int] = field(default_factory=dict)
    queue: str = "default"
    priority_class_name: str = ""
    min_resources: Quantities | None = None
    network_topology: NetworkTopology | None = None
    sub_group_policy: list[SubGroupPolicy] = field(default_factory=list)


class PodGroupCondition(Wire):
    """Why a gang is where it is."""

    type: Literal["Unschedulable", "Scheduled"]
    status: str
    transition_id: str = field(default="", name="transitionID")
    last_transition_time: str | None = None
    reason: str = ""
    message: str = ""


class PodGroupStatus(Wire):
    """status of a gang; the scheduler side writes it."""

    phase: PodGroupPhase = ""
    conditions: list[PodGroupCondition] = field(default_factory=list)
    running: NonNegative = 0
    succeeded: NonNegative = 0
    failed: NonNegative = 0


class PodGroup(Object):
    """A gang: pods that start together or not at all."""

    spec: PodGroupSpec = field(default_factory=PodGroupSpec)
    status: PodGroupStatus = field(default_factory=PodGroupStatus)


class Guarantee(Wire):
    """Resources that no other queue can take."""

    resource: Quantities = field(default_factory=dict)


class NodeGroupTerms(Wire):
    """Node groups that a queue must or should (not) use; the field names are Kubernetes' style."""

    required: list[str] = field(default_factory=list, name="requiredDuringSchedulingIgnoredDuringExecution")
    preferred: list[str] = field(default_factory=list, name="preferredDuringSchedulingIgnoredDuringExecution")


class QueueAffinity(Wire):
    """Node groups of a queue."""

    node_group_affinity: NodeGroupTerms | None = None
    node_group_anti_affinity: NodeGroupTerms | None = None


class Cluster(Wire):
    """A cluster that a queue may extend to (stored, no behaviour)."""

    name: str = ""
    weight: int = 0
    capacity: Quantities = field(default_factory=dict)


class QueueSpec(Wire):
    """spec of a queue."""

    weight: Annotated[int, Meta(ge=1, le=65535)] = 1
    capability: Quantities = field(default_factory=dict)
    deserved: Quantities = field(default_factory=dict)
    guarantee: Guarantee = field(default_factory=Guarantee)
    reclaimable: bool | None = None
    parent: str = ""
    priority: int = 0
    dequeue_strategy: Literal["fifo", "traverse"] = "traverse"
    type: str = ""
    affinity: QueueAffinity | None = None
    extend_clusters: list[Cluster] = field(default_factory=list)


class Reservation(Wire):
    """Nodes set aside for a queue (stored, no behaviour)."""

    nodes: list[str] = field(default_factory=list)
    resource: Quantities = field(default_factory=dict)


class QueueStatus(Wire):
    """status of a queue."""

    state: QueueState = ""
    allocated: Quantities = field(default_factory=dict)
    pending: int = 0
    running: int = 0
    inqueue: int = 0
    completed: int = 0
    unknown: int = 0
    reservation: Reservation | None = None


class Queue(Object):
    """A queue: cluster-scoped, a node in the tree of fair shares."""

    spec: QueueSpec = field(default_factory=QueueSpec)
    status: QueueStatus = field(default_factory=QueueStatus)

    @property
    def open(self) -> bool:
        """Whether new gangs may enter. A queue just created has no state yet and is usable at once (volcano #3173)."""
        return self.status.state in {"", "Open"}


POD_GROUPS = Resource("scheduling.volcano.sh", "v1beta1", "podgroups", "PodGroup", PodGroup)
QUEUES = Resource("scheduling.volcano.sh", "v1beta1", "queues", "Queue", Queue, namespaced=False)
