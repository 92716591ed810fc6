"""Defaults of a Volcano Job's fields.

Admission writes them into the Job; they also apply if admission was bypassed.
"""

from muster.api import names
from muster.api.volcano.batch import JobSpec, TaskSpec

DEFAULT_MAX_RETRY = 3
"""For the Job and for each task, although they count different things: restarts of the Job, and of containers."""


def queue_of(spec: JobSpec) -> str:
    """The queue whose share the Job uses."""
    return spec.queue or names.DEFAULT_QUEUE


def scheduler_of(spec: JobSpec) -> str:
    """The scheduler of pods whose template names none."""
    return spec.scheduler_name or names.VOLCANO_SCHEDULER


def max_retry(spec: JobSpec) -> int:
    """The number of restarts that ends the Job: 3 means one run and two more."""
    return spec.max_retry or DEFAULT_MAX_RETRY


def task_max_retry(task: TaskSpec) -> int:
    """The number of container restarts that fails a task; -1 if none does."""
    return task.max_retry or DEFAULT_MAX_RETRY


def task_name(index: int, task: TaskSpec) -> str:
    """The name of a task, by default from `index`, its place in the list."""
    return task.name or f"default{index}"
