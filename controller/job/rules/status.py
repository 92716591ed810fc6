"""The status of a Job: what it becomes when it enters a phase, and when its pods are counted. Time is an argument.

Notes of the controller to itself live in `controlledResources`, where Volcano has a free map: what is being restarted,
the UIDs of the last Commands that were carried out, and the timers that no object's timestamp brings back.
"""

from collections.abc import Iterable

from msgspec import structs

from controller.job.rules.backoff import REFUSED_NOTE
from controller.job.rules.counts import Counts
from controller.job.rules.kill import UNFINISHED, WHOLE, Target
from controller.job.rules.machine import STOPPED_PHASES
from controller.job.rules.request import POD_EVICTED
from controller.job.rules.timers import from_note
from muster.api.kubernetes.core import Pod
from muster.api.kubernetes.meta import format_time, parse_time
from muster.api.kubernetes.pod_problems import sentence
from muster.api.muster.gang import gated, later_tasks
from muster.api.volcano.batch import Job, JobCondition, JobState, JobStatus, Phase, TaskState
from muster.api.volcano.scheduling import PodGroup

RESTART_NOTE = "muster.dev/restart"
COMMAND_NOTE = "muster.dev/command"
TIMERS_NOTE = "muster.dev/timers"
PLUGIN_NOTE = "plugin-"
CLAIM_NOTE = "volume-pvc-"
UNSCHEDULABLE = "Unschedulable"
"""Reason of a Job whose gang cannot be placed for now."""

_COMMANDS_NOTED = 8
_SECOND_MS = 1000


def moved(status: JobStatus, phase: Phase, reason: str, message: str, now_s: float) -> JobStatus:
    """The status after entering `phase`; one condition per phase is kept, the newest last."""
    now = format_time(now_s)
    conditions = [condition for condition in status.conditions if condition.status != phase]
    return structs.replace(
        status,
        state=JobState(phase=phase, reason=reason, message=message, last_transition_time=now),
        conditions=[*conditions, JobCondition(status=phase, last_transition_time=now)],
        controlled_resources=_noted(status, RESTART_NOTE, ""),
    )


def explained(status: JobStatus, reason: str, message: str) -> JobStatus:
    """The status with another reason and message for the phase it is in."""
    return structs.replace(status, state=structs.replace(status.state, reason=reason, message=message))


def counted(status: JobStatus, counts: Counts, min_available: int) -> JobStatus:
    """The status with these counters."""
    return structs.replace(
        status,
        min_available=min_available,
        pending=counts.pending,
        running=counts.running,
        succeeded=counts.succeeded,
        failed=counts.failed,
        terminating=counts.terminating,
        unknown=counts.unknown,
        task_status_count={task: TaskState(phase=phases) for task, phases in counts.tasks.items()},
    )


def restarting(status: JobStatus, target: Target) -> JobStatus:
    """The status with a note of what is being restarted: the whole Job (whatever parts), or one part more."""
    noted = _listed(status, RESTART_NOTE)
    if target.kind == WHOLE or (target.kind == UNFINISHED and WHOLE not in noted):
        noted = [str(target)]
    elif not {WHOLE, UNFINISHED, str(target)} & set(noted):
        noted = [*noted, str(target)]
    return structs.replace(status, controlled_resources=_noted(status, RESTART_NOTE, ",".join(noted)))


def restart_targets(status: JobStatus) -> list[Target]:
    """What is being restarted: nothing, the whole Job, or parts of it."""
    return [Target.parse(note) for note in _listed(status, RESTART_NOTE)]


def commanded(status: JobStatus, command_uid: str) -> JobStatus:
    """The status with a note that this Command was carried out; of the last few there are notes."""
    uids = [*_listed(status, COMMAND_NOTE), command_uid][-_COMMANDS_NOTED:]
    return structs.replace(status, controlled_resources=_noted(status, COMMAND_NOTE, ",".join(uids)))


def was_commanded(status: JobStatus, command_uid: str) -> bool:
    """Whether this Command was carried out."""
    return command_uid in _listed(status, COMMAND_NOTE)


def _listed(status: JobStatus, key: str) -> list[str]:
    note = status.controlled_resources.get(key, "")
    return note.split(",") if note else []


def timed(status: JobStatus, note: str) -> JobStatus:
    """The status with this note of timers."""
    if status.controlled_resources.get(TIMERS_NOTE, "") == note:
        return status
    return structs.replace(status, controlled_resources=_noted(status, TIMERS_NOTE, note))


def with_resources(status: JobStatus, plugins: Iterable[str], claims: Iterable[str]) -> JobStatus:
    """The status with a note of the plugins whose objects exist, and of the claims of the Job's volumes."""
    notes = (RESTART_NOTE, COMMAND_NOTE, TIMERS_NOTE, REFUSED_NOTE)
    own = {key: value for key, value in status.controlled_resources.items() if key in notes}
    found = {f"{PLUGIN_NOTE}{name}": name for name in plugins} | {f"{CLAIM_NOTE}{name}": name for name in claims}
    return structs.replace(status, controlled_resources=own | found)


def has_plugins(status: JobStatus) -> bool:
    """Whether objects of plugins exist."""
    return any(key.startswith(PLUGIN_NOTE) for key in status.controlled_resources)


def _noted(status: JobStatus, key: str, value: str) -> dict[str, str]:
    others = {name: note for name, note in status.controlled_resources.items() if name != key}
    return {**others, key: value} if value else others


def finished_with_duration(job: Job, status: JobStatus) -> JobStatus:
    """The status with runningDuration, from the Job's creation to its end, once it has stopped; then it stays so."""
    created, ended = parse_time(job.metadata.creation_timestamp), parse_time(status.state.last_transition_time)
    if status.state.phase not in STOPPED_PHASES or created is None or ended is None:
        return structs.replace(status, running_duration=None)
    return structs.replace(status, running_duration=format_duration(max(0.0, ended - created)))


def format_duration(seconds: float) -> str:
    """A duration as Go writes it, to the millisecond: 1h2m3s, 1.5s, 500ms."""
    milliseconds = round(seconds * 1000)
    if 0 < milliseconds < _SECOND_MS:
        return f"{milliseconds}ms"
    minutes, rest = divmod(milliseconds / _SECOND_MS, 60)
    hours, minutes = divmod(int(minutes), 60)
    return f"{hours}h{minutes}m{rest:g}s" if hours else f"{minutes}m{rest:g}s" if minutes else f"{rest:g}s"


def waiting(group: PodGroup, pods: Iterable[Pod]) -> tuple[str, str]:
    """Why a pending Job waits (reason, message), as far as its PodGroup and pods say.

    What kubelet says of a pod goes before pods that have no node yet: that will not pass by itself.
    """
    pods = [*pods]
    obstacle = unschedulable(group)
    if obstacle is not None:
        return UNSCHEDULABLE, obstacle
    if group.status.phase in {"", "Pending"}:
        return queued(group.spec.queue)
    hindered = sentence(pods)
    if hindered:
        return hindered
    if any(gated(pod) for pod in pods):
        return "Gated", "the gang is admitted and waits for a placement"
    later = sorted(later_tasks(group.metadata))
    if later:
        return "WaitingForTasks", f"tasks that others must be ready for: {', '.join(later)}"
    return "Starting", "the gang is admitted; its pods are being started"


def queued(queue: str) -> tuple[str, str]:
    """Reason and message of a Job whose gang is not admitted yet."""
    return "Queued", f"the gang waits to be admitted by queue {queue}"


def unschedulable(group: PodGroup) -> str | None:
    """What keeps the gang from being placed, as its PodGroup's newest condition says; None if nothing does."""
    told = [each for each in group.status.conditions if each.status == "True"]
    newest = max(told, key=lambda each: each.last_transition_time or "", default=None)
    return None if newest is None or newest.type == "Scheduled" else newest.message or newest.reason


def only_counters(old: JobStatus, new: JobStatus) -> bool:
    """Whether the two differ in nothing but counters, words and timers, which may be written a little later.

    Most timers follow from what pods and gangs still are when another process takes over. An evicted pod is gone, and
    its slot may have another pod by then: its timer is written at once.
    """
    return _weighty(old) == _weighty(new) and _evictions(new) <= _evictions(old)


def _weighty(status: JobStatus) -> tuple[object, ...]:
    return status.state.phase, status.version, status.retry_count, _noted(status, TIMERS_NOTE, "")


def _evictions(status: JobStatus) -> set[object]:
    timers = from_note(status.controlled_resources.get(TIMERS_NOTE, ""))
    return {timer.key for timer in timers if timer.request.event == POD_EVICTED}
