"""Content of PodGroup.status after a planning cycle: phase, counts of pods, and conditions.

`extender.groupstatus` writes the status.

The phases follow Volcano's rules (session.go, getPodGroupPhase). A started gang is compared with the minimum that it
had when it started. If the minimum is raised later, the gang does not get the phase Unknown, because this phase may
make a Volcano Job restart.
"""

from typing import Any
from uuid import NAMESPACE_URL, uuid5

import msgspec
from msgspec.structs import replace

from extender.planner import reasons
from extender.planner.framework import decisions
from extender.planner.state.gangs import GangView
from muster.api.kubernetes.meta import format_time
from muster.api.muster.states import PHASES, Facts, Members, state_of
from muster.api.volcano.scheduling import PLACED, ConditionType, PodGroupCondition, PodGroupPhase, PodGroupStatus

_ENDED = frozenset({"Succeeded", "Failed"})
"""Phases of pods that are no longer running."""
_OVER = {PLACED: reasons.placements.PLACED, "Admitted": reasons.placements.ADMITTED}


def status_body(status: PodGroupStatus) -> dict[str, Any]:
    """Return the status as a merge patch; the patch also resets fields that the status's JSON omits."""
    gone = {"running": 0, "succeeded": 0, "failed": 0, "place": None, "expectedStart": None}
    return {**gone, **msgspec.to_builtins(status)}


def wanted_status(
    gang: GangView, *, enqueued: bool, placed: bool, waits: decisions.Unschedulable | None, now: float
) -> PodGroupStatus:
    """Return the PodGroup's status after a cycle; `waits` is the decision that the gang waits, if there is one."""
    if gang.excluded:  # the gang's pods are unknown
        status = gang.group.status
        return replace(status, conditions=_conditions(gang, status.phase, waits, "", now))
    alive = [pod for pod in gang.pods if not pod.terminating]
    running = sum(pod.phase == "Running" for pod in alive)
    gone = sum(pod_set.gone for pod_set in gang.pod_sets)  # pods that have succeeded
    succeeded = gone + sum(pod.phase == "Succeeded" for pod in alive)
    failed = sum(pod.phase == "Failed" for pod in alive)
    scheduled = [pod for pod in gang.pods if pod.node or pod.phase in _ENDED]
    # an ended or terminating pod and its successor count as one member
    slots = {pod.slot or pod.uid for pod in scheduled}
    expected = {slot for slot, _, _ in gang.placed_slots()} if gang.started else set()
    finished = all(pod.phase in _ENDED for pod in scheduled) and not expected and not any(pod.waiting for pod in alive)
    enough = bool(slots) and len(slots | expected) + gone >= gang.floor.min_member
    # the pods of an evicted gang end before they are gone; the gang then waits
    deleted = any(pod.terminating and (pod.phase == "Failed" or gang.group.evicted) for pod in scheduled)
    finished &= not deleted or gang.group.status.phase == "Completed"
    phase = _phase(gang, enqueued=enqueued, enough=enough, running=running, finished=finished)
    over = PLACED if placed or gang.active else "Admitted" if enqueued else ""
    conditions = _conditions(gang, phase, waits, over, now)
    status = replace(
        gang.group.status, phase=phase, conditions=conditions, running=running, succeeded=succeeded, failed=failed
    )
    if (
        phase in {"Pending", "Inqueue"} and over != PLACED
    ):  # while the gang waits, `extender.positionwriter` writes these fields
        return status
    return replace(status, place=0, expected_start=None)


def _phase(gang: GangView, *, enqueued: bool, enough: bool, running: int, finished: bool) -> PodGroupPhase:
    present = gang.group.status.phase
    members: Members = ""
    if finished and (enough or present == "Completed"):
        members = "over"  # the controller sets this phase when the workload has ended, even if pods were deleted
    elif enough:
        members = "whole"
    elif present in {"Running", "Unknown"} and (running or gang.started):  # else, no members are left
        members = "whole" if present == "Running" and not running else "short"
    phase = PHASES[state_of(Facts(members=members))]
    return "Inqueue" if phase == "Pending" and (enqueued or present == "Inqueue") else phase


def _is_evicted(gang: GangView) -> bool:
    """Return True for an evicted gang if all its remaining pods are terminating; it shows the eviction's reason."""
    return bool(gang.group.evicted) and all(pod.terminating or pod.phase == "Failed" for pod in gang.pods)


def _conditions(
    gang: GangView, phase: PodGroupPhase, waits: decisions.Unschedulable | None, over: str, now: float
) -> list[PodGroupCondition]:
    """Return one condition of each type; a condition that no longer holds gets status False and the reason `over`."""
    known: dict[ConditionType, PodGroupCondition] = {
        condition.type: condition for condition in gang.group.status.conditions
    }
    wanted: dict[ConditionType, tuple[str, str, str]] = {}
    data = waits.data if waits is not None else None
    if waits is None and _is_evicted(gang):
        ended = "False" if phase == "Completed" else "True"
        data = gang.group.evicted.data
        wanted["Unschedulable"] = (ended, reasons.placements.EVICTED, str(gang.group.evicted))
    elif phase in {"Running", "Completed"} and waits is None:
        wanted["Scheduled"] = ("True", "Scheduled", reasons.placements.ENOUGH)
        if "Unschedulable" in known:
            wanted["Unschedulable"] = ("False", "Scheduled", reasons.placements.ENOUGH)
    elif waits is not None:
        wanted["Unschedulable"] = ("True", waits.reason, waits.message)
        if "Scheduled" in known and not gang.started:
            wanted["Scheduled"] = ("False", waits.reason, waits.message)
    elif over and "Unschedulable" in known and known["Unschedulable"].status == "True":
        wanted["Unschedulable"] = ("False", over, _OVER[over])
    result = []
    for kind in dict.fromkeys([*known, *wanted]):
        old = known.get(kind)
        status, reason, message = wanted.get(kind) or (old.status, old.reason, old.message) if old else wanted[kind]
        if old is not None and (old.status, old.reason, old.message) == (status, reason, message):
            result.append(old)
            continue
        changed = old is None or old.status != status
        moment = format_time(now) if changed or old is None else old.last_transition_time
        result.append(
            PodGroupCondition(
                type=kind,
                status=status,
                transition_id=str(uuid5(NAMESPACE_URL, f"{gang.uid}/{kind}/{moment}")),
                last_transition_time=moment,
                reason=reason,
                message=message,
                why=data if kind == "Unschedulable" else None,
            )
        )
    return result
