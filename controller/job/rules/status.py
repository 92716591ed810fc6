"""The status of a Job: phase, counters, and reason and message of its state.

All functions are pure and get the time as an argument.
"""

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import NamedTuple

from msgspec import structs

from controller.job.rules import notes
from controller.job.rules.budget import spent
from controller.job.rules.events import POD_EVICTED
from controller.job.rules.phases import (
    MAX_RETRY,
    STOPPED_PHASES,
    SYNCED,
    Counts,
    Transition,
    count,
    next_phase,
    unplaced,
    without,
)
from controller.job.rules.timers import back_off, timers_of
from muster.api.grammar import and_more
from muster.api.kubernetes.core import Pod
from muster.api.kubernetes.meta import format_time, parse_time
from muster.api.kubernetes.pod_problems import first_failure, sentence
from muster.api.muster.gang import gated, later_tasks
from muster.api.volcano.batch import REFUSED, Job, JobCondition, JobState, JobStatus, Phase, TaskState
from muster.api.volcano.scheduling import PodGroup, PodGroupCondition
from muster.volcano.done import SUCCEEDED
from muster.volcano.tasks import job_minimum

UNSCHEDULABLE = "Unschedulable"
"""Reason of a Job whose gang cannot be placed for now."""
RECOVERABLE = REFUSED | {"FailedDelete"}
"""Reasons of failures; the reason "Recovered" replaces such a reason when the failure is over."""
STARTING = frozenset({"Queued", "Starting"})
"""Reasons of a Pending Job that waits without a problem."""
_RUNNING = frozenset({"", "MinAvailableReached", "Recovered"})
"""Reasons of a Running Job without problems; any other reason describes a problem with the Job's pods."""
_SECOND_MS = 1000


class Failure(NamedTuple):
    """A failure during a pass; after a `transient` failure, the pass is retried."""

    reason: str
    message: str
    transient: bool = True


class Work(NamedTuple):
    """The result of the work in a phase: the Job's current `pods`, and its `status`, which names the created objects.

    `waiting` is the reason and the message of a Pending Job that waits. `obstacle` is the kind of obstacle to the
    placement of the Job's gang. `surplus` are pods that the Job does not need.
    """

    status: JobStatus
    pods: Sequence[Pod]
    failures: Sequence[Failure]
    waiting: tuple[str, str] | None = None
    surplus: Sequence[Pod] = ()
    obstacle: str = ""


def concluded(job: Job, work: Work, now_s: float) -> tuple[JobStatus, str | None]:
    """Return the status after the work: with the next phase, or with the reason why the phase does not change.

    Also return the reason why the gang cannot be placed; None if the Job does not wait for a placement. A phase in
    which pods are deleted does not change while deletions fail. Surplus pods do not affect the phase.
    """
    counts, phase, status = count(work.pods), job.status.state.phase, work.status
    held = bool(work.failures) and phase not in SYNCED
    left = without(work.pods, work.surplus) if work.surplus else work.pods
    wanted = count(left) if work.surplus else counts
    retries, idle = job.status.retry_count, unplaced(job, left)
    transition = None if held else next_phase(job.spec, phase, wanted, retries, spent(job.status), idle)
    if transition:
        message = _with_refusals(transition, work)
        status = moved(status, transition.phase, transition.reason, message, now_s)
        status = finished_with_duration(job, status)
    elif phase in STOPPED_PHASES:
        pass  # keep the reason for its end; events report failures
    elif work.failures:
        reason, message, _ = work.failures[0]
        status = explained(status, reason, and_more(message, len(work.failures)))
    elif work.waiting:
        status = explained(status, *work.waiting)
    elif phase == "Running" and (hindered := sentence(work.pods)):
        status = explained(status, *hindered)
    elif status.state.reason in RECOVERABLE or (phase == "Running" and status.state.reason not in _RUNNING):
        status = explained(status, "Recovered", f"{status.state.reason} is over")
    waits = work.waiting if not transition and not work.failures else None
    unschedulable = waits[1] if waits and waits[0] == UNSCHEDULABLE else None
    return counted(begun(job, status), counts, job_minimum(job.spec)), unschedulable


def begun(job: Job, status: JobStatus) -> JobStatus:
    """Return the status of a new Job, with its creation time as the time of the phase Pending, the CRD's default."""
    if job.status.conditions or job.status.state.phase != "Pending":
        return status
    created = job.metadata.creation_timestamp
    state = structs.replace(status.state, last_transition_time=status.state.last_transition_time or created)
    pending = JobCondition(status="Pending", last_transition_time=created)
    return structs.replace(status, state=state, conditions=[pending, *status.conditions])


def _with_refusals(transition: Transition, work: Work) -> str:
    """Return the message of a transition.

    If the Job has failed or was terminated, the message names its first failed pod.
    """
    if transition.phase not in {"Failed", "Terminated"}:
        return transition.message
    last_event = work.status.state.message if transition.reason == MAX_RETRY else ""
    if last_event.startswith("event "):
        transition = transition._replace(message=f"{transition.message} ({last_event})")
    first, last = first_failure(work.pods), back_off(work.status)
    why = first[2] if first else last.refusal if last and transition.reason == MAX_RETRY else ""
    return f"{transition.message}; {why}" if why else transition.message


def moved(status: JobStatus, phase: Phase, reason: str, message: str, now_s: float) -> JobStatus:
    """Return the status of a Job that enters `phase`.

    The status keeps one condition per phase, with the newest condition last.
    """
    now = format_time(now_s)
    conditions = [condition for condition in status.conditions if condition.status != phase]
    return structs.replace(
        notes.noted(status, notes.RESTART, ""),
        state=JobState(phase=phase, reason=reason, message=message, last_transition_time=now),
        conditions=[*conditions, JobCondition(status=phase, last_transition_time=now)],
    )


def explained(status: JobStatus, reason: str, message: str) -> JobStatus:
    """Return the status with another reason and message for the current phase."""
    return structs.replace(status, state=structs.replace(status.state, reason=reason, message=message))


def counted(status: JobStatus, counts: Counts, min_available: int) -> JobStatus:
    """Return the status with these numbers of pods, and with the minimum of the gang."""
    tasks = {task: TaskState(phase=phases) for task, phases in counts.tasks.items()}
    totals = {name: count for name, count in asdict(counts).items() if name != "tasks"}
    return structs.replace(status, min_available=min_available, task_status_count=tasks, **totals)


def finished_with_duration(job: Job, status: JobStatus) -> JobStatus:
    """Return the status of a stopped Job with runningDuration, the time from its creation to its end."""
    created, ended = parse_time(job.metadata.creation_timestamp), parse_time(status.state.last_transition_time)
    if status.state.phase not in STOPPED_PHASES or created is None or ended is None:
        return structs.replace(status, running_duration=None)
    return structs.replace(status, running_duration=format_duration(max(0.0, ended - created)))


def format_duration(seconds: float) -> str:
    """Return a duration as Go writes it, to the millisecond: 1h2m3s, 1.5s, 500ms."""
    milliseconds = round(seconds * 1000)
    if 0 < milliseconds < _SECOND_MS:
        return f"{milliseconds}ms"
    minutes, rest = divmod(milliseconds / _SECOND_MS, 60)
    hours, minutes = divmod(int(minutes), 60)
    return f"{hours}h{minutes}m{rest:g}s" if hours else f"{minutes}m{rest:g}s" if minutes else f"{rest:g}s"


def waiting(group: PodGroup, pods: Iterable[Pod]) -> tuple[str, str]:
    """Return the reason and the message for the status of a Pending Job.

    Problems that the kubelet reports take precedence over pods without a node.
    """
    pods = [*pods]
    why = unschedulable(group)
    if why is not None:
        return UNSCHEDULABLE, why
    if group.status.phase in {"", "Pending"}:
        return queued(group.spec.queue)
    hindered = sentence(pods)
    if hindered:
        return hindered
    if any(gated(pod) for pod in pods):
        return "Gated", "the gang is admitted and waits for a placement"
    later = sorted(later_tasks(group.metadata))
    if later:
        return "WaitingForTasks", f"these tasks wait until other tasks are ready: {', '.join(later)}"
    return "Starting", "the gang is admitted; its pods are being started"


def queued(queue: str) -> tuple[str, str]:
    """Return the reason and the message for the status of a Job whose gang is not admitted yet."""
    return "Queued", f"the gang waits to be admitted by queue {queue}"


def unschedulable(group: PodGroup) -> str | None:
    """Return the message of the PodGroup's newest condition if this condition prevents a placement, else None."""
    newest = _newest(group)
    return None if newest is None else newest.message or newest.reason


def obstacle(group: PodGroup) -> str:
    """Return the kind of obstacle to a gang's placement; "" without an obstacle.

    Unlike the message, the kind contains no numbers.
    """
    newest = _newest(group)
    return "" if newest is None else newest.reason or newest.message


def _newest(group: PodGroup) -> PodGroupCondition | None:
    holding = [each for each in group.status.conditions if each.status == "True"]
    newest = max(holding, key=lambda each: each.last_transition_time or "", default=None)
    return None if newest is None or newest.type == "Scheduled" else newest


def only_counters(old: JobStatus, new: JobStatus) -> bool:
    """Return True if two statuses differ only in values that may be written later.

    Counters, the message, timers and succeeded members may be written later. Timers of evicted pods are written at
    once, because another process could not derive them.
    """
    return _lasting(old) == _lasting(new) and _evictions(new) <= _evictions(old)


def _lasting(status: JobStatus) -> tuple[object, ...]:
    lasting = notes.noted(notes.noted(status, notes.TIMERS, ""), SUCCEEDED, "").controlled_resources
    return status.state.phase, status.version, status.retry_count, lasting


def _evictions(status: JobStatus) -> set[object]:
    return {timer.key for timer in timers_of(status) if timer.request.event == POD_EVICTED}
