"""The tasks of a Volcano Job: their number of pods, and their minimum; and the defaults of a Job's fields.

A task's minimum is defined here and nowhere else: admission writes it into the Job, the PodGroup asks for it, tasks
that depend on others wait for theirs, and the Job's end depends on it. Defaults are written into the Job by admission,
and apply if it was bypassed, too.
"""

from muster.api import names
from muster.api.volcano.batch import JobSpec, TaskSpec

DEFAULT_MAX_RETRY = 3
"""For the Job and for each task, although they count different things: restarts of the Job, and of containers."""


def minimum(task: TaskSpec) -> int:
    """The minimum of pods of a task: its own field, else that of its partitions, else all."""
    if task.min_available is not None:
        return task.min_available
    return partition_minimum(task) or task.replicas


def partition_minimum(task: TaskSpec) -> int:
    """Pods in the partitions that must start together; 0 without a minimum of partitions."""
    partitions = task.partition_policy
    return max(0, partitions.min_partitions * partitions.partition_size) if partitions else 0


def total_minimum(spec: JobSpec) -> int:
    """The sum of the minimums of all tasks, which is the default of the Job's `minAvailable`."""
    return sum(minimum(task) for task in spec.tasks)


def total_replicas(spec: JobSpec) -> int:
    """Pods of all tasks."""
    return sum(task.replicas for task in spec.tasks)


def partition_of(task: TaskSpec, index: int) -> str:
    """The number of a pod's partition, as its label has it; "" without partitions."""
    size = task.partition_policy.partition_size if task.partition_policy else 0
    return str(index // size) if size > 0 else ""


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
