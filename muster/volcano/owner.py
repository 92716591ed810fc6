"""How objects say that they belong to a Volcano Job."""

from typing import NamedTuple

from muster.api.batch import JOBS, Job, is_job
from muster.api.meta import ObjectMeta, OwnerReference


class JobRef(NamedTuple):
    """The Job that controls an object."""

    key: str
    uid: str


def owner_of(job: Job) -> OwnerReference:
    """The owner reference of everything that belongs to the Job."""
    return OwnerReference(
        api_version=JOBS.api_version,
        kind=JOBS.kind,
        name=job.metadata.name,
        uid=job.metadata.uid,
        controller=True,
        block_owner_deletion=True,
    )


def job_of(meta: ObjectMeta) -> JobRef | None:
    """The Volcano Job that controls the object, or None."""
    owner = meta.controller
    if owner is None or not is_job(owner):
        return None
    return JobRef(f"{meta.namespace}/{owner.name}", owner.uid)
