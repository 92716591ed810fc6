"""The phase of a gang: the progress of the gang, derived from its members and its placement."""

from enum import Enum, auto

from muster.api.muster.placement import Placement

ACTIVE = frozenset({"Planned", "Binding"})


def once_whole(placement: Placement | None) -> bool:
    """Return True if the placement records that the gang has started, even if no member is left."""
    return placement is not None and (placement.status.started or placement.status.phase == "Bound")


class GangPhase(Enum):
    """The progress of a gang, as the planner sees it; users see its state (`muster.api.muster.states`) instead.

    The phase follows from the number of members that are bound or have succeeded (none, too few, enough), and from
    whether a placement is active. A gang has successive runs. A run begins when all members of the minimum start
    together, and ends when no member is bound to a node. During a run, further members are placed when they arrive; the
    next run starts with the whole minimum again.
    """

    WAITING = auto()
    """No member is bound to a node and no placement is active: the planner searches for nodes for the whole minimum."""
    STARTING = auto()
    """A placement is active, and no member is bound to a node yet: all slots of the gang are placed."""
    ARRIVING = auto()
    """A placement is active; some members are bound to nodes, but still too few to start."""
    STRANDED = auto()
    """Too few members are bound and no placement is active; evicted unless the missing ones are placed soon."""
    WHOLE = auto()
    """The gang has its minimum, or had its minimum earlier in this run. Until the last member ends, new members are
    placed when they arrive."""
    GROWING = auto()
    """The gang has or had its minimum, and a placement is active for later or restarted members."""


def phase_of(placement: Placement | None, *, alive: bool, whole: bool) -> GangPhase:
    """Return the phase of a gang.

    `alive` is True if members are on nodes. `whole` is True if the gang has its minimum, or had its minimum earlier in
    this run.
    """
    active = placement is not None and placement.status.phase in ACTIVE
    if whole:
        return GangPhase.GROWING if active else GangPhase.WHOLE
    if alive:
        return GangPhase.ARRIVING if active else GangPhase.STRANDED
    return GangPhase.STARTING if active else GangPhase.WAITING
