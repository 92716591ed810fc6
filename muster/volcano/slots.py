"""Slots: the pods that a Volcano Job wants, by task and index."""

from dataclasses import dataclass

from muster.api.volcano.batch import Job, TaskSpec
from muster.volcano.hosts import pod_name


@dataclass(frozen=True, slots=True)
class PodSlot:
    """One pod that the Job wants: its task, its index in the task, and its name."""

    task: TaskSpec
    index: int
    name: str


def slot(job: Job, task: TaskSpec, index: int) -> PodSlot:
    """The task's pod of this index."""
    return PodSlot(task, index, pod_name(job.metadata.name, task.name, index))


def slots(job: Job) -> list[PodSlot]:
    """Every pod that the Job wants, task by task, in rank order."""
    return [slot(job, task, index) for task in job.spec.tasks for index in range(task.replicas)]
