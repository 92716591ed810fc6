"""The end of a TrainJob, by its Jobs, its JobSet, a plugin or its deadline; and the later deletion of its Job.

The reasons in a TrainJob's conditions are the same as in a JobSet's conditions. All times are arguments of the
functions, in seconds since the epoch.
"""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import msgspec
from msgspec import field

from controller.trainjob.rules.children import ENDS, OVER, Children, End, has
from muster.api import names
from muster.api.base import Wire
from muster.api.kubeflow.jobset import JobSet, ReplicatedJobStatus
from muster.api.kubeflow.trainer import JOB_FAILURES, TrainJob
from muster.api.kubernetes.core import Pod
from muster.api.kubernetes.meta import Condition, readable_time
from muster.api.kubernetes.pod_problems import first_failure
from muster.api.volcano.batch import Job

MAX_RETRY, SPENT = "MaxRetryReached", "RestartBudgetSpent"
"""The reason for the failure of a Job that had no restart left."""


class EndCondition(NamedTuple):
    """The condition that ends a TrainJob."""

    type: End
    reason: str
    message: str


COMPLETE = EndCondition("Complete", "AllJobsCompleted", "jobset completed successfully")
_DEADLINE = "DeadlineExceeded"
_NO_RESTART_LEFT = "jobset failed due to reaching max number of restarts"


def outcome(children: Children) -> EndCondition | None:
    """Return the end of a TrainJob by its initializers and its Job; None while it runs."""
    for name, job in children.initializers.items():
        if has(job, "Failed"):
            failed = next(each for each in job.status.get("conditions") or [] if each.get("type") == "Failed")
            why = failed.get("message") or failed.get("reason") or "its condition has no message"
            return EndCondition("Failed", "FailedJobs", f"{JOB_FAILURES}initializer {name}: {why}")
    return _of_job(children.job, children.pods) if children.job else None


def _of_job(job: Job, pods: Iterable[Pod]) -> EndCondition | None:
    state = job.status.state
    if state.phase == "Completed":
        return COMPLETE
    if state.phase not in {"Failed", "Terminated"}:
        return None
    first = first_failure(pods)
    why = first[2] if first else state.message
    if state.reason in {MAX_RETRY, SPENT}:
        return EndCondition("Failed", "ReachedMaxRestarts", f"{_NO_RESTART_LEFT} ({state.message}): {why}")
    return EndCondition("Failed", "FailedJobs", f"{JOB_FAILURES}{why}")


class Ending(Wire):
    """The condition with which a plugin ends a TrainJob; it has no timestamp, because plugins read no clock."""

    type: str
    status: str
    reason: str
    message: str = ""


class StatusPart(Wire):
    """The part of a TrainJob's status that a plugin may compute."""

    conditions: list[Ending] = field(default_factory=list)
    jobs_status: list[ReplicatedJobStatus] = field(default_factory=list)


class Computed(NamedTuple):
    """The end of a TrainJob and its counts of jobs, as computed by a JobSet or a plugin."""

    end: EndCondition | None = None
    counts: tuple[ReplicatedJobStatus, ...] = ()

    def with_counts(self, others: Iterable[ReplicatedJobStatus]) -> list[ReplicatedJobStatus]:
        """Return `others`, merged with the computed counts.

        A computed count replaces the count of the same name in `others`; further computed counts are appended.
        """
        left = {each.name: each for each in self.counts}
        known = [left.pop(each.name, each) for each in others]
        return [*known, *left.values()]


def of_job_set(job_set: JobSet | None) -> Computed:
    """Return the end and the counts of a JobSet, which also apply to the JobSet's TrainJob."""
    if job_set is None:
        return Computed()
    return Computed(_end_of(job_set.status.conditions, ENDS), tuple(job_set.status.replicated_jobs_status))


def computed(status: Mapping[str, Any] | None) -> Computed:
    """Read the part of a TrainJob's status that a plugin has computed.

    Raise msgspec.ValidationError if the computed status is malformed.
    """
    found = msgspec.convert(status or {}, StatusPart)
    return Computed(_end_of(found.conditions, {end: end for end in ENDS.values()}), tuple(found.jobs_status))


def _end_of(conditions: Iterable[Condition | Ending], ends: Mapping[str, End]) -> EndCondition | None:
    for each in conditions:
        if each.type in ends and each.status == "True":
            return EndCondition(ends[each.type], each.reason, each.message)
    return None


def resumed_at(train_job: TrainJob, children: Children) -> str:
    """Return the time when the TrainJob was last resumed; "" if it was never suspended.

    Until the pods run, the condition `Suspended` contains this time. Afterwards, an annotation contains the time,
    because Kubeflow's SDK takes any condition for "not running".
    """
    for each in train_job.status.conditions:
        if each.type == "Suspended" and each.status == "False":
            return each.last_transition_time
    return children.notes.get(names.RESUMED_AT, "")


def left_s(train_job: TrainJob, children: Children, now_s: float) -> float | None:
    """Return the seconds until the deadline, counted from creation or last resumption.

    Return None if the TrainJob has no deadline, or while it is suspended.
    """
    seconds = train_job.spec.active_deadline_seconds
    began_s = readable_time(resumed_at(train_job, children) or train_job.metadata.creation_timestamp)
    if not seconds or train_job.spec.suspend or began_s is None:
        return None
    return began_s + seconds - now_s


def deadline_exceeded(train_job: TrainJob, children: Children) -> EndCondition:
    """Return the end of a TrainJob whose deadline is over."""
    since = "last resumption" if resumed_at(train_job, children) else "creation"
    message = f"TrainJob exceeded its deadline of {train_job.spec.active_deadline_seconds} s, counted from its {since}"
    return EndCondition("Failed", _DEADLINE, message)


def overdue(train_job: TrainJob) -> bool:
    """Return True if the TrainJob has failed because it exceeded its deadline; its pods are then deleted."""
    return any(each.type == "Failed" and each.reason == _DEADLINE for each in train_job.status.conditions)


def expires_s(train_job: TrainJob, children: Children) -> float | None:
    """Return the time at which the Job of an ended TrainJob must be deleted; None if the Job must not be deleted."""
    after = children.notes.get(names.DELETE_AFTER, "")
    ends = [each.last_transition_time for each in train_job.status.conditions if each.type in OVER]
    ended_s = readable_time(ends[0]) if ends else None
    if ended_s is None or not after.isdecimal():
        return None
    return ended_s + int(after)
