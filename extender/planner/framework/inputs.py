"""All inputs of a planning cycle: the snapshot, the time, and the data that the planner keeps from cycle to cycle."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from extender.planner.ask import Asks
from extender.planner.framework.answers import Causes
from extender.planner.framework.nodelabels import LabelCache
from extender.planner.framework.snapshot import Snapshot
from extender.planner.timing import DEFAULTS, Timing
from extender.planner.topology.hypernodes import HyperNodeTree
from muster.api.kubernetes.autoscaling import ProvisioningRequest
from muster.api.muster.gang import Slot
from muster.api.muster.usage import PublishedUsage


@dataclass(frozen=True, slots=True, kw_only=True)
class CycleInputs:
    """All inputs of a cycle, from a running process or from a dump of a cluster.

    In addition to `CycleInputs`, actions and plugins only use their own memory of earlier cycles.
    """

    snapshot: Snapshot
    now: float
    """Seconds since the epoch; a cycle reads no other clock."""
    causes: Causes = field(default_factory=Causes)
    """Codes of causes, which all cycles of a planner share because plugins keep codes from cycle to cycle."""
    names_others: bool = False
    """True if messages may name gangs of other owners, because the user who gets the messages can list these gangs.
    False in the extender, because anyone who can read a PodGroup, Queue or Event can read its messages.
    """
    arrived: Mapping[str, frozenset[Slot]] = field(default_factory=dict)
    """Maps a gang's UID to the slots of members that wait at the barrier for other members."""
    avoided: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """Maps a gang and a node that recently rejected a member to the time until which the gang avoids the node. The
    gang's Placement possibly does not list the node yet."""
    gone: frozenset[str] = frozenset()
    """Deleted nodes with members of gangs, as confirmed by the API server."""
    hyper_nodes: HyperNodeTree = field(default_factory=HyperNodeTree)
    """The tree of HyperNodes, kept from cycle to cycle so that only changed HyperNodes are read."""
    labels: LabelCache = field(default_factory=LabelCache)
    """Cache of node labels, kept from cycle to cycle because most nodes do not change."""
    asks: Asks = field(default_factory=Asks)
    """Cache of the demands of gangs, kept from cycle to cycle because most gangs do not change."""
    provisioning: Mapping[str, ProvisioningRequest] = field(default_factory=dict)
    """Maps a gang's UID to its newest known ProvisioningRequest."""
    provisioning_served: bool | None = None
    """True if the API server serves ProvisioningRequests; None before the first check."""
    usage: PublishedUsage | None = None
    """Past usage of queues, which counts towards their budgets; None if the past usage is unknown."""
    timing: Timing = DEFAULTS
    """Time limits that the installation has configured."""
