"""Names: a pod's name is its host name, so `<job>-<task>-<index>` must be a DNS label up to the last index."""

import re
from collections.abc import Iterator

from muster.api.batch import Job
from muster.api.fields import FieldError
from muster.volcano.hosts import pod_name

MAX_LABEL = 63
_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_MAX_SUBDOMAIN = 253


def is_subdomain(name: str) -> bool:
    """Whether most kinds of objects can have this name."""
    return len(name) <= _MAX_SUBDOMAIN and _SUBDOMAIN.fullmatch(name) is not None


def check_names(job: Job) -> Iterator[FieldError]:
    """The Job's name, then the name of the last pod of each task."""
    name = job.metadata.name
    if not name:
        return
    if len(name) > MAX_LABEL or not _LABEL.fullmatch(name):
        message = (
            f"create job with name {name} validate failed: "
            f"must be a DNS label, as the names of its pods begin with it: at most {MAX_LABEL} characters "
            f"(it has {len(name)}) of a-z, 0-9 and '-', beginning and ending with a letter or digit"
        )
        yield FieldError("metadata.name", message, name)
        return
    for index, task in enumerate(job.spec.tasks):
        pod = pod_name(name, task.name, max(0, task.replicas - 1))
        if len(pod) > MAX_LABEL:
            over = len(pod) - MAX_LABEL
            message = (
                f"create pod with name {pod} validate failed: it would have {len(pod)} characters, and "
                f"{MAX_LABEL} are allowed; "
                f"shorten the name of the job or of the task by {over}"
            )
            yield FieldError(f"spec.tasks[{index}].name", message, task.name)
