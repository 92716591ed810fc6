"""muster.dev/v1alpha1, also served as v1beta1: Placement, which contains the node of each member of a gang."""

import re
from typing import Annotated, Literal

from msgspec import Meta, field

from muster.api.base import Resource, Wire
from muster.api.kubernetes.meta import Object
from muster.api.limits import EPOCH, PODS
from muster.api.muster.gang import Slot
from muster.api.muster.reason import Reason, stored
from muster.api.volcano.scheduling import NonNegative

PlacementPhase = Literal["Planned", "Binding", "Bound", "Abandoned", "Reserved"]


_DEVICES = re.compile(r"[0-9]{1,4}(,[0-9]{1,4}){0,63}")


class NodeRun(Wire):
    """A number of consecutive ranks on one node. If the name of the node is empty, the ranks have no node yet."""

    node: str = ""
    """Name of the node."""
    count: Annotated[int, Meta(ge=1, le=PODS.value)] = 1
    """Number of consecutive ranks on the node; 1 if left out."""


class PodSetPlacement(Wire):
    """The nodes of one pod set in rank order."""

    name: str
    """Name of the task, or `pods` for workloads without tasks."""
    runs: list[NodeRun] = field(default_factory=list)
    """Nodes in rank order."""
    gpus: list[str] = field(default_factory=list)
    """For pods that share GPUs: the numbers of each rank's GPUs on its node, such as "0" or "0,3". The entry of a rank
    without GPUs is empty."""
    held: bool = False
    """True if the set's pods are created with a scheduling gate, because they wait for other pods of the gang. The gate
    is removed when the other pods have arrived."""


class Victim(Wire):
    """A pod that is evicted before the placement can be carried out."""

    name: str
    """Name of the pod."""
    namespace: str = ""
    """Namespace of the pod; the placement's namespace if left out."""
    uid: str = ""
    """UID of the pod; a later pod with the same name is not evicted."""
    gang: str = ""
    """Name of the pod's PodGroup."""


class NodeSpares(Wire):
    """Spare slots on a node, which can replace members that the gang loses."""

    pod_set: str = ""
    """The pod set whose members can use the slots."""
    node: str = ""
    """Name of the node."""
    count: Annotated[int, Meta(ge=1, le=PODS.value)] = 1
    """Number of spare slots for members of the pod set; 1 if left out."""


class BorrowedSpares(Wire):
    """Spare slots of another gang, which members of this gang use until the other gang needs them."""

    lender: str = ""
    """UID of the PodGroup to which the spare slots belong."""
    pod_set: str = ""
    """The lender's pod set for which the spare slots are held."""
    node: str = ""
    """Name of the node."""
    count: Annotated[int, Meta(ge=1, le=PODS.value)] = 1
    """Number of spare slots; 1 if left out."""


class Notice(Wire):
    """Eviction notice to a gang whose pods are evicted for the placement. An eviction notice is never changed."""

    gang: str = ""
    """Name of the notified PodGroup."""
    namespace: str = ""
    """Namespace of the PodGroup; the placement's namespace if left out."""
    told_at: str = ""
    """Time of the notice (RFC 3339). A checkpoint that the gang has saved since then counts as its answer to the
    notice."""
    evict_at: str = ""
    """Deadline of the eviction notice (RFC 3339): the gang is then evicted even if it has saved no checkpoint."""


class PlacementSpec(Wire):
    """spec of a placement: the planner's decision.

    Every write that carries out a placement contains the placement's epoch.
    """

    pod_group_uid: str = field(default="", name="podGroupUID")
    """UID of the PodGroup to which the placement belongs."""
    epoch: Annotated[int, Meta(ge=1, le=EPOCH.value)] = 1
    """Sequence number of the gang's placement. Because epochs never decrease, writes for an older placement can be
    rejected."""
    deadline: str = ""
    """Time at which the placement is abandoned if the gang's pods are not bound by then (RFC 3339)."""
    pod_sets: list[PodSetPlacement] = field(default_factory=list)
    """The nodes of each pod set."""
    spares: list[NodeSpares] = field(default_factory=list)
    """Spare slots, which can replace members that the gang loses. No pod of the gang uses the spare slots."""
    borrows: list[BorrowedSpares] = field(default_factory=list)
    """Spare slots of other gangs that members of this gang use."""
    victims: list[Victim] = field(default_factory=list)
    """Pods that are evicted for this placement, or moved with it. The gang's members stay gated until the victims'
    capacity is free."""
    victims_reason: str = ""
    """Reason for the evictions, as text for the owners of the evicted pods."""
    victims_why: Reason | None = None
    """Reason for the evictions as data: a code with parameters."""
    notices: list[Notice] = field(default_factory=list)
    """Eviction notices to gangs that have pods among the victims. Victims without a notice are evicted at the end,
    together with the notified victims."""


class AvoidedNode(Wire):
    """A node that recently rejected a member of the gang, or on which a member failed."""

    node: str = ""
    """Name of the node."""
    until: str = ""
    """Time until which placements of this gang avoid the node (RFC 3339)."""
    cause: str = ""
    """Description of the member that failed on the node; empty if the node rejected a member."""
    failures: NonNegative = 0
    """Number of successive failures on the node; each one lengthens the time for which the node is avoided."""
    failed_at: str = ""
    """Time when the last failure was counted (RFC 3339). Failures of pods before this time are not counted again."""


class StartedWith(Wire):
    """The minimum number of pods with which a gang started, or a higher minimum that the gang has reached since."""

    min_member: NonNegative = 0
    """Minimum number of pods of the whole gang."""
    min_task_member: dict[str, int] = field(default_factory=dict)
    """Minimum number of pods of each pod set."""


class PlacementStatus(Wire):
    """Progress of the placement."""

    phase: PlacementPhase = "Planned"
    """Planned, Binding, Bound, Abandoned or Reserved.

    Reserved means that the gang waits, and that its nodes are not given to gangs that would delay its start."""
    bound: NonNegative = 0
    """Number of pods that are bound."""
    planned: NonNegative = 0
    """Number of pods that have a planned node."""
    started: bool = False
    """True once the minimum number of members have started together. After the start, members are placed as they
    arrive, until the last member has ended."""
    started_at: str = ""
    """Time at which the gang started, rounded up to the next full second (RFC 3339)."""
    started_with: StartedWith | None = None
    """Number of members that the gang needs to continue. An increased minimum applies once the gang has reached it."""
    message: str = ""
    """Reason why the placement was abandoned, or why it waits."""
    why: Reason | None = None
    """The same reason as data: a code with parameters."""
    expected_at: str = ""
    """Expected start of the gang on the nodes that are reserved for it (RFC 3339); empty if unknown."""
    reserved_at: str = ""
    """Time since which nodes are reserved for the gang (RFC 3339). Other queues respect the reservation for a limited
    time."""
    avoided: list[AvoidedNode] = field(default_factory=list)
    """Nodes that the next placements avoid for a while. A node where a member failed stays in this list for another
    day."""
    attempts: NonNegative = 0
    """Number of successive placements that were abandoned because the gang's pods were not created in time."""
    not_before: str = ""
    """Time of the next attempt to place the gang (RFC 3339); the attempt is made earlier if the gang's pods are
    created."""
    evictions_in_vain: NonNegative = 0
    """Number of successive placements that were abandoned because the victims could not be evicted."""
    no_evictions_before: str = ""
    """Time before which no pod is evicted for the gang (RFC 3339)."""
    made_room: Annotated[list[str], Meta(max_length=16)] = field(default_factory=list)
    """PodGroups whose pods were evicted in the last preemption for this gang, as namespace/name. Of many PodGroups,
    only the first ones are listed."""


class Placement(Object):
    """The placement of one gang. The placement has the name of the gang's PodGroup, which owns it."""

    spec: PlacementSpec = field(default_factory=PlacementSpec)
    """The planner's decision: nodes, spare slots and victims."""
    status: PlacementStatus = field(default_factory=PlacementStatus)
    """Progress of the placement; the planner writes it."""

    def gang_key(self, named: Victim | Notice) -> str:
        """Return the key of the gang that a victim or a notice of this placement names."""
        return f"{named.namespace or self.metadata.namespace}/{named.gang}"


def victims_reason(placement: Placement) -> Reason:
    """Return the reason why the victims of a placement are evicted."""
    return stored(placement.spec.victims_why, placement.spec.victims_reason)


def own_victims(placement: Placement) -> list[Victim]:
    """Return the victims that are members of the placed gang itself, because the gang is moved or repaired."""
    name = placement.metadata.name
    return [victim for victim in placement.spec.victims if victim.gang == name and not victim.namespace]


def holds_back(placement: Placement) -> bool:
    """Return True if some members stay gated until other members have a node or have arrived at the barrier."""
    return any(pod_set.held for pod_set in placement.spec.pod_sets)


def _pod_set(placement: Placement, name: str) -> PodSetPlacement:
    found = (pod_set for pod_set in placement.spec.pod_sets if pod_set.name == name)
    return next(found, PodSetPlacement(name=name))


def node_of(placement: Placement, pod_set: str, rank: int) -> str | None:
    """Return the node of the member with this rank in `pod_set`; None if the member has no node yet."""
    for run in _pod_set(placement, pod_set).runs:
        if rank < run.count:
            return run.node or None
        rank -= run.count
    return None


def node_of_slot(placement: Placement, slot: Slot | None) -> str | None:
    """Return the node of a slot; None if there is no slot, or if it has no node."""
    return node_of(placement, slot.pod_set, slot.rank) if slot else None


def pin_of(placement: Placement, pod_set: str, rank: int) -> str | None:
    """Return the node to which a new member is pinned; None without a node, or while the member waits for others."""
    return None if _pod_set(placement, pod_set).held else node_of(placement, pod_set, rank)


def devices_of_text(text: str) -> tuple[int, ...]:
    """Return device numbers from a text like "0,3" in annotations and placements; empty for a malformed text."""
    return tuple(int(part) for part in text.split(",")) if _DEVICES.fullmatch(text) else ()


def text_of_devices(devices: tuple[int, ...]) -> str:
    """Return device numbers as text; the inverse of `devices_of_text`."""
    return ",".join(str(device) for device in devices)


def devices_of(placement: Placement, slot: Slot) -> tuple[int, ...]:
    """Return the numbers of the GPUs that a member shares on its node; empty if the member shares no GPU."""
    gpus = _pod_set(placement, slot.pod_set).gpus
    return devices_of_text(gpus[slot.rank]) if slot.rank < len(gpus) else ()


PLACEMENTS = Resource("muster.dev", "v1alpha1", "placements", "Placement", Placement)
