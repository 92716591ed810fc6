"""The volumes of a Volcano Job: every pod mounts them, and behind each is a claim that exists or is made for the Job.

Controller and planner must use the same names. The name of a claim that the Job does not name is derived from the Job's
UID and the mount path, so it is never written back into the Job. A pod whose claim does not exist waits in the
scheduler.
"""

import hashlib

from muster.api.volcano.batch import Job, VolumeSpec
from muster.volcano.manifests import Manifest, add_volume

_DIGEST_CHARS = 12
_MAX_PREFIX_CHARS = 50


def claim_name(job: Job, volume: VolumeSpec) -> str:
    """The name of the claim behind a volume."""
    return volume.volume_claim_name or f"{job.metadata.name}-pvc-{_digest(job.metadata.uid + volume.mount_path)}"


def claim_names(job: Job) -> list[str]:
    """The claims behind the Job's volumes, each once."""
    return list(dict.fromkeys(claim_name(job, volume) for volume in job.spec.volumes))


def claims(job: Job) -> list[Manifest]:
    """The claims to create; they are deleted with the Job."""
    return [
        {"metadata": {"name": claim_name(job, volume)}, "spec": volume.volume_claim}
        for volume in job.spec.volumes
        if volume.volume_claim is not None and not volume.volume_claim_name
    ]


def mount(job: Job, manifest: Manifest) -> None:
    """Adds the volumes to a pod, each claim once, and mounts them in its containers; changed in place.

    A container with a mount of its own at the same path keeps that.
    """
    for claim, path in {claim_name(job, volume): volume.mount_path for volume in reversed(job.spec.volumes)}.items():
        name = f"{job.metadata.name[:_MAX_PREFIX_CHARS]}-{_digest(claim)}"
        source: Manifest = {"name": name, "persistentVolumeClaim": {"claimName": claim}}
        add_volume(manifest, source, path=path, init=False)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGEST_CHARS]
