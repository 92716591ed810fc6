"""The names of a Volcano Job's pods, and their host names with plugin `svc`."""

from muster.api.kubernetes.endpoints import Endpoints, Run
from muster.api.volcano.batch import Job, TaskSpec


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
