"""Plugins of a Volcano Job: known ones, with the tasks that they need."""

from collections.abc import Iterator, Sequence

from muster.api.batch import Job
from muster.runtime.fields import FieldError

PLUGINS = ("env", "svc", "ssh", "pytorch", "tensorflow", "mpi", "ray", "hcclrank")


def check_plugins(job: Job) -> Iterator[FieldError]:
    """Unknown names, and an mpi plugin whose master task does not exist."""
    plugins = job.spec.plugins
    for name in sorted(plugins):
        if name not in PLUGINS:
            message = f"unable to find job plugin: {name}; the plugins are {', '.join(PLUGINS)}"
            yield FieldError(f"spec.plugins[{name}]", message, name, "NotSupported")
    if "mpi" in plugins:
        master = argument(plugins["mpi"], "master", "master")
        tasks = [task.name for task in job.spec.tasks]
        if master not in tasks:
            message = (
                "The specified mpi master task was not found: it must be one of the tasks "
                f"{', '.join(tasks)}, for example --master={tasks[0]}"
            )
            yield FieldError("spec.plugins[mpi]", message, plugins["mpi"])


def argument(arguments: Sequence[str], flag: str, default: str) -> str:
    """The value of a flag in the style of Go's flag package (`--k=v`, `-k v`); the last one counts."""
    value = default
    for index, text in enumerate(arguments):
        name, equals, given = text.lstrip("-").partition("=")
        if text.startswith("-") and name == flag:
            value = given if equals else next(iter(arguments[index + 1 : index + 2]), default)
    return value
