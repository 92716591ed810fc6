"""Plugins of a Volcano Job: known ones, with the tasks that they need."""

from collections.abc import Iterator

from muster.api.batch import Job
from muster.api.fields import FieldError
from muster.runtime.job_plugins import FLAGS, flags, third_party, warnings


def check_plugins(job: Job) -> Iterator[FieldError]:
    """Unknown names, and plugins whose leading task does not exist."""
    plugins = job.spec.plugins
    known = (*FLAGS, *third_party())
    for name in sorted(plugins):
        if name not in known:
            message = f"unable to find job plugin: {name}; the plugins are {', '.join(known)}"
            yield FieldError(f"spec.plugins[{name}]", message, name, "NotSupported")
    yield from _check_leader(job, "mpi", "master")
    yield from _check_leader(job, "ray", "head")


def _check_leader(job: Job, plugin: str, role: str) -> Iterator[FieldError]:
    if plugin not in job.spec.plugins:
        return
    tasks = [task.name for task in job.spec.tasks]
    if flags(plugin, job.spec.plugins[plugin])[role] not in tasks:
        message = (
            f"The specified {plugin} {role} task was not found: it must be one of the tasks "
            f"{', '.join(tasks)}, for example --{role}={tasks[0]}"
        )
        yield FieldError(f"spec.plugins[{plugin}]", message, job.spec.plugins[plugin])


def warn_plugins(job: Job) -> list[str]:
    """Flags that are ignored: manifests in the field carry some, so they are no reason to refuse a Job."""
    return warnings(job.spec.plugins)
