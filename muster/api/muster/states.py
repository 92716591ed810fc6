"""The state of a gang: one function of the same facts for all who show it, and the PodGroup's phase by a table. Pure.

The planner takes the facts from the members that it knows. Everybody else reads them from the gang's objects.
"""

from collections.abc import Iterable, Mapping
from typing import Literal

import msgspec

from muster.api.kubernetes.core import Pod
from muster.api.muster.placement import Placement, PlacementPhase
from muster.api.volcano.batch import Phase
from muster.api.volcano.scheduling import PLACED, PodGroup, PodGroupPhase

State = Literal[
    "Waiting", "Reserved", "Starting", "Running", "Degraded", "Suspended",
    "Completed", "Failed", "Terminated", "Deleted", "Gone",
]  # fmt: skip
"""Degraded: fewer members run than the gang needs. Deleted: before its end; Gone: so are all of its objects."""
Members = Literal["", "whole", "short", "over"]
"""Too few members have nodes; as many as the gang needs; too few again; all have ended."""

WAITING = frozenset({"Waiting", "Reserved"})
"""States of gangs that wait for their start."""
ENDED = frozenset({"Completed", "Failed", "Terminated", "Deleted", "Gone"})
"""States of gangs that want no nodes any more."""
PLANNED: frozenset[PlacementPhase | Literal[""]] = frozenset({"Planned", "Binding", "Bound"})
"""Phases of a placement in which the gang has its nodes, or is given them."""
STOPPED: Mapping[Phase, State] = {
    "Completed": "Completed", "Failed": "Failed", "Terminated": "Terminated", "Aborted": "Suspended",
}  # fmt: skip
"""Phases of a Volcano Job in which its gang wants no nodes."""
PHASES: Mapping[State, PodGroupPhase] = {
    "Waiting": "Pending", "Starting": "Running", "Running": "Running", "Degraded": "Unknown",
    "Completed": "Completed", "Failed": "Completed",
}  # fmt: skip
"""Phases that the planner writes; a gang that waits and is admitted is Inqueue. Volcano's phases know no plan."""
_STOPS: Mapping[Phase, Phase] = {"Aborting": "Aborted", "Terminating": "Terminated"}
_MEMBERS: Mapping[PodGroupPhase, Members] = {"Running": "whole", "Unknown": "short", "Completed": "over"}


class Facts(msgspec.Struct, kw_only=True, frozen=True, omit_defaults=True):
    """The facts that the state of a gang follows from."""

    members: Members = ""
    begun: bool = True
    """False if no member has run yet, but for failed ones in whose place others are to run; as far as is known."""
    failed: bool = False
    """Without success, once all members have ended."""
    waits: bool = False
    """There is a reason to wait."""
    placement: PlacementPhase | Literal[""] = ""
    """Empty without one; as the PodGroup reports if it may not be read."""


def without_gang(job: Phase) -> State:
    """Return the state of a Volcano Job without a PodGroup: it is new, suspended or over."""
    return STOPPED.get(_STOPS.get(job, job), "Waiting")


def state_of(facts: Facts) -> State:
    """Return the state of a gang, unless its Volcano Job has stopped."""
    match facts.members:
        case "over":
            return "Failed" if facts.failed else "Completed"
        case "short":
            return "Degraded"
        case "whole":
            return "Running" if facts.begun else "Starting"
    if facts.placement == "Reserved":
        return "Reserved"
    return "Starting" if facts.placement in PLANNED and not facts.waits else "Waiting"


def facts_of(group: PodGroup, placement: Placement | None = None, pods: Iterable[Pod] | None = None) -> Facts:
    """Return the facts that a gang's objects report; None are pods that may not be read.

    A gang that has ended has failed if its owner says so, or if none succeeded and some failed or all were evicted.
    """
    status, waits = group.status, bool(group.why_waiting)
    told: PlacementPhase | Literal[""] = "Reserved" if waits and status.expected_start else ""
    if any(each.type == "Unschedulable" and each.reason == PLACED for each in status.conditions):
        told = "Planned"
    return Facts(
        members=_MEMBERS.get(status.phase, ""),
        begun=pods is None or _begun({pod.status.phase for pod in pods}),
        failed=bool(status.ending or (not status.succeeded and (status.failed or group.evicted))),
        waits=waits,
        placement=placement.status.phase if placement else told,
    )


def _begun(phases: set[str]) -> bool:
    """Return True if a member runs or has succeeded, or all have ended: those that failed may be of an earlier try."""
    return bool(phases & {"Running", "Succeeded"}) or phases == {"Failed"}
