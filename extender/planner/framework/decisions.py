"""The decisions of a cycle: data that `extender.commit` carries out."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from extender.planner import reasons
from extender.planner.framework.answers import EnqueueVote, QueueRefusal
from extender.planner.reasons.shortages import Shortage
from extender.planner.state.gangs import GangView
from extender.planner.state.pods import PodRecord
from muster.api.kubernetes.autoscaling import ProvisioningRequest
from muster.api.muster.placement import AvoidedNode, BorrowedSpares, NodeSpares, Notice, PlacementPhase, PodSetPlacement
from muster.api.muster.reason import NOTHING, Reason, reason_of
from muster.resources.faults import Policy

Victims = tuple[tuple[GangView, PodRecord], ...]
"""Pods that are evicted, each with its gang."""
RepairKind = Literal["suspect", "not-ready", "gone"]
"""A node's fault, from the mildest on."""


@dataclass(frozen=True, slots=True)
class Decision:
    """A decision about one gang."""

    gang: GangView


class _WithReason:
    """A decision with a reason for people."""

    __slots__ = ()
    why: Reason

    @property
    def message(self) -> str:
        """The reason as a sentence."""
        return str(self.why)


@dataclass(frozen=True, slots=True)
class Place(Decision):
    """Give the gang this placement, which covers bound members as well as new ones."""

    pod_sets: list[PodSetPlacement]
    epoch: int
    new_slots: int
    victims: Victims = ()
    """Pods that must be gone before the gates of members are lifted; see `MakeRoom`."""
    victims_reason: Reason = NOTHING
    spares: list[NodeSpares] | None = None
    """Spare slots of the gang; None means the current ones."""
    borrows: list[BorrowedSpares] | None = None
    """Other gangs' spare slots that members use; None means the current ones."""
    notices: tuple[Notice, ...] = ()
    """Gangs of victims that are notified before they are evicted."""
    waits_until: float = 0.0
    """Time until which victims may stay by such notices, in seconds since the epoch."""


@dataclass(frozen=True, slots=True)
class ClosePlacement(Decision, _WithReason):
    """Set this phase of the gang's placement; `pod_sets` replaces its slots if given (then with a new epoch)."""

    phase: PlacementPhase
    why: Reason
    pod_sets: list[PodSetPlacement] | None = None
    in_vain: bool = False
    """Pods of the gang were not created, or not bound, in time: the next placement waits for a while."""
    evicted_in_vain: bool = False
    """True if pods could not be evicted for the gang; then no pod is evicted for the gang for a while."""


@dataclass(frozen=True, slots=True)
class KeepSpares(Decision):
    """Record the spare slots of a running gang."""

    spares: list[NodeSpares]
    missing: int
    """Additional spare slots to find."""


@dataclass(frozen=True, slots=True)
class Reserve(Decision, _WithReason):
    """Record that these slots are reserved for the gang, which keeps waiting."""

    pod_sets: list[PodSetPlacement]
    expected_at: float | None
    """Expected start there, in seconds since the epoch; None if unknown."""
    since: float
    """Time since when nodes are reserved for the gang, in whole seconds since the epoch."""
    why: Reason


@dataclass(frozen=True, slots=True)
class Unreserve(Decision, _WithReason):
    """Record that the gang no longer has a reservation."""

    why: Reason


@dataclass(frozen=True, slots=True)
class AdmitGang(Decision):
    """Let the gang's pods be created."""


@dataclass(frozen=True, slots=True)
class Unschedulable(Decision, _WithReason):
    """Report why the gang waits."""

    reason: str
    """One word, for a condition."""
    why: Reason
    shortage: Shortage | None = None
    """The counts behind a reason about free capacity."""

    @property
    def data(self) -> Reason | None:
        """Return the stored form of the reason for later readers; None if there are none."""
        if self.shortage is not None:
            return self.shortage.data
        return self.why.data if self.reason == reasons.placements.EVICTED else None


def refused(gang: GangView, refusal: QueueRefusal | EnqueueVote) -> Unschedulable:
    """Return the decision that a gang waits because its queue or a plugin refuses it."""
    return Unschedulable(gang, refusal.reason, reason_of(refusal.message))


@dataclass(frozen=True, slots=True)
class Evict(Decision):
    """Evict a pod (UID as precondition); `started` is True if it may have run."""

    pod: PodRecord
    reason: Reason
    started: bool


@dataclass(frozen=True, slots=True)
class EvictForFaults(Decision):
    """Evict members of a gang for faults of nodes, together."""

    policy: Policy
    pods: tuple[PodRecord, ...]
    kind: RepairKind
    """The worst fault of its nodes."""
    reason: Reason
    epoch: int | None = None
    """Epoch of the placement that keeps the new nodes of the pods; None: the pods have no new nodes yet."""
    again: bool = False
    """True if an earlier cycle decided the eviction, and some of the pods still exist."""
    outcome: str = ""
    """End of the notice of its members: `answered` or `silent`; empty without one."""


@dataclass(frozen=True, slots=True)
class Avoid(Decision):
    """Record the nodes that the gang leaves out."""

    avoided: tuple[AvoidedNode, ...] | None
    """All of them; None if none is new."""
    counted: tuple[PodRecord, ...]
    """Members whose failure has been counted with this, or does not count."""


@dataclass(frozen=True, slots=True)
class MakeRoom(Decision):
    """Evict victims for the gang's placement of this epoch: all of them or, if that is refused, none."""

    epoch: int
    victims: Victims
    reason: Reason
    """For the owners of the victims, of any namespace."""
    budgeted: frozenset[str] = frozenset()
    """UIDs of pods under a disruption budget; evicted first, because the API server may refuse them."""
    action: str = "continued"
    """The action that chose the victims; by default an earlier cycle's, whose work continues."""
    saved: Mapping[str, Reason] = field(default_factory=dict)
    """Key of a victim's gang → its reported checkpoint; gangs without one are omitted."""
    outcomes: Mapping[str, str] = field(default_factory=dict)
    """Key of a victim's gang that was notified before → `answered` or `silent`."""
    unsaved_s: Mapping[str, float] = field(default_factory=dict)
    """Key of a victim's gang → work of each of its pods that is lost, in seconds."""

    def reason_for(self, victim: GangView) -> Reason:
        """Return the reason for the owner of one victim, with the checkpoint that it reported."""
        return asked_by(self.gang, self.reason, victim).also(self.saved.get(victim.key, NOTHING))


def asked_by(asker: GangView, reason: Reason, victim: GangView) -> Reason:
    """Return a reason for a victim's owner; it names the gang that gets the nodes if both share a namespace."""
    if asker.uid == victim.uid:
        return reason
    apart = asker.group.metadata.namespace != victim.group.metadata.namespace
    return reason if apart else reasons.placements.named(reason, asker.workload)


@dataclass(frozen=True, slots=True)
class SendNotice(Decision):
    """Notify a pod of the gang of its eviction at a time (RFC 3339), unless the notice is withdrawn before."""

    pod: PodRecord
    evict_at: str
    queue: str
    """The queue that gets the capacity."""
    reason: Reason
    """For the owner of the pod."""
    pods: int = 1
    """Number of the gang's pods that will be evicted, including this one."""


@dataclass(frozen=True, slots=True)
class WithdrawNotice(Decision):
    """Withdraw the notice of a pod of the gang, and remove the notice and its answer."""

    pod: PodRecord


@dataclass(frozen=True, slots=True)
class RoomIsThere(Decision):
    """Remove the victims from the gang's placement, because they are gone."""

    pod_sets: list[PodSetPlacement]
    """The gang's slots; pod sets that follow others are held."""
    new_slots: int
    remade_s: float = 0.0
    """Time in seconds that the gang's owner may wait before it re-creates evicted members."""


@dataclass(frozen=True, slots=True)
class Release(Decision):
    """Lift a pod's gate and pin it to its node in one patch; a pod without a gate is only pinned."""

    pod: PodRecord
    node: str
    epoch: int


@dataclass(frozen=True, slots=True)
class SetCondition(Decision):
    """Write the reason for waiting into a gated pod's condition; with `asks`, autoscalers react by adding nodes."""

    pod: PodRecord
    asks: bool
    message: str
    """Empty: the API server's own message."""


@dataclass(frozen=True, slots=True)
class AnnotateEviction(Decision):
    """Set the annotations that control whether autoscalers may evict a bound pod; empty removes Muster's."""

    pod: PodRecord
    value: str


@dataclass(frozen=True, slots=True)
class RequestNodes(Decision):
    """Create a ProvisioningRequest of this name."""

    name: str
    attempt: int
    provisioning_class: str
    parameters: tuple[tuple[str, str], ...]
    pods: tuple[tuple[str, int, PodRecord], ...]
    """Name of each pod set, number of its pods, and one of them."""


@dataclass(frozen=True, slots=True)
class WithdrawRequest(Decision):
    """Delete a ProvisioningRequest that is no longer needed, or is replaced."""

    request: ProvisioningRequest
    why: str
