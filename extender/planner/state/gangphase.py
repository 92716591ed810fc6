"""The phase of a gang: how far it has come, by its members and its placement."""

from enum import Enum, auto

from muster.api.muster.placement import Placement

ACTIVE = frozenset({"Planned", "Binding"})


def once_whole(placement: Placement | None) -> bool:
    """Return True if its gang has started, as the placement says; no members may be left by now."""
    return placement is not None and (placement.status.started or placement.status.phase == "Bound")


class GangPhase(Enum):
    """The progress of a gang for the planner; what users read is its state (`muster.api.muster.states`).

    It follows from the number of members with a node (or that succeeded) - none, too few, enough - and from an active
    placement. A gang has one life after the other: one begins when it starts whole, and ends when no member has a node
    any more. Within a life members are placed as they come; in the next one it starts whole again.
    """

    WAITING = auto()
    """No member has a node and no placement is active: the planner looks for room for the whole minimum at once."""
    STARTING = auto()
    """A placement is active, and no member has a node yet: all its slots are placed."""
    ARRIVING = auto()
    """A placement is active; some members have a node, and still too few to start."""
    STRANDED = auto()
    """Some members have a node, too few to start, and no placement is active: to be completed at once, or evicted."""
    WHOLE = auto()
    """The gang has, or had in this life, its minimum. Until its last member ends, others are placed as they come."""
    GROWING = auto()
    """The gang is whole, and a placement is active for members that came later or again."""


def phase_of(placement: Placement | None, *, alive: bool, whole: bool) -> GangPhase:
    """Return the phase of a gang that has members on nodes, or not, and its minimum, or not."""
    active = placement is not None and placement.status.phase in ACTIVE
    if whole:
        return GangPhase.GROWING if active else GangPhase.WHOLE
    if alive:
        return GangPhase.ARRIVING if active else GangPhase.STRANDED
    return GangPhase.STARTING if active else GangPhase.WAITING
