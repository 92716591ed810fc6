"""The tasks of a Volcano Job: how many pods they have, and how many of these must be there.

A task's minimum is defined here and nowhere else: admission writes it into the Job, the PodGroup asks for it, tasks
that depend on others wait for theirs, and the end of the Job is judged by it.
"""

from muster.api.volcano.batch import JobSpec, TaskSpec


def minimum(task: TaskSpec) -> int:
    """Pods of the task that must be there: as it says, else its whole minimum of partitions, else all."""
    if task.min_available is not None:
        return task.min_available
    return partition_minimum(task) or task.replicas


def partition_minimum(task: TaskSpec) -> int:
    """Pods in the partitions that must start together; 0 where partitions say nothing of a minimum."""
    partitions = task.partition_policy
    return max(0, partitions.min_partitions * partitions.partition_size) if partitions else 0


def total_minimum(spec: JobSpec) -> int:
    """The minimums of all tasks; also the Job's own `minAvailable` where nobody says another."""
    return sum(minimum(task) for task in spec.tasks)


def total_replicas(spec: JobSpec) -> int:
    """Pods of all tasks."""
    return sum(task.replicas for task in spec.tasks)


def partition_of(task: TaskSpec, index: int) -> str:
    """The number of the partition that a pod is in, as its label has it; empty without partitions."""
    size = task.partition_policy.partition_size if task.partition_policy else 0
    return str(index // size) if size > 0 else ""
