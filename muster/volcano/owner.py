"""How objects say that they belong to a Volcano Job."""

from typing import NamedTuple

from muster.api import names
from muster.api.kubernetes.meta import ObjectMeta, OwnerReference
from muster.api.volcano.batch import JOBS, Job, is_job
from muster.volcano.hosts import pod_name


class JobRef(NamedTuple):
    """The Job that controls an object: one of the object's own namespace, whatever other Job has the UID."""

    key: str
    uid: str

    @property
    def entry(self) -> str:
        """The same as one text, under which objects are found in a store."""
        return f"{self.key}/{self.uid}"


def reference(job: Job) -> JobRef:
    """How objects of this Job refer to it."""
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
    """The Volcano Job that a pod is one of; None for a pod that only says so.

    An owner reference is a claim that whoever creates an object can make. So the pod must be called as the Job calls
    the pod of the task and index that it carries; of such a name there is one in a namespace.
    """
    owner = meta.controller
    if owner is None:
        return None
    task, index = meta.annotations.get(names.TASK_SPEC, ""), meta.annotations.get(names.TASK_INDEX, "")
    return job_of(meta) if meta.name == pod_name(owner.name, task, index) else None
