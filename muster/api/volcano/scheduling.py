"""scheduling.volcano.sh/v1beta1: PodGroup (without a status subresource, because clients rely on this) and Queue."""

from typing import Annotated, Literal

from msgspec import Meta, field

from muster.api.base import Resource, Wire
from muster.api.kubernetes.core import Quantities
from muster.api.kubernetes.meta import LabelSelector, Object, OwnerReference, Time
from muster.api.muster.reason import NOTHING, Reason, stored

PodGroupPhase = Literal["", "Pending", "Running", "Unknown", "Inqueue", "Completed"]
QueueState = Literal["", "Open", "Closed", "Closing", "Unknown"]
ConditionType = Literal["Unschedulable", "Scheduled"]
NonNegative = Annotated[int, Meta(ge=0)]


class NetworkTopology(Wire):
    """Required proximity of pods in the network. At most one of the two `highest_tier` fields is set."""

    mode: Literal["hard", "soft"] = "hard"
    """hard, or left out: wait until the requirement can be met; soft: as close as possible."""
    highest_tier_allowed: int | None = None
    """Highest network level that the pods may span; 1 is the lowest."""
    highest_tier_name: str | None = None
    """Name of that level, in place of its number."""


class SubGroupPolicy(Wire):
    """Sub-groups of a gang: pods with the same values under `match_label_keys` belong together."""

    name: str = ""
    """Name of the policy, for messages."""
    network_topology: NetworkTopology | None = None
    """Required proximity of the pods of one sub-group."""
    sub_group_size: Annotated[int, Meta(ge=1)] = 1
    """Number of pods in one sub-group; 1 if left out."""
    min_sub_groups: NonNegative = 0
    """Number of sub-groups that must start together; 0 if left out."""
    label_selector: LabelSelector | None = None
    """The pods of this policy."""
    match_label_keys: list[str] = field(default_factory=list)
    """Pods with equal values under these labels form a sub-group."""


class PodGroupSpec(Wire):
    """spec of a gang."""

    min_member: NonNegative = 0
    """Number of pods that must start together."""
    min_task_member: dict[str, int] = field(default_factory=dict)
    """Number of each task's pods that must start together; ignored if `minMember` is less than the sum."""
    queue: str = "default"
    """The queue whose share the gang uses."""
    priority_class_name: str = ""
    """PriorityClass; in a queue, gangs with a higher value come first."""
    min_resources: Quantities | None = None
    """Minimum resources of the gang, which is admitted once they seem available. These resources count against the
    capability, including the part that a running gang does not use.
    """
    network_topology: NetworkTopology | None = None
    """Required proximity of all pods."""
    sub_group_policy: list[SubGroupPolicy] = field(default_factory=list)
    """Rules for parts of the gang."""


NO_ROOM = "NotEnoughResources"
"""Reason of the condition Unschedulable of a gang for which free capacity is insufficient."""
EVICTED = "Evicted"
"""Reason of the condition Unschedulable of a gang whose pods were evicted for another gang."""
PLACED = "Placed"
"""Reason of the condition Unschedulable, with status False, of a gang that has waited and now has planned nodes."""
TOO_FEW_PODS = "NotEnoughPods"
"""Reason of the condition Unschedulable of a gang whose pods do not all exist yet, as for a moment at each start."""
OVER_CAPABILITY = "QueueOverCapability"
"""Reason of that condition of a gang for which the capability of its queue has too little left."""
WORLD_ENDED = "WorldEnded"
"""Reason of that condition of an elastic world whose members have succeeded, so that no further member starts."""
SUSPENDED = "Suspended"
"""Reason of that condition of a gang whose owner wants no pods for now, before its PodGroup is deleted."""


class PodGroupCondition(Wire):
    """A condition of a gang: scheduled or not, and why."""

    type: ConditionType
    """Unschedulable or Scheduled."""
    status: str
    """True or False."""
    transition_id: str = field(default="", name="transitionID")
    """The planning cycle that wrote it."""
    last_transition_time: Time | None = None
    """Time since which the status holds."""
    reason: str = ""
    """Reason, in one word."""
    message: str = ""
    """Reason, in a sentence."""
    why: Reason | None = None
    """The reason as data (a code with parameters), if any component reads it."""


class PodGroupStatus(Wire):
    """status of a gang, written by the scheduler side."""

    phase: PodGroupPhase = ""
    """Phase: Pending waits in its queue, Inqueue may create pods, and Unknown has fewer members than its minimum."""
    conditions: list[PodGroupCondition] = field(default_factory=list)
    """Reason why the gang waits, or that it is scheduled."""
    running: NonNegative = 0
    """Pods that run."""
    succeeded: NonNegative = 0
    """Pods that succeeded."""
    failed: NonNegative = 0
    """Pods that failed."""
    ending: str = ""
    """Reason why the workload has failed; the controller writes it at the end."""
    place: NonNegative = 0
    """Position among the gangs that wait in its queue, from 1: exact to 10, then the first position of ten (21: 21 to
    30), of a hundred and so on. The field is absent if the gang does not wait, and until the first write after its wait
    begins. The field is written at most once a minute."""
    expected_start: Time | None = None
    """Expected start, to the minute, if nodes are reserved for the gang and the time when they become free is known."""

    def true_condition(self, kind: ConditionType) -> PodGroupCondition | None:
        """Return the condition of this type if it is True; None otherwise."""
        return next((each for each in self.conditions if each.type == kind and each.status == "True"), None)


class PodGroup(Object):
    """A gang: pods that start together or not at all."""

    spec: PodGroupSpec = field(default_factory=PodGroupSpec)
    """Desired state."""
    status: PodGroupStatus = field(default_factory=PodGroupStatus)
    """Observed state; the planner writes it."""

    @property
    def why_waiting(self) -> str:
        """Reason why the gang waits, as a sentence; empty if it does not wait."""
        waits = self.status.true_condition("Unschedulable")
        return waits.message if waits else ""

    @property
    def world_ended(self) -> bool:
        """True if members of its elastic world have succeeded, so that it waits for no further member."""
        waits = self.status.true_condition("Unschedulable")
        return waits is not None and waits.reason == WORLD_ENDED

    @property
    def evicted(self) -> Reason:
        """Reason why all pods of the gang were evicted; empty if they were not, or if it waits for something else."""
        conditions = [each for each in self.status.conditions if each.reason == EVICTED]
        with_data = next((each for each in conditions if each.why), conditions[0] if conditions else None)
        return stored(with_data.why, with_data.message) if with_data else NOTHING


class Guarantee(Wire):
    """Resources that no other queue can take."""

    resource: Quantities = field(default_factory=dict)
    """Resources that are held for this queue, used or not."""


class NodeGroupTerms(Wire):
    """Node groups in the style of Kubernetes' affinities (stored, without effect)."""

    required: list[str] = field(default_factory=list, name="requiredDuringSchedulingIgnoredDuringExecution")
    """Stored."""
    preferred: list[str] = field(default_factory=list, name="preferredDuringSchedulingIgnoredDuringExecution")
    """Stored."""


class QueueAffinity(Wire):
    """Node groups of a queue (stored, without effect)."""

    node_group_affinity: NodeGroupTerms | None = None
    """Stored."""
    node_group_anti_affinity: NodeGroupTerms | None = None
    """Stored."""


class Cluster(Wire):
    """A cluster that a queue may extend to (stored, without effect)."""

    name: str = ""
    """Stored."""
    weight: int = 0
    """Stored."""
    capacity: Quantities = field(default_factory=dict)
    """Stored."""


class QueueSpec(Wire):
    """spec of a queue."""

    weight: Annotated[int, Meta(ge=0, le=65535)] = 1
    """Weight of the queue, relative to its siblings, in the division of resources beyond all deserved quantities; 0
    stands for 1."""
    capability: Quantities = field(default_factory=dict)
    """Maximum resources that the queue may use; resources without an entry have no limit."""
    deserved: Quantities = field(default_factory=dict)
    """The queue's quota, which it gets before other resources are divided by weight; usage above the quota may be
    reclaimed."""
    guarantee: Guarantee = field(default_factory=Guarantee)
    """Resources that no other queue can take."""
    reclaimable: bool | None = None
    """True or unset if other queues may reclaim what this queue uses above its quota."""
    parent: str = ""
    """The queue above; `root` if left out."""
    priority: int = 0
    """Queues with a higher value are served first and reclaimed from last."""
    dequeue_strategy: Literal["fifo", "traverse"] = "traverse"
    """Stored without effect."""
    type: str = ""
    """Stored without effect."""
    affinity: QueueAffinity | None = None
    """Stored without effect."""
    extend_clusters: list[Cluster] = field(default_factory=list)
    """Stored without effect."""

    def __post_init__(self) -> None:
        """Read a weight of 0 as the default, which Volcano's admission stores in its place."""
        self.weight = self.weight or 1


class VolcanoReservation(Wire):
    """Nodes reserved for a queue (stored, without effect)."""

    nodes: list[str] = field(default_factory=list)
    """Stored."""
    resource: Quantities = field(default_factory=dict)
    """Stored."""


class QueueStatus(Wire):
    """status of a queue."""

    state: QueueState = ""
    """Open, Closing (gangs still run) or Closed; new gangs enter only an open queue."""
    allocated: Quantities = field(default_factory=dict)
    """Requests of the queue's pods now."""
    pending: int = 0
    """Number of gangs that wait for admission to the queue."""
    running: int = 0
    """Number of gangs that run."""
    inqueue: int = 0
    """Number of gangs whose pods may be created."""
    completed: int = 0
    """Number of completed gangs."""
    unknown: int = 0
    """Number of gangs that fell below their minimum."""
    reservation: VolcanoReservation | None = None
    """Stored without effect."""
    fair_share: Quantities = field(default_factory=dict)
    """Present fair share of the queue, given the demand of all queues. The planner writes this field and all following
    fields."""
    deserved: Quantities = field(default_factory=dict)
    """Quota of the queue; by default the sum of its children's quotas."""
    message: str = ""
    """Reason why the first waiting gang waits."""
    usage: Quantities = field(default_factory=dict)
    """Usage over time, if the plugin `proportion` has a half-life."""
    usage_time: Time | None = None
    """Time of the usage."""
    waiting: NonNegative = 0
    """Number of gangs that wait in the queue itself, for admission or for nodes."""
    spares: Quantities = field(default_factory=dict)
    """Resources of the spare slots of the queue's gangs, which count as used in addition to `allocated`."""
    largest_node: Quantities = field(default_factory=dict)
    """On the root queue, the largest quantity of each resource on a single node; admission warns about pods that
    request more.
    """


class Queue(Object):
    """A queue: a cluster-scoped node in the tree of fair shares."""

    spec: QueueSpec = field(default_factory=QueueSpec)
    """Desired state."""
    status: QueueStatus = field(default_factory=QueueStatus)
    """Observed state: the controller writes state and counts, the planner shares."""

    @property
    def open(self) -> bool:
        """True if new gangs may enter the queue. A new queue has no state yet, but is usable (volcano #3173)."""
        return self.status.state in {"", "Open"}


POD_GROUPS = Resource("scheduling.volcano.sh", "v1beta1", "podgroups", "PodGroup", PodGroup)
QUEUES = Resource("scheduling.volcano.sh", "v1beta1", "queues", "Queue", Queue, namespaced=False)


def is_queue(reference: OwnerReference | None) -> bool:
    """Return True for a reference to a Queue of any version."""
    return bool(reference and reference.kind == QUEUES.kind and reference.api_version.startswith(f"{QUEUES.group}/"))
