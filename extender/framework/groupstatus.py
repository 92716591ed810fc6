"""What a PodGroup's status should say. The rules of the phases are Volcano's (session.go, getPodGroupPhase)."""

from uuid import NAMESPACE_URL, uuid5

from msgspec import structs

from extender.framework.decisions import Unschedulable
from extender.state.gangs import GangView
from muster.api.meta import format_time
from muster.api.scheduling import ConditionType, PodGroupCondition, PodGroupPhase, PodGroupStatus


def wanted_status(gang: GangView, *, enqueued: bool, waits: Unschedulable | None, now: float) -> PodGroupStatus:
    """The status as it should be; equal to the present one if nothing changed."""
    if gang.set_aside:  # of its pods nothing is known
        status = gang.group.status
        return structs.replace(status, conditions=_conditions(gang, status.phase, waits, now))
    alive = [pod for pod in gang.pods if not pod.terminating]
    running = sum(pod.phase == "Running" for pod in alive)
    succeeded = sum(pod.phase == "Succeeded" for pod in alive)
    failed = sum(pod.phase == "Failed" for pod in alive)
    placed = sum(bool(pod.node) or pod.phase in {"Succeeded", "Failed"} for pod in gang.pods)
    ended = sum(pod.phase in {"Succeeded", "Failed"} for pod in gang.pods)
    finished = placed == ended and not any(pod.waiting for pod in alive)
    phase = _phase(gang, enqueued=enqueued, placed=placed, running=running, finished=finished, waits=waits is not None)
    return PodGroupStatus(
        phase=phase,
        conditions=_conditions(gang, phase, waits, now),
        running=running,
        succeeded=succeeded,
        failed=failed,
    )


def _phase(gang: GangView, *, enqueued: bool, placed: int, running: int, finished: bool, waits: bool) -> PodGroupPhase:
    present = gang.group.status.phase
    if placed and placed >= gang.min_member:
        return "Completed" if finished else "Running"
    if running and waits and present in {"Running", "Unknown"}:
        return "Unknown"
    if present == "Completed" and finished:
        return "Completed"  # the controller says so of a workload that has ended, also if pods of it were deleted
    if enqueued or present == "Inqueue":
        return "Inqueue"
    if gang.begun and gang.group.status.phase == "Running":
        return "Running"  # members that are restarted are placed as they come; the gang keeps what it has
    return "Pending"


def _conditions(
    gang: GangView, phase: PodGroupPhase, waits: Unschedulable | None, now: float
) -> list[PodGroupCondition]:
    """At most one condition per type; a type that is not true any more stays, with status False."""
    known: dict[ConditionType, PodGroupCondition] = {
        condition.type: condition for condition in gang.group.status.conditions
    }
    wanted: dict[ConditionType, tuple[str, str, str]] = {}
    if phase in {"Running", "Completed"} and waits is None:
        wanted["Scheduled"] = ("True", "Scheduled", "enough members have a node")
        if "Unschedulable" in known:
            wanted["Unschedulable"] = ("False", "Scheduled", "enough members have a node")
    elif waits is not None:
        wanted["Unschedulable"] = ("True", waits.reason, waits.message)
        if "Scheduled" in known and not gang.started:
            wanted["Scheduled"] = ("False", waits.reason, waits.message)
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
