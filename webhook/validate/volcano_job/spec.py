"""The fields of a Volcano Job beside its tasks: its name, its plugins and its volumes.

A pod's name is its host name, so `<job>-<task>-<index>` must be a DNS label up to the last index. A plugin must be
known, and the task where it begins (MPI's master, Ray's head) must exist. A volume is a claim that exists, or one to
make, never both.
"""

from collections.abc import Iterator, Sequence

from muster.api.batch import Job, VolumeSpec
from muster.runtime.fields import FieldError
from muster.runtime.job_plugins import FLAGS, flags, third_party, warnings
from webhook.objects.names import MAX_LABEL, is_label, is_subdomain


def check_names(job: Job) -> Iterator[FieldError]:
    """The Job's name, then the name of the last pod of each task."""
    name = job.metadata.name
    if not name:
        return
    if not is_label(name):
        message = (
            f"create job with name {name} validate failed: "
            f"must be a DNS label, as the names of its pods begin with it: at most {MAX_LABEL} characters "
            f"(it has {len(name)}) of a-z, 0-9 and '-', beginning and ending with a letter or digit"
        )
        yield FieldError("metadata.name", message, name)
        return
    for index, task in enumerate(job.spec.tasks):
        pod = f"{name}-{task.name}-{max(0, task.replicas - 1)}"
        if len(pod) > MAX_LABEL:
            over = len(pod) - MAX_LABEL
            message = (
                f"create pod with name {pod} validate failed: it would have {len(pod)} characters, and "
                f"{MAX_LABEL} are allowed; "
                f"shorten the name of the job or of the task by {over}"
            )
            yield FieldError(f"spec.tasks[{index}].name", message, task.name)


def check_plugins(job: Job) -> Iterator[FieldError]:
    """Each plugin is known, and the task where it begins is one of the Job's."""
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


def check_volumes(volumes: Sequence[VolumeSpec]) -> Iterator[FieldError]:
    """Each volume has a place of its own, and one source."""
    first: dict[str, int] = {}
    for index, volume in enumerate(volumes):
        path = f"spec.volumes[{index}]"
        if not volume.mount_path:
            yield FieldError(f"{path}.mountPath", "mountPath is required", reason="Required")
        elif first.setdefault(volume.mount_path, index) != index:
            message = f"duplicated mountPath: spec.volumes[{first[volume.mount_path]}] is mounted there already"
            yield FieldError(f"{path}.mountPath", message, volume.mount_path, "Duplicate")
        if not volume.volume_claim_name and volume.volume_claim is None:
            message = "either VolumeClaim or VolumeClaimName must be specified"
            yield FieldError(path, message, reason="Required")
        elif volume.volume_claim_name and volume.volume_claim is not None:
            message = (
                "conflict: If you want to use an existing PVC, just specify VolumeClaimName; "
                "if you want a new one, leave the name out"
            )
            yield FieldError(f"{path}.volumeClaimName", message, volume.volume_claim_name)
        elif volume.volume_claim_name and not is_subdomain(volume.volume_claim_name):
            message = "invalid VolumeClaimName: must be the name of a PersistentVolumeClaim (a-z, 0-9, '-' and '.')"
            yield FieldError(f"{path}.volumeClaimName", message, volume.volume_claim_name)
