"""The decisions of a cycle: data, which `extender.commit` carries out."""

from dataclasses import dataclass

from extender.planner.reasons.room import Shortage
from extender.planner.state.gangs import GangView
from extender.planner.state.pods import PodRecord
from muster.api.kubernetes.autoscaling import ProvisioningRequest
from muster.api.muster.placement import PlacementPhase, PodSetPlacement


@dataclass(frozen=True, slots=True)
class Place:
    """The gang gets this placement: it covers members that are bound already as well as new ones."""

    gang: GangView
    pod_sets: list[PodSetPlacement]
    epoch: int
    new_slots: int
    victims: tuple[tuple[GangView, PodRecord], ...] = ()
    """Pods, each with its gang, that must be gone before the members can be let go; see `MakeRoom`."""
    victims_reason: str = ""


@dataclass(frozen=True, slots=True)
class ClosePlacement:
    """The gang's placement gets this phase; `pod_sets` replaces its slots if given (then with a new epoch)."""

    gang: GangView
    phase: PlacementPhase
    message: str
    pod_sets: list[PodSetPlacement] | None = None
    in_vain: bool = False
    """Pods of the gang were not created in time, so that the next placement has to wait for a while."""
    evicted_in_vain: bool = False
    """Pods could not be evicted for it, so that no pod is evicted for the gang for a while."""


@dataclass(frozen=True, slots=True)
class Reserve:
    """The gang goes on waiting, and these slots are reserved for it; nothing is carried out."""

    gang: GangView
    pod_sets: list[PodSetPlacement]
    expected_at: float | None
    """When it is expected to start there, in seconds since the epoch; None if nobody knows."""
    message: str


@dataclass(frozen=True, slots=True)
class Unreserve:
    """Nothing is reserved for the gang any more, and why."""

    gang: GangView
    message: str


@dataclass(frozen=True, slots=True)
class Enqueue:
    """The gang may have its pods created."""

    gang: GangView


@dataclass(frozen=True, slots=True)
class Unschedulable:
    """The gang waits, and why."""

    gang: GangView
    reason: str
    message: str
    shortage: Shortage | None = None
    """The counts behind the message, where it is about room."""


@dataclass(frozen=True, slots=True)
class Evict:
    """A pod is to go (UID as precondition); `started` says whether it may have run."""

    gang: GangView
    pod: PodRecord
    reason: str
    started: bool


@dataclass(frozen=True, slots=True)
class MakeRoom:
    """Pods of others are evicted for the gang's placement of this epoch, all of them or, if that is refused, none."""

    gang: GangView
    epoch: int
    victims: tuple[tuple[GangView, PodRecord], ...]
    reason: str
    """For the owners of the victims."""
    budgeted: frozenset[str] = frozenset()
    """UIDs of those that a disruption budget counts: they go first, as the API server may refuse them."""


@dataclass(frozen=True, slots=True)
class RoomIsThere:
    """The pods that had to go for the gang's placement are gone: from now on it is as any other."""

    gang: GangView
    pod_sets: list[PodSetPlacement]
    """Its slots, with those held that follow others."""
    new_slots: int


@dataclass(frozen=True, slots=True)
class Release:
    """A pod may go to its node: gate off and pin on in one patch (or, for a pod without a gate, tell it its node)."""

    gang: GangView
    pod: PodRecord
    node: str
    epoch: int


@dataclass(frozen=True, slots=True)
class Say:
    """A pod behind its gate is to say why it waits; `asks` has it say so to autoscalers, which then add nodes."""

    gang: GangView
    pod: PodRecord
    asks: bool
    message: str
    """Empty: the API server's own words."""


@dataclass(frozen=True, slots=True)
class TellEviction:
    """A pod on a node is to tell cluster-autoscaler this about its eviction; empty takes away what Muster wrote."""

    gang: GangView
    pod: PodRecord
    value: str


@dataclass(frozen=True, slots=True)
class RequestNodes:
    """A ProvisioningRequest of this name is to be made for so many pods like these."""

    gang: GangView
    name: str
    attempt: int
    provisioning_class: str
    parameters: tuple[tuple[str, str], ...]
    pods: tuple[tuple[str, int, PodRecord], ...]
    """Name of each pod set, how many pods of it, and one of them."""


@dataclass(frozen=True, slots=True)
class WithdrawRequest:
    """A ProvisioningRequest is not needed any more, or another one takes its place."""

    gang: GangView
    request: ProvisioningRequest
    why: str
