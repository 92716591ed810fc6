"""scheduling.volcano.sh/v1beta1: PodGroup (no status subresource: clients rely on it) and Queue."""

from typing import Annotated, Literal

from msgspec import Meta, field

from muster.api.base import Resource, Wire
from muster.api.kubernetes.meta import LabelSelector, Object, Time
from muster.api.kubernetes.requirements import Quantities

PodGroupPhase = Literal["", "Pending", "Running", "Unknown", "Inqueue", "Completed"]
QueueState = Literal["", "Open", "Closed", "Closing", "Unknown"]
ConditionType = Literal["Unschedulable", "Scheduled"]
NonNegative = Annotated[int, Meta(ge=0)]


class NetworkTopology(Wire):
    """How near to each other pods must be. At most one of the two `highest_tier` fields is set."""

    mode: Literal["hard", "soft"] = "hard"
    """hard: wait until it can be met; soft: as near as possible."""
    highest_tier_allowed: int | None = None
    """Highest network level the pods may span; 1 is the lowest."""
    highest_tier_name: str | None = None
    """The same, by the level's name."""


class SubGroupPolicy(Wire):
    """Sub-groups of a gang: pods with the same values under `match_label_keys` belong together."""

    name: str = ""
    """Name of the policy, for messages."""
    network_topology: NetworkTopology | None = None
    """How near to each other the pods of one sub-group must be."""
    sub_group_size: Annotated[int, Meta(ge=1)] | None = None
    """Pods in one sub-group."""
    min_sub_groups: NonNegative | None = None
    """Sub-groups that must start together."""
    label_selector: LabelSelector | None = None
    """The pods that this policy is about."""
    match_label_keys: list[str] = field(default_factory=list)
    """Pods with equal values under these labels form a sub-group."""


class PodGroupSpec(Wire):
    """spec of a gang."""

    min_member: NonNegative = 0
    """Pods that must start together."""
    min_task_member: dict[str, int] = field(default_factory=dict)
    """Pods of each task that must start together; counts only if `minMember` is at least their sum."""
    queue: str = "default"
    """The queue whose share the gang uses."""
    priority_class_name: str = ""
    """PriorityClass; of one queue, gangs with a higher value go first."""
    min_resources: Quantities | None = None
    """What the gang needs at least; it enters the queue once this seems possible."""
    network_topology: NetworkTopology | None = None
    """How near to each other all pods must be."""
    sub_group_policy: list[SubGroupPolicy] = field(default_factory=list)
    """Rules for parts of the gang."""


class PodGroupCondition(Wire):
    """Why a gang is where it is."""

    type: ConditionType
    """Unschedulable or Scheduled."""
    status: str
    """True or False."""
    transition_id: str = field(default="", name="transitionID")
    """The planning cycle that wrote it."""
    last_transition_time: Time | None = None
    """Since when."""
    reason: str = ""
    """One word why."""
    message: str = ""
    """A sentence why."""


class PodGroupStatus(Wire):
    """status of a gang; the scheduler side writes it."""

    phase: PodGroupPhase = ""
    """Pending waits for its turn; Inqueue may create pods; Unknown fell under its minimum."""
    conditions: list[PodGroupCondition] = field(default_factory=list)
    """Why the gang waits, or that it is scheduled."""
    running: NonNegative = 0
    """Pods that run."""
    succeeded: NonNegative = 0
    """Pods that succeeded."""
    failed: NonNegative = 0
    """Pods that failed."""


class PodGroup(Object):
    """A gang: pods that start together or not at all."""

    spec: PodGroupSpec = field(default_factory=PodGroupSpec)
    """What must start together."""
    status: PodGroupStatus = field(default_factory=PodGroupStatus)
    """How far it is; the planner writes it."""


class Guarantee(Wire):
    """Resources that no other queue can take."""

    resource: Quantities = field(default_factory=dict)
    """Kept for this queue, used or not."""


class NodeGroupTerms(Wire):
    """Node groups that a queue must or should (not) use; the field names are Kubernetes' style."""

    required: list[str] = field(default_factory=list, name="requiredDuringSchedulingIgnoredDuringExecution")
    """Node groups that are a must."""
    preferred: list[str] = field(default_factory=list, name="preferredDuringSchedulingIgnoredDuringExecution")
    """Node groups that are a wish."""


class QueueAffinity(Wire):
    """Node groups of a queue."""

    node_group_affinity: NodeGroupTerms | None = None
    """Node groups to use."""
    node_group_anti_affinity: NodeGroupTerms | None = None
    """Node groups to stay away from."""


class Cluster(Wire):
    """A cluster that a queue may extend to (stored, no behaviour)."""

    name: str = ""
    """Stored."""
    weight: int = 0
    """Stored."""
    capacity: Quantities = field(default_factory=dict)
    """Stored."""


class QueueSpec(Wire):
    """spec of a queue."""

    weight: Annotated[int, Meta(ge=1, le=65535)] = 1
    """Share of what is left when every queue has what it deserves, relative to its siblings."""
    capability: Quantities = field(default_factory=dict)
    """The most the queue may use; no limit for resources not named."""
    deserved: Quantities = field(default_factory=dict)
    """The queue's quota, which it gets before anything is shared by weight; more is lent and may be reclaimed."""
    guarantee: Guarantee = field(default_factory=Guarantee)
    """Resources that no other queue can take."""
    reclaimable: bool | None = None
    """Whether others may reclaim what this queue borrowed; true if unset."""
    parent: str = ""
    """The queue above; `root` if left out."""
    priority: int = 0
    """Queues with a higher value are served first and reclaimed from last."""
    dequeue_strategy: Literal["fifo", "traverse"] = "traverse"
    """fifo: a gang that does not fit blocks those behind it; traverse: it does not."""
    type: str = ""
    """Stored; Muster does nothing with it."""
    affinity: QueueAffinity | None = None
    """Node groups of the queue."""
    extend_clusters: list[Cluster] = field(default_factory=list)
    """Stored; Muster does nothing with it."""


class Reservation(Wire):
    """Nodes set aside for a queue (stored, no behaviour)."""

    nodes: list[str] = field(default_factory=list)
    """Stored."""
    resource: Quantities = field(default_factory=dict)
    """Stored."""


class QueueStatus(Wire):
    """status of a queue."""

    state: QueueState = ""
    """Open, Closing (gangs still run) or Closed; new gangs enter only an open queue."""
    allocated: Quantities = field(default_factory=dict)
    """What the queue's pods request now."""
    pending: int = 0
    """Gangs that wait for their turn."""
    running: int = 0
    """Gangs that run."""
    inqueue: int = 0
    """Gangs whose pods may be created."""
    completed: int = 0
    """Gangs that completed."""
    unknown: int = 0
    """Gangs that fell under their minimum."""
    reservation: Reservation | None = None
    """Stored; Muster does nothing with it."""
    fair_share: Quantities = field(default_factory=dict)
    """What the queue is due now, by what all queues ask for; the planner writes it, as all that follows."""
    deserved: Quantities = field(default_factory=dict)
    """Its quota, which is the sum of those below it where it sets none."""
    message: str = ""
    """Why the first gang that waits in it waits."""
    usage: Quantities = field(default_factory=dict)
    """What it used over time, where the plugin `proportion` has a half-life."""
    usage_time: Time | None = None
    """When that was."""


class Queue(Object):
    """A queue: cluster-scoped, a node in the tree of fair shares."""

    spec: QueueSpec = field(default_factory=QueueSpec)
    """What the queue may use."""
    status: QueueStatus = field(default_factory=QueueStatus)
    """Its state and use, which the controller writes, and its shares."""

    @property
    def open(self) -> bool:
        """Whether new gangs may enter. A queue just created has no state yet and is usable at once (volcano #3173)."""
        return self.status.state in {"", "Open"}


POD_GROUPS = Resource("scheduling.volcano.sh", "v1beta1", "podgroups", "PodGroup", PodGroup)
QUEUES = Resource("scheduling.volcano.sh", "v1beta1", "queues", "Queue", Queue, namespaced=False)
