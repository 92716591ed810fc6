"""The fields of a Volcano Job beside its tasks and plugins: its name and its volumes.

A pod's name is its host name, so `<job>-<task>-<index>` must be a DNS label up to the last index. A volume is a claim
that exists, or one to make, never both.
"""

from collections.abc import Iterator, Sequence

from muster.api.fields import FieldError
from muster.api.volcano.batch import Job, VolumeSpec
from muster.volcano.hosts import pod_name
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
        pod = pod_name(name, task.name, max(0, task.replicas - 1))
        if len(pod) > MAX_LABEL:
            over = len(pod) - MAX_LABEL
            message = (
                f"create pod with name {pod} validate failed: it would have {len(pod)} characters, and "
                f"{MAX_LABEL} are allowed; "
                f"shorten the name of the job or of the task by {over}"
            )
            yield FieldError(f"spec.tasks[{index}].name", message, task.name)


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
