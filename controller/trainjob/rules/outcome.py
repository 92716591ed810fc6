"""How a TrainJob ends: with the reasons that a JobSet's conditions would have."""

from collections.abc import Iterable
from typing import Literal, NamedTuple

from controller.trainjob.rules.children import Children, has
from muster.api.kubernetes.core import Pod
from muster.api.volcano.batch import Job

MAX_RETRY = "MaxRetryReached"
"""The reason of a Job that has failed since it had no restart left."""


class Outcome(NamedTuple):
    """The condition that ends a TrainJob."""

    type: Literal["Complete", "Failed"]
    reason: str
    message: str


COMPLETE = Outcome("Complete", "AllJobsCompleted", "jobset completed successfully")
DEADLINE = Outcome("Failed", "DeadlineExceeded", "TrainJob exceeded its active deadline")
_FAILED = "jobset failed due to one or more job failures"
_NO_RESTART_LEFT = "jobset failed due to reaching max number of restarts"


def outcome(children: Children) -> Outcome | None:
    """The end that what exists has come to; None while it goes on."""
    for name, job in children.initializers.items():
        if has(job, "Failed"):
            told = [each for each in job.status.get("conditions") or [] if each.get("type") == "Failed"]
            why = told[0].get("message") or told[0].get("reason") or "it says no more"
            return Outcome("Failed", "FailedJobs", f"{_FAILED}: initializer {name}: {why}")
    return _of_job(children.job, children.pods) if children.job else None


def _of_job(job: Job, pods: Iterable[Pod]) -> Outcome | None:
    state = job.status.state
    if state.phase == "Completed":
        return COMPLETE
    if state.phase not in {"Failed", "Terminated"}:
        return None
    why = _failures(pods) or state.message
    if state.reason == MAX_RETRY:
        return Outcome("Failed", "ReachedMaxRestarts", f"{_NO_RESTART_LEFT} ({state.message}): {why}")
    return Outcome("Failed", "FailedJobs", f"{_FAILED}: {why}")


def _failures(pods: Iterable[Pod]) -> str:
    """The first pod that has failed, how, and how many more there are."""
    failed = sorted((pod for pod in pods if pod.status.phase == "Failed"), key=lambda pod: pod.metadata.name)
    if not failed:
        return ""
    more = f" (and {len(failed) - 1} more)" if len(failed) > 1 else ""
    return f"pod {failed[0].metadata.name} failed{_how(failed[0])}{more}"


def _how(pod: Pod) -> str:
    for status in (*pod.status.init_container_statuses, *pod.status.container_statuses):
        ended = status.state.terminated
        if ended and ended.exit_code:
            return f": container {status.name} ended with exit code {ended.exit_code}"
    return f": {pod.status.reason}" if pod.status.reason else ""
