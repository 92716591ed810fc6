"""The tasks of a Volcano Job: their number of pods, and their minimum.

A task's minimum is defined here and nowhere else: admission writes it into the Job, the PodGroup asks for it, tasks
that depend on others wait for theirs, and the Job's end depends on it.
"""

from muster.api.volcano.batch import JobSpec, TaskSpec


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
