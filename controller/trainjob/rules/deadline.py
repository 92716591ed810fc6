"""How long a TrainJob may go on: `activeDeadlineSeconds` after it was created, or resumed for the last time."""

from controller.trainjob.rules.children import Children
from muster.api import names
from muster.api.kubeflow.trainer import TrainJob
from muster.api.kubernetes.meta import format_time, readable_time


def resumed_at(train_job: TrainJob, children: Children) -> str:
    """Since when it is not suspended any more; "" if it never was.

    The condition says so until the pods run. Then it has to go (Kubeflow's SDK takes any condition for "not running
    yet"), and what it said stands at the Job.
    """
    for each in train_job.status.conditions:
        if each.type == "Suspended" and each.status == "False":
            return each.last_transition_time
    return children.notes.get(names.RESUMED_AT, "")


def left_s(train_job: TrainJob, children: Children, now_s: float) -> float | None:
    """Seconds until it has failed, perhaps less than none; None without a deadline, and while it is suspended."""
    seconds = train_job.spec.active_deadline_seconds
    began_s = readable_time(resumed_at(train_job, children) or train_job.metadata.creation_timestamp)
    if not seconds or train_job.spec.suspend or began_s is None:
        return None
    return began_s + seconds - now_s


def expires_s(train_job: TrainJob, children: Children) -> float | None:
    """When the Job of a TrainJob that has ended is to be deleted, in seconds since the epoch; None if it stays."""
    after = children.notes.get(names.DELETE_AFTER, "")
    ends = [each.last_transition_time for each in train_job.status.conditions if each.type in {"Complete", "Failed"}]
    ended_s = readable_time(ends[0]) if ends else None
    if ended_s is None or not after.isdecimal():
        return None
    return ended_s + int(after)


def overdue(train_job: TrainJob) -> bool:
    """Whether it has failed by its deadline: then its pods go."""
    return any(each.type == "Failed" and each.reason == "DeadlineExceeded" for each in train_job.status.conditions)


def stamp(now_s: float) -> str:
    """A time as conditions have it."""
    return format_time(now_s)
