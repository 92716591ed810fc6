"""The references of objects to the Volcano Job that they belong to."""

from typing import NamedTuple

from muster.api import names
from muster.api.kubernetes.meta import ObjectMeta, OwnerReference
from muster.api.volcano.batch import JOBS, Job, is_job
from muster.volcano.tasks import pod_name


class JobRef(NamedTuple):
    """The Job that controls an object, in the object's own namespace: a UID alone would not say so."""

    key: str
    uid: str

    @property
    def entry(self) -> str:
        """The reference as one text, the key of an index of stores."""
        return f"{self.key}/{self.uid}"


def reference(job: Job) -> JobRef:
    """The reference of objects of this Job."""
    return JobRef(job.metadata.key, job.metadata.uid)


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


def job_of_pod(meta: ObjectMeta) -> JobRef | None:
    """The Volcano Job that a pod belongs to; None for a pod that only claims to.

    Any client that creates an object can set an owner reference. So the pod must have the name that the Job gives to
    the pod of its task and index; a namespace has only one pod of that name.
    """
    owner = meta.controller
    if owner is None:
        return None
    task, index = meta.annotations.get(names.TASK_SPEC, ""), meta.annotations.get(names.TASK_INDEX, "")
    return job_of(meta) if meta.name == pod_name(owner.name, task, index) else None
