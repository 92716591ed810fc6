"""The state of a gang, which one function computes from facts, and a table that maps the state to the gang's phase.

Pure.

The planner derives the facts from the members that it knows. All other code derives the facts from the gang's objects
in the API server.
"""

from collections.abc import Collection, Mapping
from typing import Literal

import msgspec

from muster.api.kubeflow.trainer import TRAIN_JOBS
from muster.api.kubernetes.core import Pod
from muster.api.kubernetes.meta import ObjectMeta
from muster.api.muster.placement import Placement, PlacementPhase
from muster.api.volcano.batch import Phase
from muster.api.volcano.scheduling import PLACED, PodGroup, PodGroupPhase

State = Literal[
    "Waiting", "Reserved", "Starting", "Running", "Degraded", "Suspended",
    "Completed", "Failed", "Terminated", "Deleted", "Gone",
]  # fmt: skip
"""The state of a gang. `Degraded` means that too few members run, `Deleted` that the gang was deleted before its end,
and `Gone` that all its objects are deleted."""
Members = Literal["", "whole", "short", "over"]
"""Progress of the members: too few are bound to nodes, enough are bound to nodes, too few are still bound after a
start, or all have ended."""

WAITING = frozenset({"Waiting", "Reserved"})
"""States of gangs that have not started yet."""
ENDED = frozenset({"Completed", "Failed", "Terminated", "Deleted", "Gone"})
"""States of gangs that no longer need nodes."""
PLANNED: frozenset[PlacementPhase | Literal[""]] = frozenset({"Planned", "Binding", "Bound"})
"""Phases of a placement in which the gang has nodes, or will get them."""
TOO_MANY_FAILED = "more of its pods failed than its backoffLimit "
"""Beginning of the message of a Job that failed because of its backoffLimit. Evictions never count towards this
limit."""
STOPPED: Mapping[Phase, State] = {
    "Completed": "Completed", "Failed": "Failed", "Terminated": "Terminated", "Aborted": "Suspended",
}  # fmt: skip
"""Maps each phase of a Volcano Job in which its gang needs no nodes to the state of the gang."""
PHASES: Mapping[State, PodGroupPhase] = {
    "Waiting": "Pending", "Starting": "Running", "Running": "Running", "Degraded": "Unknown",
    "Completed": "Completed", "Failed": "Completed",
}  # fmt: skip
"""Maps a state to the phase that the planner writes. An admitted gang that waits is Inqueue; Volcano has no phase for
planned gangs."""
_STOPS: Mapping[Phase, Phase] = {"Aborting": "Aborted", "Terminating": "Terminated"}
_MEMBERS: Mapping[PodGroupPhase, Members] = {"Running": "whole", "Unknown": "short", "Completed": "over"}


class Facts(msgspec.Struct, kw_only=True, frozen=True, omit_defaults=True):
    """Facts that determine the state of a gang."""

    members: Members = ""
    begun: bool = True
    """False if certainly no member has run yet; failed members that will be replaced do not count."""
    failed: bool = False
    """True if all members have ended without success."""
    waits: bool = False
    """True if a reason for waiting is recorded."""
    suspended: bool = False
    """True if the gang's owner currently wants no pods."""
    placement: PlacementPhase | Literal[""] = ""
    """Phase of the gang's Placement; empty without a Placement. The phase is taken from the PodGroup if the user may
    not read Placements."""


def stopped(phase: Phase, job: ObjectMeta) -> State | None:
    """Return the state of a Volcano Job whose phase means that its gang needs no nodes; None for other phases.

    The Job of a TrainJob is only terminated if the TrainJob has failed.
    """
    state, owner = STOPPED.get(phase), job.controller
    return "Failed" if state == "Terminated" and owner and owner.kind == TRAIN_JOBS.kind else state


def without_gang(phase: Phase, job: ObjectMeta) -> State:
    """Return the state of a Volcano Job without a PodGroup, which is new, suspended or finished."""
    return stopped(_STOPS.get(phase, phase), job) or "Waiting"


def state_of(facts: Facts) -> State:
    """Return the state of a gang, unless its Volcano Job has stopped."""
    match facts.members:
        case "over":
            return "Failed" if facts.failed else "Completed"
        case "short":
            return "Degraded"
        case "whole":
            return "Running" if facts.begun else "Starting"
    if facts.suspended:
        return "Suspended"
    if facts.placement == "Reserved":
        return "Reserved"
    return "Starting" if facts.placement in PLANNED and not facts.waits else "Waiting"


def facts_of(group: PodGroup, placement: Placement | None = None, pods: Collection[Pod] | None = None) -> Facts:
    """Return the facts from a gang's objects; `pods` is None if the user may not read pods.

    Pods on nodes, and waiting replacements of lost members, are counted even if the planner has not written the phase
    yet. A gang that has ended counts as failed if its owner failed. It also counts as failed if no member succeeded,
    and some failed or all were evicted.
    """
    status, waits = group.status, bool(group.why_waiting)
    phase: PlacementPhase | Literal[""] = "Reserved" if waits and status.expected_start else ""
    if any(each.type == "Unschedulable" and each.reason == PLACED for each in status.conditions):
        phase = "Planned"
    return Facts(
        members=_members(group, placement, pods),
        begun=pods is None or _begun({pod.status.phase for pod in pods}),
        failed=bool(status.ending or (not status.succeeded and (status.failed or group.evicted))),
        waits=waits,
        placement=placement.status.phase if placement else phase,
    )


def _members(group: PodGroup, placement: Placement | None, pods: Collection[Pod] | None) -> Members:
    known, least = _MEMBERS.get(group.status.phase, ""), group.spec.min_member
    if pods is None or known == "over" or not least:
        return known
    there = [pod for pod in pods if pod.status.phase != "Failed" and not pod.metadata.deletion_timestamp]
    placed = [pod for pod in there if pod.spec.node_name]
    if len(placed) >= least:
        return "whole"
    starts = placement is not None and placement.status.phase in {"Planned", "Binding"}
    lost = len(there) > len(placed) and _begun({pod.status.phase for pod in placed}) and not starts
    return "short" if known == "whole" and lost else known


def _begun(phases: set[str]) -> bool:
    """Return True if a member runs or has succeeded, or if all members have failed.

    If only some members have failed, these do not count, because they may be from an earlier attempt.
    """
    return bool(phases & {"Running", "Succeeded"}) or phases == {"Failed"}
