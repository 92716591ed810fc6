"""The names of a Volcano Job's pods, and the host names that they have with plugin `svc`: one formula for everybody."""

from muster.api.kubernetes.endpoints import Endpoints, Run
from muster.api.volcano.batch import Job, TaskSpec


def pod_name(job: str, task: str, index: int | str) -> str:
    """The name of a task's pod; the index is a number, or the text of one as pods carry it."""
    return f"{_prefix(job, task)}{index}"


def _prefix(job: str, task: str) -> str:
    return f"{job}-{task}-"


def pod_hosts(job: str, task: str, count: int, subdomain: str) -> Run:
    """The host names of so many pods of a task in rank order, where every pod is called by its own name."""
    return Run(_prefix(job, task), f".{subdomain}", count)


def subdomain(job: Job, task: TaskSpec) -> str:
    """What the template says, else the Service of `svc`, which is named as the Job."""
    return str((task.template.get("spec") or {}).get("subdomain") or job.metadata.name)


def task_hosts(job: Job, task: TaskSpec) -> Endpoints:
    """The host names of a task's pods in rank order; a template that sets a host name has but one."""
    below = subdomain(job, task)
    hostname = (task.template.get("spec") or {}).get("hostname")
    if hostname:
        return (f"{hostname}.{below}",) if task.replicas else ()
    return pod_hosts(job.metadata.name, task.name, task.replicas, below)
