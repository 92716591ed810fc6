"""Slots: the pods that a Volcano Job wants, by task and index; their names, and their host names with plugin `svc`."""

from dataclasses import dataclass

from muster.api.kubernetes.endpoints import Endpoints, Run
from muster.api.volcano.batch import Job, TaskSpec


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


def pod_name(job: str, task: str, index: int | str) -> str:
    """The name of a task's pod; the index is a number, or its text as pods have it."""
    return f"{_prefix(job, task)}{index}"


def _prefix(job: str, task: str) -> str:
    return f"{job}-{task}-"


def pod_hosts(job: str, task: str, count: int, subdomain: str) -> Run:
    """The host names of `count` pods of a task in rank order, if each is its pod's own name."""
    return Run(_prefix(job, task), f".{subdomain}", count)


def subdomain(job: Job, task: TaskSpec) -> str:
    """The template's subdomain, else the Service of `svc`, which has the Job's name."""
    return str((task.template.get("spec") or {}).get("subdomain") or job.metadata.name)


def task_hosts(job: Job, task: TaskSpec) -> Endpoints:
    """The host names of a task's pods in rank order; a template with a host name has only one."""
    below = subdomain(job, task)
    hostname = (task.template.get("spec") or {}).get("hostname")
    if hostname:
        return (f"{hostname}.{below}",) if task.replicas else ()
    return pod_hosts(job.metadata.name, task.name, task.replicas, below)
