"""The life of a Job as a table: (phase, action) → what to do and which phase to enter.

A step that enters a phase is written to the Job's status *before* its effect is carried out, so a controller that dies
in between finds the intent in the phase and goes on. What a phase turns into when its work is done is a rule of
counters (`next_phase`). Differences from Volcano, each on purpose: AbortJob, TerminateJob and CompleteJob are honoured
while Restarting; ResumeJob does not use up a retry; an unknown action is a sync in every phase.
"""

from enum import StrEnum
from typing import NamedTuple

from controller.job.rules.counts import Counts
from muster.api.volcano.batch import FINISHED, JobSpec, Phase
from muster.volcano.defaults import max_retry
from muster.volcano.tasks import minimum, total_minimum, total_replicas


class Action(StrEnum):
    """Everything that can be asked of a Job."""

    SYNC_JOB = "SyncJob"
    RESTART_JOB = "RestartJob"
    RESTART_TASK = "RestartTask"
    RESTART_POD = "RestartPod"
    RESTART_PARTITION = "RestartPartition"
    ABORT_JOB = "AbortJob"
    TERMINATE_JOB = "TerminateJob"
    COMPLETE_JOB = "CompleteJob"
    RESUME_JOB = "ResumeJob"


class Effect(StrEnum):
    """What happens to the pods."""

    SYNC = "sync"  # create what is missing, delete what is too much
    KILL_ALL = "kill all"  # delete every pod
    KILL_SOFT = "kill"  # delete every pod that has not finished
    KILL_TARGET = "kill target"  # delete the pods of one task, pod or partition


class Step(NamedTuple):
    """One cell of the table."""

    effect: Effect
    enter: Phase | None = None  # None: the phase stays
    retry: bool = False  # whether it uses up one of maxRetry


class Transition(NamedTuple):
    """A phase that the counters lead to, and why."""

    phase: Phase
    reason: str
    message: str


MAX_RETRY = "MaxRetryReached"
"""Reason of a Job that has failed as no restart was left."""
TARGETED = frozenset({Action.RESTART_TASK, Action.RESTART_POD, Action.RESTART_PARTITION})
STOPPED_PHASES = FINISHED | {"Aborted"}
"""Phases in which nothing runs; Aborted is the only one that can be left, by ResumeJob."""
DRAINING: dict[Phase, Phase] = {"Completing": "Completed", "Terminating": "Terminated", "Aborting": "Aborted"}

_STOP = {
    Action.ABORT_JOB: Step(Effect.KILL_SOFT, "Aborting"),
    Action.TERMINATE_JOB: Step(Effect.KILL_SOFT, "Terminating"),
    Action.COMPLETE_JOB: Step(Effect.KILL_SOFT, "Completing"),
}
_LIVE = {
    **dict.fromkeys(Action, Step(Effect.SYNC)),
    **_STOP,
    **dict.fromkeys(TARGETED, Step(Effect.KILL_TARGET, "Restarting", retry=True)),
    Action.RESTART_JOB: Step(Effect.KILL_ALL, "Restarting", retry=True),
}
_RESTARTING = {
    **dict.fromkeys(Action, Step(Effect.SYNC)),
    **_STOP,
    **dict.fromkeys(TARGETED, Step(Effect.KILL_TARGET)),
    Action.RESTART_JOB: Step(Effect.KILL_ALL),
}
_DRAIN = dict.fromkeys(Action, Step(Effect.KILL_SOFT))
_ABORT = {**_DRAIN, Action.RESUME_JOB: Step(Effect.KILL_SOFT, "Restarting")}

_ROWS: dict[Phase, dict[Action, Step]] = {
    "": _LIVE,
    "Pending": _LIVE,
    "Running": _LIVE,
    "Restarting": _RESTARTING,
    "Completing": _DRAIN,
    "Terminating": _DRAIN,
    "Aborting": _ABORT,
    "Aborted": _ABORT,
    **dict.fromkeys(FINISHED, _DRAIN),
}
TABLE: dict[tuple[Phase, Action], Step] = {
    (phase, action): step for phase, row in _ROWS.items() for action, step in row.items()
}


def step(phase: Phase, action: str) -> Step:
    """What `action` does in `phase`; an unknown action is a sync."""
    known = Action(action) if action in Action._value2member_map_ else Action.SYNC_JOB
    return TABLE[phase, known]


def next_phase(spec: JobSpec, phase: Phase, counts: Counts, retry_count: int) -> Transition | None:
    """The phase that follows from the counters, or None if the Job stays where it is."""
    if phase in {"", "Pending"}:
        return _started(spec, counts)
    if phase == "Running":
        return _completion(spec, counts)
    if phase == "Restarting":
        return _restarted(spec, counts, retry_count)
    if phase in DRAINING and counts.pending == counts.running == counts.terminating == 0:
        return Transition(DRAINING[phase], "PodsStopped", "all pods have finished or are gone")
    return None


def _started(spec: JobSpec, counts: Counts) -> Transition | None:
    present = counts.running + counts.succeeded + counts.failed
    if present < spec.min_available:
        return None
    return Transition("Running", "MinAvailableReached", f"{present} pods started, {spec.min_available} are needed")


def _restarted(spec: JobSpec, counts: Counts, retry_count: int) -> Transition | None:
    limit = max_retry(spec)
    if retry_count >= limit:
        return Transition("Failed", MAX_RETRY, f"restarted {retry_count} times, maxRetry is {limit}")
    if total_replicas(spec) - counts.terminating >= spec.min_available:
        return Transition(
            "Pending", "Restarted", f"the old pods are gone; restart {retry_count} of at most {limit - 1}"
        )
    return None


def _completion(spec: JobSpec, counts: Counts) -> Transition | None:
    replicas = total_replicas(spec)
    if replicas == 0:
        return None
    if spec.min_success is not None and counts.succeeded >= spec.min_success:
        return Transition("Completed", "MinSuccessReached", f"{counts.succeeded} pods succeeded, enough for minSuccess")
    if counts.succeeded + counts.failed == replicas:
        return _all_finished(spec, counts)
    if counts.pending > replicas - spec.min_available:
        return Transition("Pending", "BelowMinAvailable", f"{counts.pending} of {replicas} pods are pending again")
    return None


def _all_finished(spec: JobSpec, counts: Counts) -> Transition:
    if spec.min_available >= total_minimum(spec):
        for task in spec.tasks:
            succeeded = counts.tasks.get(task.name, {}).get("Succeeded", 0)
            if task.min_available is not None and task.name in counts.tasks and succeeded < minimum(task):
                message = f"task {task.name}: {succeeded} pods succeeded, {minimum(task)} are needed"
                return Transition("Failed", "TaskFailed", message)
    if spec.min_success is not None:
        message = f"all pods finished and {counts.succeeded} succeeded; minSuccess is {spec.min_success}"
        return Transition("Failed", "MinSuccessMissed", message)
    message = f"all pods finished and {counts.succeeded} succeeded; minAvailable is {spec.min_available}"
    if counts.succeeded >= spec.min_available:
        return Transition("Completed", "PodsSucceeded", message)
    return Transition("Failed", "PodsFailed", message)
