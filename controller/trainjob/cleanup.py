"""Deletion of the objects of an ended TrainJob: Jobs that still run, and its Job after `ttlSecondsAfterFinished`."""

from collections.abc import Iterable

from controller.kit import Kit
from controller.trainjob.children import ChildSteps
from controller.trainjob.rules import outcome
from controller.trainjob.rules.children import continues
from controller.worker import Retry
from muster.api.kubeflow.jobset import JobSet
from muster.api.kubeflow.trainer import TrainJob
from muster.api.kubernetes.core import IndexedJob
from muster.api.volcano.batch import Job
from muster.kube.errors import Refused

DELETION_FAILED = "TrainJobResourcesDeletionFailed"
"""Reason of the Event about a TrainJob that has ended, but whose objects cannot be deleted."""


class Cleanup:
    """Deletes the objects of ended TrainJobs; a refused deletion is reported in an Event and retried later."""

    def __init__(self, kit: Kit, steps: ChildSteps) -> None:
        self._recorder, self._wall_s, self._steps = kit.recorder, kit.wall_s, steps

    def delete_left(self, train_job: TrainJob) -> float | None:
        """Delete the objects that must not outlive the TrainJob's end.

        Return the seconds until the Job must be deleted, or None if no later deletion is due.
        """
        children = self._steps.left(train_job)
        maker = children.job or children.job_set
        jobs: list[Job | IndexedJob | JobSet] = [*children.initializers.values(), *([maker] if maker else [])]
        why = "activeDeadlineSeconds are over" if outcome.overdue(train_job) else ""
        left = [job for job in jobs if why or continues(job)]
        if left:
            self._delete(train_job, left, why or "the TrainJob has ended")
            return None
        expires_s = outcome.expires_s(train_job, children)
        if expires_s is None or maker is None:
            return None
        left_s = expires_s - self._wall_s()
        if left_s > 0:
            return left_s
        self._delete(train_job, [maker], "ttlSecondsAfterFinished are over")
        return None

    def _delete(self, train_job: TrainJob, jobs: Iterable[Job | IndexedJob | JobSet], why: str) -> None:
        refusals = []
        for job in jobs:
            try:
                self._steps.delete(job, why)
            except Refused as error:
                kind = "JobSet" if isinstance(job, JobSet) else "Job"
                refusals.append(f"{kind} {job.metadata.name} cannot be deleted: {error.message}")
        if refusals:
            message = "; ".join(refusals)
            self._recorder.event(train_job, "Warning", DELETION_FAILED, message)
            raise Retry(message)
