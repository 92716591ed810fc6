"""Obstacles of TrainJobs: reasons why nothing can be created for now.

An example is another owner's object with a name that the TrainJob needs.
"""

from controller.live import owner_text
from muster.api.kubeflow.trainer import TRAIN_JOBS, TrainJob
from muster.api.kubernetes.meta import ObjectMeta


class Obstacle(Exception):  # noqa: N818 - no defect: something in the cluster is in the way
    """Error that is reported in the TrainJob's status and in an Event; the pass is retried later.

    A `passing` obstacle, which is expected to disappear soon, is not reported.
    """

    def __init__(self, message: str, *, passing: bool = False) -> None:
        super().__init__(message)
        self.passing = passing


def foreign(what: str, meta: ObjectMeta, train_job: TrainJob) -> Obstacle:
    """Return the obstacle to report if an object of another owner already uses a name that the TrainJob needs."""
    owner = meta.controller
    if owner and owner.kind == TRAIN_JOBS.kind and owner.name == train_job.metadata.name:
        return Obstacle(f"{what} of an earlier TrainJob of this name still exists; it is being deleted", passing=True)
    why = f"{what} exists already and {owner_text(meta)}, so it is not changed"
    return Obstacle(f"{why}; delete it, or delete this TrainJob and give it another name")
