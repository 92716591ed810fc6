"""The status of a PodGroup as it should be. The rules of the phases are Volcano's (session.go, getPodGroupPhase).

A gang that has started is judged by the minimum that it started with, so that asking for more does not make it Unknown,
which policies of a Job may answer by a restart.
"""

from uuid import NAMESPACE_URL, uuid5

from msgspec import structs

from extender.planner import reasons
from extender.planner.framework.decisions import Unschedulable
from extender.planner.state.gangs import GangView
from muster.api.kubernetes.meta import format_time
from muster.api.volcano.scheduling import ConditionType, PodGroupCondition, PodGroupPhase, PodGroupStatus

_OVER = {"Placed": reasons.placements.PLACED, "Admitted": reasons.placements.ADMITTED}


def wanted_status(
    gang: GangView, *, enqueued: bool, placed: bool, waits: Unschedulable | None, now: float
) -> PodGroupStatus:
    """The status as it should be; equal to the present one if nothing changed.

    `enqueued` and `placed` say what this cycle decided, `waits` what it found in the gang's way.
    """
    if gang.set_aside:  # of its pods nothing is known
        status = gang.group.status
        return structs.replace(status, conditions=_conditions(gang, status.phase, waits, "", now))
    alive = [pod for pod in gang.pods if not pod.terminating]
    running = sum(pod.phase == "Running" for pod in alive)
    succeeded = sum(pod.phase == "Succeeded" for pod in alive)
    failed = sum(pod.phase == "Failed" for pod in alive)
    scheduled = sum(bool(pod.node) or pod.phase in {"Succeeded", "Failed"} for pod in gang.pods)
    expected = sum(1 for _ in gang.placed_seats()) if gang.started else 0
    ended = sum(pod.phase in {"Succeeded", "Failed"} for pod in gang.pods)
    finished = scheduled == ended and not expected and not any(pod.waiting for pod in alive)
    enough = bool(scheduled) and scheduled + expected >= gang.floor.min_member
    phase = _phase(gang, enqueued=enqueued, enough=enough, running=running, finished=finished)
    over = "Placed" if placed or gang.active else "Admitted" if enqueued else ""
    return PodGroupStatus(
        phase=phase,
        conditions=_conditions(gang, phase, waits, over, now),
        running=running,
        succeeded=succeeded,
        failed=failed,
    )


def _phase(gang: GangView, *, enqueued: bool, enough: bool, running: int, finished: bool) -> PodGroupPhase:
    present = gang.group.status.phase
    if enough:
        return "Completed" if finished else "Running"
    if running and present in {"Running", "Unknown"}:
        return "Unknown"
    if present == "Completed" and finished:
        return "Completed"  # the controller says so of a workload that has ended, also if pods of it were deleted
    if enqueued or present == "Inqueue":
        return "Inqueue"
    if gang.started and present in {"Running", "Unknown"}:
        return present  # some members are bound, and none of them runs yet
    return "Pending"


def _conditions(
    gang: GangView, phase: PodGroupPhase, waits: Unschedulable | None, over: str, now: float
) -> list[PodGroupCondition]:
    """At most one condition per type; a type that is not true any more stays, with status False.

    `over` says in a word how what was in the gang's way has ended; empty if that is not known.
    """
    known: dict[ConditionType, PodGroupCondition] = {
        condition.type: condition for condition in gang.group.status.conditions
    }
    wanted: dict[ConditionType, tuple[str, str, str]] = {}
    if phase in {"Running", "Completed"} and waits is None:
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
            )
        )
    return result
