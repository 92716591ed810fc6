"""The decisions of a cycle, as data that `extender.commit` carries out."""

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
"""Pods that are to be evicted, each with its gang."""
RepairKind = Literal["suspect", "not-ready", "gone"]
"""The kind of a node's fault; the values are listed from mild to severe."""


@dataclass(frozen=True, slots=True)
class Decision:
    """A decision about one gang."""

    gang: GangView


class _WithReason:
    """Base class of decisions that have a reason for users."""

    __slots__ = ()
    why: Reason

    @property
    def message(self) -> str:
        """The reason as a sentence for users."""
        return str(self.why)


@dataclass(frozen=True, slots=True)
class Place(Decision):
    """Writes the gang's placement, which contains both bound and new members."""

    pod_sets: list[PodSetPlacement]
    epoch: int
    new_slots: int
    victims: Victims = ()
    """Pods that must have terminated before the gates of the gang's members are removed; see `MakeRoom`."""
    victims_reason: Reason = NOTHING
    spares: list[NodeSpares] | None = None
    """Spare slots of the gang; None if the spare slots are unchanged."""
    borrows: list[BorrowedSpares] | None = None
    """Spare slots of other gangs that the gang's members use; None if the borrowed spare slots are unchanged."""
    notices: tuple[Notice, ...] = ()
    """Eviction notices for gangs whose pods are notified before they are evicted."""
    waits_until: float = 0.0
    """Time until which victims with an eviction notice may stay, in seconds since the epoch."""


@dataclass(frozen=True, slots=True)
class ClosePlacement(Decision, _WithReason):
    """Sets the phase of the gang's placement; `pod_sets`, if given, replaces its slots and begins a new epoch."""

    phase: PlacementPhase
    why: Reason
    pod_sets: list[PodSetPlacement] | None = None
    in_vain: bool = False
    """True if pods of the gang were not created or bound in time; the next placement is then delayed."""
    evicted_in_vain: bool = False
    """True if pods could not be evicted for the gang; the next evictions for this gang are then delayed."""


@dataclass(frozen=True, slots=True)
class KeepSpares(Decision):
    """Records the spare slots of a running gang."""

    spares: list[NodeSpares]
    missing: int
    """Number of spare slots that the gang should have but that have no node yet."""


@dataclass(frozen=True, slots=True)
class Reserve(Decision, _WithReason):
    """Records that nodes are reserved for the gang, which continues to wait."""

    pod_sets: list[PodSetPlacement]
    expected_at: float | None
    """Expected start on these slots, in seconds since the epoch; None if unknown."""
    since: float
    """Time since which nodes have been reserved for the gang, in whole seconds since the epoch."""
    why: Reason


@dataclass(frozen=True, slots=True)
class Unreserve(Decision, _WithReason):
    """Records that the gang no longer has a reservation."""

    why: Reason


@dataclass(frozen=True, slots=True)
class AdmitGang(Decision):
    """Admits the gang to its queue, so that its pods may be created."""


@dataclass(frozen=True, slots=True)
class Unschedulable(Decision, _WithReason):
    """Reports why the gang waits."""

    reason: str
    """The reason of the condition, a CamelCase word."""
    why: Reason
    shortage: Shortage | None = None
    """The numbers of nodes per cause, from which a reason about missing capacity is made; None for other reasons."""

    @property
    def data(self) -> Reason | None:
        """Return the reason as stored in the PodGroup; None if no reason is stored."""
        if self.shortage is not None:
            return self.shortage.data
        return self.why.data if self.reason == reasons.placements.EVICTED else None


def refused(gang: GangView, refusal: QueueRefusal | EnqueueVote) -> Unschedulable:
    """Return the decision that a gang waits because its queue or a plugin rejects the gang."""
    return Unschedulable(gang, refusal.reason, reason_of(refusal.message))


@dataclass(frozen=True, slots=True)
class Evict(Decision):
    """Evicts a pod, with the pod's UID as a precondition; `started` is True if the pod may have run."""

    pod: PodRecord
    reason: Reason
    started: bool


@dataclass(frozen=True, slots=True)
class EvictForFaults(Decision):
    """Evicts members of a gang together because of faulty nodes."""

    policy: Policy
    pods: tuple[PodRecord, ...]
    kind: RepairKind
    """The worst fault of the members' nodes."""
    reason: Reason
    epoch: int | None = None
    """Epoch of the placement that contains the pods' new nodes; None if the pods have no new nodes yet."""
    again: bool = False
    """True if an earlier cycle already decided the eviction, but some of the pods still exist."""
    outcome: str = ""
    """How the members reacted to their eviction notice, `answered` or `silent`; empty if they had no notice."""


@dataclass(frozen=True, slots=True)
class Avoid(Decision):
    """Records the nodes that the gang must avoid."""

    avoided: tuple[AvoidedNode, ...] | None
    """All nodes that the gang avoids; None if no node is added."""
    counted: tuple[PodRecord, ...]
    """Members whose failures this decision handles, including failures that do not make the gang avoid a node."""


@dataclass(frozen=True, slots=True)
class MakeRoom(Decision):
    """Evicts all victims of the gang's placement with this epoch, or none if one eviction is not allowed."""

    epoch: int
    victims: Victims
    reason: Reason
    """Reason for the eviction, which is shown to the owners of the victims; the victims may be in any namespace."""
    budgeted: frozenset[str] = frozenset()
    """UIDs of victims with a disruption budget, evicted first: the API server may reject these evictions."""
    action: str = "continued"
    """The action that chose the victims; `continued` if an earlier cycle chose them."""
    saved: Mapping[str, Reason] = field(default_factory=dict)
    """Maps a victim's gang to its reported checkpoint; gangs without a checkpoint are omitted."""
    outcomes: Mapping[str, str] = field(default_factory=dict)
    """Maps the key of a victim's gang that had an eviction notice to the gang's reaction: `answered` or `silent`."""
    unsaved_s: Mapping[str, float] = field(default_factory=dict)
    """Maps the key of a victim's gang to the seconds of work that each of its pods loses."""

    def reason_for(self, victim: GangView) -> Reason:
        """Return the reason for a victim's owner, with the checkpoint that the victim's gang has reported."""
        return asked_by(self.gang, self.reason, victim).also(self.saved.get(victim.key, NOTHING))


def asked_by(asker: GangView, reason: Reason, victim: GangView) -> Reason:
    """Return the reason for a victim's owner, naming the waiting gang if both gangs are in one namespace."""
    if asker.uid == victim.uid:
        return reason
    apart = asker.group.metadata.namespace != victim.group.metadata.namespace
    return reason if apart else reasons.placements.named(reason, asker.workload)


@dataclass(frozen=True, slots=True)
class SendNotice(Decision):
    """Notifies a pod of the gang that it will be evicted at a time (RFC 3339) unless the notice is withdrawn."""

    pod: PodRecord
    evict_at: str
    queue: str
    """The queue that will get the capacity of the pod."""
    reason: Reason
    """Reason for the eviction, which is shown to the owner of the pod."""
    pods: int = 1
    """Number of the gang's pods that will be evicted, including the notified pod."""


@dataclass(frozen=True, slots=True)
class WithdrawNotice(Decision):
    """Withdraws the eviction notice of a pod of the gang, and removes the notice and the answer from the pod."""

    pod: PodRecord


@dataclass(frozen=True, slots=True)
class RoomIsThere(Decision):
    """Removes the victims from the gang's placement, because the victims have terminated."""

    pod_sets: list[PodSetPlacement]
    """The gang's slots. Pod sets with affinity to other pods stay gated until the other pods are bound."""
    new_slots: int
    remade_s: float = 0.0
    """Seconds for which the gang's owner may wait before it re-creates evicted members."""


@dataclass(frozen=True, slots=True)
class Release(Decision):
    """Removes a pod's gate and pins the pod to its node in one patch; a pod without a gate is only pinned."""

    pod: PodRecord
    node: str
    epoch: int


@dataclass(frozen=True, slots=True)
class SetCondition(Decision):
    """Writes why a gated pod waits into its condition; if `asks` is true, autoscalers add nodes for the pod."""

    pod: PodRecord
    asks: bool
    message: str
    """The message of the condition; empty for the message that the API server writes for gated pods."""


@dataclass(frozen=True, slots=True)
class AnnotateEviction(Decision):
    """Sets annotations that allow or forbid autoscalers to evict a bound pod; an empty `value` removes them."""

    pod: PodRecord
    value: str


@dataclass(frozen=True, slots=True)
class RequestNodes(Decision):
    """Creates a ProvisioningRequest, which requests nodes for a gang from an autoscaler."""

    name: str
    attempt: int
    provisioning_class: str
    parameters: tuple[tuple[str, str], ...]
    pods: tuple[tuple[str, int, PodRecord], ...]
    """For each pod set: its name, the number of its pods, and one pod, from which the request gets its pod spec."""


@dataclass(frozen=True, slots=True)
class WithdrawRequest(Decision):
    """Deletes a ProvisioningRequest that is no longer needed or has been replaced."""

    request: ProvisioningRequest
    why: str
