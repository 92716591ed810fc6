"""scheduling.volcano.sh/v1beta1: Queue and PodGroup; clients rely on the PodGroup having no status subresource."""

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
    """Required proximity of pods in the network topology. At most one of the two `highest_tier` fields is set."""

    mode: Literal["hard", "soft"] = "hard"
    """With `hard`, the default, the pods wait until the requirement can be met. With `soft`, the pods are placed as
    close together as possible."""
    highest_tier_allowed: int | None = None
    """Highest network level that the pods may span; 1 is the lowest."""
    highest_tier_name: str | None = None
    """Name of the highest network level that the pods may span, in place of its number."""


class SubGroupPolicy(Wire):
    """A division of a gang's pods into sub-groups: pods with equal values of `matchLabelKeys` form a sub-group."""

    name: str = ""
    """Name of the policy, which is used in messages."""
    network_topology: NetworkTopology | None = None
    """Required proximity of the pods of one sub-group in the network topology."""
    sub_group_size: Annotated[int, Meta(ge=1)] = 1
    """Number of pods in one sub-group; 1 if left out."""
    min_sub_groups: NonNegative = 0
    """Number of sub-groups that must start together; 0 if left out."""
    label_selector: LabelSelector | None = None
    """Selects the pods to which the policy applies."""
    match_label_keys: list[str] = field(default_factory=list)
    """Label keys; pods with equal values of all these labels form a sub-group."""


class PodGroupSpec(Wire):
    """spec of a PodGroup."""

    min_member: NonNegative = 0
    """Number of pods that must start together."""
    min_task_member: dict[str, int] = field(default_factory=dict)
    """Number of pods of each task that must start together; ignored if `minMember` is less than their sum."""
    queue: str = "default"
    """The queue of the gang, which uses a part of the queue's share."""
    priority_class_name: str = ""
    """PriorityClass of the gang. Within a queue, gangs with a higher priority are scheduled first."""
    min_resources: Quantities | None = None
    """Minimum resources of the gang. The gang is admitted to its queue once these resources seem to be available.
    Minimum resources count towards the queue's capability even if a running gang does not use all of them."""
    network_topology: NetworkTopology | None = None
    """Required proximity of all pods of the gang in the network topology."""
    sub_group_policy: list[SubGroupPolicy] = field(default_factory=list)
    """Policies that divide the gang into sub-groups."""


NO_ROOM = "NotEnoughResources"
"""Reason in the condition Unschedulable of a gang for which the free capacity is insufficient."""
EVICTED = "Evicted"
"""Reason in the condition Unschedulable of a gang whose pods were evicted for another gang."""
PLACED = "Placed"
"""Reason in the condition Unschedulable, with status False, of a gang that has waited and now has planned nodes."""
TOO_FEW_PODS = "NotEnoughPods"
"""Reason in the condition Unschedulable of a gang that lacks pods, which is usual for a short time at each start."""
OVER_CAPABILITY = "QueueOverCapability"
"""Reason in the condition Unschedulable of a gang that would exceed the capability of its queue."""
WORLD_ENDED = "WorldEnded"
"""Reason in the condition Unschedulable of an elastic gang with succeeded members, so that no further member is
started."""
SUSPENDED = "Suspended"
"""Reason in the condition Unschedulable of a gang whose owner currently wants no pods, until its PodGroup is
deleted."""


class PodGroupCondition(Wire):
    """A condition of a gang: whether the gang is scheduled, and if not, the reason."""

    type: ConditionType
    """Unschedulable or Scheduled."""
    status: str
    """True or False."""
    transition_id: str = field(default="", name="transitionID")
    """The planning cycle that wrote the condition."""
    last_transition_time: Time | None = None
    """Time of the last change of the status."""
    reason: str = ""
    """Reason for the status, in one word."""
    message: str = ""
    """Reason for the status, in a sentence."""
    why: Reason | None = None
    """The reason as data (a code with parameters), if another component of Muster needs the data."""


class PodGroupStatus(Wire):
    """status of a PodGroup, most of which the planner writes."""

    phase: PodGroupPhase = ""
    """Phase of the gang. `Pending` means that the gang waits in its queue, `Inqueue` that its pods may be created, and
    `Unknown` that it has fewer members than its minimum."""
    conditions: list[PodGroupCondition] = field(default_factory=list)
    """Conditions of the gang: the reason why it waits, or the fact that it is scheduled."""
    running: NonNegative = 0
    """Number of pods that are running."""
    succeeded: NonNegative = 0
    """Number of pods that have succeeded."""
    failed: NonNegative = 0
    """Number of pods that have failed."""
    ending: str = ""
    """Reason why the workload has failed; the controller writes it when the workload ends."""
    place: NonNegative = 0
    """Position among the waiting gangs of the queue, starting with 1. Positions up to 10 are exact; a later position is
    the first one of a range (21 stands for 21 to 30). The position is absent if the gang does not wait, or has only
    just begun to wait, and is written at most once a minute."""
    expected_start: Time | None = None
    """Expected start, to the minute, if nodes are reserved for the gang and the time when they become free is known."""

    def true_condition(self, kind: ConditionType) -> PodGroupCondition | None:
        """Return the condition of this type if its status is True; None otherwise."""
        return next((each for each in self.conditions if each.type == kind and each.status == "True"), None)


class PodGroup(Object):
    """A gang: pods that start together or not at all."""

    spec: PodGroupSpec = field(default_factory=PodGroupSpec)
    """Desired state."""
    status: PodGroupStatus = field(default_factory=PodGroupStatus)
    """Observed state; the planner writes it."""

    @property
    def why_waiting(self) -> str:
        """Reason why the gang waits, as a sentence; empty if the gang does not wait."""
        waits = self.status.true_condition("Unschedulable")
        return waits.message if waits else ""

    @property
    def world_ended(self) -> bool:
        """True if members of an elastic gang have succeeded, so that no further member is started."""
        waits = self.status.true_condition("Unschedulable")
        return waits is not None and waits.reason == WORLD_ENDED

    @property
    def evicted(self) -> Reason:
        """Reason why all pods of the gang were evicted; empty without this reason in the condition Unschedulable."""
        conditions = [each for each in self.status.conditions if each.reason == EVICTED]
        with_data = next((each for each in conditions if each.why), conditions[0] if conditions else None)
        return stored(with_data.why, with_data.message) if with_data else NOTHING


class Guarantee(Wire):
    """Resources that no other queue can use."""

    resource: Quantities = field(default_factory=dict)
    """Resources that are kept free for this queue even if it does not use them."""


class NodeGroupTerms(Wire):
    """Node groups that a queue requires or prefers; Muster stores but ignores them."""

    required: list[str] = field(default_factory=list, name="requiredDuringSchedulingIgnoredDuringExecution")
    """Field of Volcano's API that Muster stores but ignores."""
    preferred: list[str] = field(default_factory=list, name="preferredDuringSchedulingIgnoredDuringExecution")
    """Field of Volcano's API that Muster stores but ignores."""


class QueueAffinity(Wire):
    """Node groups of a queue; Muster stores but ignores them."""

    node_group_affinity: NodeGroupTerms | None = None
    """Field of Volcano's API that Muster stores but ignores."""
    node_group_anti_affinity: NodeGroupTerms | None = None
    """Field of Volcano's API that Muster stores but ignores."""


class Cluster(Wire):
    """A cluster to which a queue may extend; Muster stores but ignores it."""

    name: str = ""
    """Field of Volcano's API that Muster stores but ignores."""
    weight: int = 0
    """Field of Volcano's API that Muster stores but ignores."""
    capacity: Quantities = field(default_factory=dict)
    """Field of Volcano's API that Muster stores but ignores."""


class QueueSpec(Wire):
    """spec of a queue."""

    weight: Annotated[int, Meta(ge=0, le=65535)] = 1
    """Weight of the queue relative to its siblings. Resources beyond all quotas are divided in proportion to the
    weights; 0 stands for 1."""
    capability: Quantities = field(default_factory=dict)
    """Maximum resources that the queue may use; resources without an entry have no limit."""
    deserved: Quantities = field(default_factory=dict)
    """Quota of the queue. Quotas are served before the remaining resources are divided by weight. Usage above the quota
    may be reclaimed."""
    guarantee: Guarantee = field(default_factory=Guarantee)
    """Resources that no other queue can use, even while this queue does not use them."""
    reclaimable: bool | None = None
    """If true or unset, other queues may reclaim resources that this queue uses above its quota."""
    parent: str = ""
    """Name of the parent queue; `root` if left out."""
    priority: int = 0
    """Priority of the queue. A queue with a higher value is served earlier, and its resources are reclaimed later."""
    dequeue_strategy: Literal["fifo", "traverse"] = "traverse"
    """Field of Volcano's API that Muster stores but ignores."""
    type: str = ""
    """Field of Volcano's API that Muster stores but ignores."""
    affinity: QueueAffinity | None = None
    """Field of Volcano's API that Muster stores but ignores."""
    extend_clusters: list[Cluster] = field(default_factory=list)
    """Field of Volcano's API that Muster stores but ignores."""

    def __post_init__(self) -> None:
        """Replace a weight of 0 by the default, as Volcano's admission does."""
        self.weight = self.weight or 1


class VolcanoReservation(Wire):
    """Nodes reserved for a queue; Muster stores but ignores them."""

    nodes: list[str] = field(default_factory=list)
    """Field of Volcano's API that Muster stores but ignores."""
    resource: Quantities = field(default_factory=dict)
    """Field of Volcano's API that Muster stores but ignores."""


class QueueStatus(Wire):
    """status of a queue."""

    state: QueueState = ""
    """Open, Closing (closed to new gangs while gangs still run) or Closed. New gangs can only enter an open queue."""
    allocated: Quantities = field(default_factory=dict)
    """Total requests of the queue's pods that are bound to nodes."""
    pending: int = 0
    """Number of gangs that have not been admitted to the queue yet."""
    running: int = 0
    """Number of running gangs."""
    inqueue: int = 0
    """Number of admitted gangs, whose pods may be created."""
    completed: int = 0
    """Number of completed gangs."""
    unknown: int = 0
    """Number of gangs that have fewer members than their minimum."""
    reservation: VolcanoReservation | None = None
    """Field of Volcano's API that Muster stores but ignores."""
    fair_share: Quantities = field(default_factory=dict)
    """Current fair share of the queue, given the demand of all queues. The planner writes this field and all following
    fields."""
    deserved: Quantities = field(default_factory=dict)
    """Quota of the queue; by default the sum of its children's quotas."""
    message: str = ""
    """Reason why the first waiting gang of the queue waits."""
    usage: Quantities = field(default_factory=dict)
    """Usage of the queue over time, which is computed if the plugin `proportion` is configured with a half-life."""
    usage_time: Time | None = None
    """Time up to which the usage over time is computed."""
    waiting: NonNegative = 0
    """Number of gangs that wait in this queue itself, for admission or for nodes."""
    spares: Quantities = field(default_factory=dict)
    """Resources of the spare slots of the queue's gangs, which count as used in addition to `allocated`."""
    largest_node: Quantities = field(default_factory=dict)
    """Largest quantity of each resource on any single node (only on the root queue). Admission warns about pods that
    request more."""


class Queue(Object):
    """A queue: a cluster-scoped node in the tree of fair shares."""

    spec: QueueSpec = field(default_factory=QueueSpec)
    """Desired state."""
    status: QueueStatus = field(default_factory=QueueStatus)
    """Observed state. The controller writes the state and the counts, and the planner writes the shares."""

    @property
    def open(self) -> bool:
        """True if new gangs may enter the queue. A new queue without a state is open, too (volcano #3173)."""
        return self.status.state in {"", "Open"}


POD_GROUPS = Resource("scheduling.volcano.sh", "v1beta1", "podgroups", "PodGroup", PodGroup)
QUEUES = Resource("scheduling.volcano.sh", "v1beta1", "queues", "Queue", Queue, namespaced=False)


def is_queue(reference: OwnerReference | None) -> bool:
    """Return True for a reference to a Queue of any version."""
    return bool(reference and reference.kind == QUEUES.kind and reference.api_version.startswith(f"{QUEUES.group}/"))
