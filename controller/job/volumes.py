"""The volumes of a Job: mounted in every pod; a claim without a name is created for the Job and dies with it. Pure.

The name of such a claim is made from the Job's UID and the mount path: it is the same whenever it is asked for, and
need not be written back into the Job. Whether a claim exists is the scheduler's question: a pod without it waits.
"""

import hashlib
from typing import Any

from controller.job.pods import Manifest
from controller.plugins.base import add_volume
from muster.api.batch import Job, VolumeSpec

_DIGEST_CHARS = 12
_LONGEST_PREFIX_CHARS = 50


def claims(job: Job) -> list[Manifest]:
    """The claims to create."""
    return [
        {"metadata": {"name": claim_name(job, volume)}, "spec": volume.volume_claim}
        for volume in job.spec.volumes
        if volume.volume_claim is not None and not volume.volume_claim_name
    ]


def claim_names(job: Job) -> list[str]:
    """The claims behind the Job's volumes, each once."""
    return list(dict.fromkeys(claim_name(job, volume) for volume in job.spec.volumes))


def mount(job: Job, manifest: Manifest) -> None:
    """Adds the volumes to a pod, each claim once, and mounts them in its containers; changed in place.

    A container that mounts something of its own at the same place keeps that.
    """
    for claim, path in {claim_name(job, volume): volume.mount_path for volume in reversed(job.spec.volumes)}.items():
        name = f"{job.metadata.name[:_LONGEST_PREFIX_CHARS]}-{_digest(claim)}"
        source: dict[str, Any] = {"name": name, "persistentVolumeClaim": {"claimName": claim}}
        add_volume(manifest, source, path=path, init=False)


def claim_name(job: Job, volume: VolumeSpec) -> str:
    """The name of the claim behind a volume."""
    return volume.volume_claim_name or f"{job.metadata.name}-pvc-{_digest(job.metadata.uid + volume.mount_path)}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGEST_CHARS]
