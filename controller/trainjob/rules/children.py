"""The objects of a TrainJob that exist, as one pass sees them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from muster.api.kubeflow.jobset import JobSet
from muster.api.kubeflow.trainer import TrainJob
from muster.api.kubernetes.core import IndexedJob, Pod
from muster.api.volcano.batch import FINISHED, Job
from muster.runtime.plan import Plan, PodSetPlan

End = Literal["Complete", "Failed"]
ENDS: Mapping[str, End] = {"Completed": "Complete", "Failed": "Failed"}
"""Conditions of a JobSet that has ended → those of its TrainJob."""
OVER = frozenset({"Complete", "Failed"})
"""Conditions that a TrainJob, or a batch/v1 Job, never loses."""


@dataclass(frozen=True, slots=True)
class Children:
    """The Job whose pods train, its pods, and the batch/v1 Jobs of initializers by name; or a JobSet for all of them.

    All of them belong to this TrainJob.
    """

    job: Job | None = None
    pods: Sequence[Pod] = ()
    initializers: Mapping[str, IndexedJob] = field(default_factory=dict)
    job_set: JobSet | None = None

    @property
    def notes(self) -> Mapping[str, str]:
        """The annotations of the object that makes the pods that train."""
        maker = self.job or self.job_set
        return maker.metadata.annotations if maker else {}


def finished(train_job: TrainJob) -> bool:
    """True if the TrainJob has ended, which is for good."""
    return any(each.type in OVER and each.status == "True" for each in train_job.status.conditions)


def initializer_name(train_job: TrainJob, pod_set: str) -> str:
    """The name of the batch/v1 Job of a pod set that comes before the gang."""
    return f"{train_job.metadata.name}-{pod_set}-0"


def before(plan: Plan) -> list[PodSetPlan]:
    """The pod sets that come and go before the gang."""
    gang = plan.gang.pod_sets if plan.gang else ()
    return [each for each in plan.pod_sets if each.count and each.name not in gang]


def has(job: IndexedJob, *types: str) -> bool:
    """True if a condition of a batch/v1 Job of one of these types holds."""
    conditions = job.status.get("conditions") or []
    return any(each.get("type") in types and each.get("status") == "True" for each in conditions)


def goes_on(job: Job | IndexedJob | JobSet) -> bool:
    """True if a Job or JobSet has neither ended nor begun to stop."""
    if isinstance(job, IndexedJob):
        return not has(job, *OVER)
    if isinstance(job, JobSet):
        return not any(each.type in ENDS and each.status == "True" for each in job.status.conditions)
    return job.status.state.phase not in FINISHED | {"Completing", "Terminating"}
