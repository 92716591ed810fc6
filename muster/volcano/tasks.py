"""Tasks of a Volcano Job, the slots and names of their pods, and references of other objects to the Job.

Only this module computes a task's minimum. The PodGroup, dependent tasks and the end of the Job all depend on a task's
minimum. Defaults of a task's fields are not stored; Muster applies them when it reads a Job. Plugin `svc` assigns the
host names.
"""

from dataclasses import dataclass
from typing import NamedTuple

from muster.api import names
from muster.api.kubernetes.endpoints import Endpoints, NumberedNames
from muster.api.kubernetes.meta import ObjectMeta, OwnerReference
from muster.api.volcano.batch import JOBS, Job, JobSpec, TaskSpec, is_job

DEFAULT_MAX_RETRY = 3
"""Default of `maxRetry` for a Job, which limits its restarts, and for a task, which limits restarts of containers."""


def minimum(task: TaskSpec) -> int:
    """Return a task's minimum number of pods: its own field, otherwise its partitions' minimum, otherwise all pods."""
    if task.min_available is not None:
        return task.min_available
    return partition_minimum(task) or task.replicas


def partition_minimum(task: TaskSpec) -> int:
    """Return the number of pods in the partitions that must start together; 0 without a minimum of partitions."""
    partitions = task.partition_policy
    return max(0, partitions.min_partitions * partitions.partition_size) if partitions else 0


def total_minimum(spec: JobSpec) -> int:
    """Return the sum of the minimums of all tasks, which is the default of the Job's `minAvailable`."""
    return sum(minimum(task) for task in spec.tasks)


def job_minimum(spec: JobSpec) -> int:
    """Return the number of pods that start together: `minAvailable` or, if that is 0, the sum over the tasks.

    Volcano's admission also replaces 0 by the sum, because clients in Go leave out a 0.
    """
    return spec.min_available or total_minimum(spec)


def total_replicas(spec: JobSpec) -> int:
    """Return the number of pods of all tasks."""
    return sum(task.replicas for task in spec.tasks)


def partition_of(task: TaskSpec, index: int) -> str:
    """Return the number of a pod's partition as text for the pod's label; "" for a task without partitions."""
    size = task.partition_policy.partition_size if task.partition_policy else 0
    return str(index // size) if size > 0 else ""


def queue_of(spec: JobSpec) -> str:
    """Return the queue to which the Job belongs."""
    return spec.queue or names.DEFAULT_QUEUE


def scheduler_of(spec: JobSpec) -> str:
    """Return the scheduler of pods whose template names none."""
    return spec.scheduler_name or names.VOLCANO_SCHEDULER


EVICTIONS = 1_000
"""Value of maxRetry for a Job that does not restart after failures, but restarts after any number of evictions."""


def max_retry(spec: JobSpec) -> int:
    """Return the number of failed attempts that end the Job; 3 allows the first run and two restarts."""
    return spec.max_retry or DEFAULT_MAX_RETRY


def restarts(retry_count: int, max_retry: int | None) -> tuple[int, int]:
    """Return a Job's number of restarts and its maximum; `maxRetry` also counts the failure that ends the Job."""
    most = max(0, (max_retry or DEFAULT_MAX_RETRY) - 1)
    return min(retry_count, most), most


def task_max_retry(task: TaskSpec) -> int:
    """Return the number of container restarts after which a task fails; -1 for no limit."""
    return task.max_retry or DEFAULT_MAX_RETRY


@dataclass(frozen=True, slots=True)
class PodSlot:
    """One pod that the Job wants: its task, its index in the task, and its name."""

    task: TaskSpec
    index: int
    name: str


def slot(job: Job, task: TaskSpec, index: int) -> PodSlot:
    """Return the task's pod with this index."""
    return PodSlot(task, index, pod_name(job.metadata.name, task.name, index))


def slots(job: Job) -> list[PodSlot]:
    """Return every pod that the Job wants, task by task, in rank order."""
    return [slot(job, task, index) for task in job.spec.tasks for index in range(task.replicas)]


def pod_name(job: str, task: str, index: int | str) -> str:
    """Return the name of a task's pod; the index is a number, or the number as text."""
    return f"{_prefix(job, task)}{index}"


def _prefix(job: str, task: str) -> str:
    return f"{job}-{task}-"


def pod_hosts(job: str, task: str, count: int, subdomain: str) -> NumberedNames:
    """Return the host names of `count` pods of a task, in rank order, if the name of each pod is its host name."""
    return NumberedNames(_prefix(job, task), f".{subdomain}", count)


def subdomain(job: Job, task: TaskSpec) -> str:
    """Return the template's subdomain, or the Job's name, which is the name of plugin svc's Service."""
    return str((task.template.get("spec") or {}).get("subdomain") or job.metadata.name)


def task_hosts(job: Job, task: TaskSpec) -> Endpoints:
    """Return the host names of a task's pods in rank order; if the template sets a host name, there is only one."""
    below = subdomain(job, task)
    hostname = (task.template.get("spec") or {}).get("hostname")
    if hostname:
        return (f"{hostname}.{below}",) if task.replicas else ()
    return pod_hosts(job.metadata.name, task.name, task.replicas, below)


class JobRef(NamedTuple):
    """Key and UID of the Job that controls an object; the key is needed because a UID does not prove the namespace."""

    key: str
    uid: str

    @property
    def entry(self) -> str:
        """The reference as text, which is the key in indexes of stores."""
        return f"{self.key}/{self.uid}"


def reference(job: Job) -> JobRef:
    """Return the reference that an object of this Job would have."""
    return JobRef(job.metadata.key, job.metadata.uid)


def owner_of(job: Job) -> OwnerReference:
    """Return the owner reference for objects that belong to the Job."""
    return OwnerReference.to(JOBS, job.metadata, controller=True, block_owner_deletion=True)


def job_of(meta: ObjectMeta) -> JobRef | None:
    """Return the Volcano Job that controls the object, or None."""
    owner = meta.controller
    if owner is None or not is_job(owner):
        return None
    return JobRef(f"{meta.namespace}/{owner.name}", owner.uid)


def job_of_pod(meta: ObjectMeta) -> JobRef | None:
    """Return the Volcano Job to which a pod belongs; None for a pod that only claims to belong to a Job.

    Any client that creates an object can set an owner reference. Therefore, the pod must also have the name that the
    Job gives to the pod of this task and index. This name is unique in the namespace.
    """
    owner = meta.controller
    if owner is None:
        return None
    task, index = meta.annotations.get(names.TASK_SPEC, ""), meta.annotations.get(names.TASK_INDEX, "")
    return job_of(meta) if meta.name == pod_name(owner.name, task, index) else None
