"""Volumes of a Volcano Job: a claim that exists, or one to make."""

from collections.abc import Iterator, Sequence

from muster.api.batch import VolumeSpec
from muster.api.fields import FieldError
from webhook.validate.volcano_job.names import is_subdomain


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
