"""The volumes of a Job: mounted in every pod; a claim without a name is created for the Job and dies with it. Pure.

Whether a claim exists is the scheduler's question: a pod without it waits.
"""

from typing import Any

from controller.job.rules.pods import Manifest
from controller.plugins.base import add_volume
from muster.api.batch import Job
from muster.runtime.job_volumes import claim_name, digest

_MAX_PREFIX_CHARS = 50


def claims(job: Job) -> list[Manifest]:
    """The claims to create."""
    return [
        {"metadata": {"name": claim_name(job, volume)}, "spec": volume.volume_claim}
        for volume in job.spec.volumes
        if volume.volume_claim is not None and not volume.volume_claim_name
    ]


def mount(job: Job, manifest: Manifest) -> None:
    """Adds the volumes to a pod, each claim once, and mounts them in its containers; changed in place.

    A container that mounts something of its own at the same place keeps that.
    """
    for claim, path in {claim_name(job, volume): volume.mount_path for volume in reversed(job.spec.volumes)}.items():
        name = f"{job.metadata.name[:_MAX_PREFIX_CHARS]}-{digest(claim)}"
        source: dict[str, Any] = {"name": name, "persistentVolumeClaim": {"claimName": claim}}
        add_volume(manifest, source, path=path, init=False)
