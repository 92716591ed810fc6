"""The claims behind the volumes of a Volcano Job: who makes them and who plans the pods must name them alike.

The name of a claim that the Job does not name is made from the Job's UID and the mount path: it is the same whenever it
is asked for, and need not be written back into the Job.
"""

import hashlib

from muster.api.batch import Job, VolumeSpec

_DIGEST_CHARS = 12


def claim_name(job: Job, volume: VolumeSpec) -> str:
    """The name of the claim behind a volume."""
    return volume.volume_claim_name or f"{job.metadata.name}-pvc-{digest(job.metadata.uid + volume.mount_path)}"


def claim_names(job: Job) -> list[str]:
    """The claims behind the Job's volumes, each once."""
    return list(dict.fromkeys(claim_name(job, volume) for volume in job.spec.volumes))


def digest(text: str) -> str:
    """A short name for a text."""
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGEST_CHARS]
