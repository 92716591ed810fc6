"""The inputs of one planning cycle."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from extender.planner.framework.causes import Causes
from extender.planner.framework.snapshot import Snapshot
from extender.planner.topology.hypernodes import HyperNodeTree
from muster.api.kubernetes.autoscaling import ProvisioningRequest
from muster.api.muster.gang import Slot

RECOVERY_S = 30.0
STALENESS_GRACE_S = 60.0
GROWTH_DELAY_S = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class CycleInputs:
    """All that a cycle decides by, besides what its actions and plugins remember of the cycles before.

    The planner gathers it from a running process, `muster explain` and `muster simulate` from a picture of a cluster;
    all decisions read it from here, so that neither can forget a part of it.
    """

    snapshot: Snapshot
    now: float
    """Seconds since the epoch; the only clock there is in a cycle."""
    causes: Causes = field(default_factory=Causes)
    """Shared by all cycles of one planner, as plugins keep codes of causes from one to the next."""
    arrived: Mapping[str, frozenset[Slot]] = field(default_factory=dict)
    """Gang UID → slots of members that kube-scheduler has placed and that wait for the others."""
    avoided: Mapping[str, set[str]] = field(default_factory=dict)
    """Gang key → nodes that refused a member of it lately, as far as placements do not say so (yet)."""
    hyper_nodes: HyperNodeTree = field(default_factory=HyperNodeTree)
    """Kept from one cycle to the next, as it looks only at what changed."""
    provisioning: Mapping[str, ProvisioningRequest] = field(default_factory=dict)
    """Gang UID → its newest ProvisioningRequest, as far as one is known."""
    provisioning_served: bool | None = None
    """True if the cluster has that kind; None before the first look."""
    recovery_s: float = RECOVERY_S
    """How long some members of a gang may have a node while too few do, before all of them go back."""
    staleness_grace_s: float = STALENESS_GRACE_S
    """How long a gang that lost members may wait for them before the rest is evicted; negative means for ever."""
    growth_delay_s: float = GROWTH_DELAY_S
    """How long after its start a gang gets more than its minimum; 0 means with it, if room is left then."""
