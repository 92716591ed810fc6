"""The phases of a Job: the number of pods in each pod phase, and the resulting next phase of the Job."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from controller.job.rules.events import task_of
from muster.api import names
from muster.api.grammar import be, many
from muster.api.kubernetes.core import Pod
from muster.api.unchecked import mapping
from muster.api.volcano.batch import FINISHED, PODS_STOPPED, Job, JobSpec, Phase
from muster.api.volcano.scheduling import WORLD_ENDED
from muster.volcano.tasks import job_minimum, max_retry, minimum, total_minimum, total_replicas

SYNCED: frozenset[Phase] = frozenset({"", "Pending", "Running"})
"""Phases in which the Job's pods are created; in all other phases pods are deleted."""
STOPPED_PHASES = FINISHED | {"Aborted"}
"""Phases in which no pods run; a Job can only leave the phase Aborted (by ResumeJob)."""
DRAINING: dict[Phase, Phase] = {"Completing": "Completed", "Terminating": "Terminated", "Aborting": "Aborted"}
"""Maps each phase in which the Job's pods are being stopped to the phase after the end of the last pod."""
MAX_RETRY = "MaxRetryReached"
"""Reason of a Job that failed because no restart was left."""
SPENT = "RestartBudgetSpent"
"""Reason of a Job that failed because its restart budget was spent."""
_POD_PHASES = ("Pending", "Running", "Succeeded", "Failed")


@dataclass(slots=True)
class Counts:
    """The number of pods in each phase; a pod that is being deleted is counted only in `terminating`."""

    pending: int = 0
    running: int = 0
    succeeded: int = 0
    failed: int = 0
    unknown: int = 0
    terminating: int = 0
    tasks: dict[str, dict[str, int]] = field(default_factory=dict)


def count(pods: Iterable[Pod]) -> Counts:
    """Count pods by phase, in total and per task."""
    result = Counts()
    for pod in pods:
        if pod.metadata.deletion_timestamp:
            result.terminating += 1
            continue
        phase = pod.status.phase or "Pending"
        name = phase.lower() if phase in _POD_PHASES else "unknown"
        setattr(result, name, getattr(result, name) + 1)
        task = result.tasks.setdefault(task_of(pod), {})
        task[phase] = task.get(phase, 0) + 1
    return result


def without(pods: Iterable[Pod], others: Iterable[Pod]) -> list[Pod]:
    """Return `pods` without the pods in `others`."""
    uids = {pod.metadata.uid for pod in others}
    return [pod for pod in pods if pod.metadata.uid not in uids]


class Transition(NamedTuple):
    """The next phase of a Job, with reason and message."""

    phase: Phase
    reason: str
    message: str


def unplaced(job: Job, pods: Iterable[Pod]) -> int | None:
    """Return the number of pods of an elastic Job that have no node yet; None for any other Job."""
    of_pods = [mapping(mapping(task.template.get("metadata")).get("annotations")) for task in job.spec.tasks]
    if len(of_pods) != 1 or names.ELASTIC not in {**job.metadata.annotations, **of_pods[0]}:
        return None
    waiting = (pod for pod in pods if not (pod.spec.node_name or pod.finished))
    return sum(not pod.metadata.deletion_timestamp for pod in waiting)


def next_phase(
    spec: JobSpec, phase: Phase, counts: Counts, retry_count: int, spent: str = "", unplaced: int | None = None
) -> Transition | None:
    """Return the next phase of a Job, given its numbers of pods; None if the phase does not change.

    `spent` is the message about a spent restart budget, or empty; `unplaced` is the result of the function `unplaced`.
    """
    if phase in {"", "Pending"}:
        return _started(spec, counts)
    if phase == "Running":
        return _completion(spec, counts) if unplaced is None else _elastic(spec, counts, unplaced)
    if phase == "Restarting":
        return Transition("Failed", SPENT, spent) if spent else _restarted(spec, counts, retry_count)
    if phase in DRAINING and counts.pending == counts.running == counts.terminating == 0:
        return Transition(DRAINING[phase], "PodsStopped", PODS_STOPPED)
    return None


def _started(spec: JobSpec, counts: Counts) -> Transition | None:
    present = counts.running + counts.succeeded + counts.failed
    if present < job_minimum(spec):
        return None
    message = f"{many(present, 'pod')} started, {_needed(job_minimum(spec))}"
    return Transition("Running", "MinAvailableReached", message)


def _of(pods: int, total: int) -> str:
    return f"{pods} of {many(total, 'pod')} {be(pods)}"


def _needed(pods: int) -> str:
    return f"{pods} {be(pods)} needed"


def _restarted(spec: JobSpec, counts: Counts, retry_count: int) -> Transition | None:
    limit = max_retry(spec)
    if retry_count >= limit:
        return Transition("Failed", MAX_RETRY, f"maxRetry is {limit}: restarted {retry_count - 1} times, failed again")
    if total_replicas(spec) - counts.terminating < job_minimum(spec):
        return None
    message = f"the old pods are gone; restart {retry_count} of at most {limit - 1}"
    return Transition("Pending", "Restarted", message)


def _completion(spec: JobSpec, counts: Counts) -> Transition | None:
    replicas = total_replicas(spec)
    if replicas == 0:
        return None
    if spec.min_success is not None and counts.succeeded >= spec.min_success:
        message = f"{many(counts.succeeded, 'pod')} succeeded, enough for minSuccess"
        return Transition("Completed", "MinSuccessReached", message)
    if counts.succeeded + counts.failed == replicas:
        return _all_finished(spec, counts)
    if counts.pending > replicas - job_minimum(spec):
        return Transition("Pending", "BelowMinAvailable", f"{_of(counts.pending, replicas)} pending again")
    return None


def _elastic(spec: JobSpec, counts: Counts, unplaced: int) -> Transition | None:
    """Return the next phase of an elastic Job.

    Once every pod with a node has succeeded, and the minimum is met, the Job completes. Pods without a node are then
    deleted, because they would start alone.
    """
    others = counts.running + counts.failed + counts.unknown + counts.terminating + counts.pending - unplaced
    if others or counts.succeeded < max(job_minimum(spec), 1) or counts.succeeded == total_replicas(spec):
        return _completion(spec, counts)
    message = f"{many(counts.succeeded, 'pod')} of the elastic run succeeded; the other pods are no longer started"
    return Transition("Completing", WORLD_ENDED, message)


def _all_finished(spec: JobSpec, counts: Counts) -> Transition:
    if job_minimum(spec) >= total_minimum(spec):
        for task in spec.tasks:
            succeeded = counts.tasks.get(task.name, {}).get("Succeeded", 0)
            if task.name in counts.tasks and succeeded < minimum(task):
                message = f"task {task.name}: {many(succeeded, 'pod')} succeeded, {_needed(minimum(task))}"
                return Transition("Failed", "TaskFailed", message)
    if spec.min_success is not None:
        message = f"all pods finished and {counts.succeeded} succeeded; minSuccess is {spec.min_success}"
        return Transition("Failed", "MinSuccessMissed", message)
    message = f"all pods finished and {counts.succeeded} succeeded; minAvailable is {job_minimum(spec)}"
    if counts.succeeded >= job_minimum(spec):
        return Transition("Completed", "PodsSucceeded", message)
    return Transition("Failed", "PodsFailed", message)
