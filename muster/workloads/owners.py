"""The name of a gang's workload, such as `TrainJob fit`; users may not know the name of the PodGroup."""

from muster.api.kubernetes.meta import ObjectMeta, OwnerReference
from muster.api.muster.gang import workload_above
from muster.api.muster.native import reference
from muster.api.volcano.batch import Job
from muster.api.volcano.scheduling import PodGroup
from muster.volcano.tasks import owner_of
from muster.workloads.table import row_of


def workload_of(group: PodGroup) -> OwnerReference:
    """Return the workload of a gang: its owner, or the owner's creator if the user has written the creator.

    A PodGroup without an owner is itself the workload.
    """
    owner = group.metadata.controller or next(iter(group.metadata.owner_references), None)
    return _named_after(workload_above(group.metadata)) or owner if owner else reference(group)


def owner_names(gang: ObjectMeta) -> set[str]:
    """Return the names by which users know a PodGroup: the names of its owners and of their creator."""
    above = _named_after(workload_above(gang))
    return {owner.name for owner in (*gang.owner_references, *([above] if above else []))}


def job_workload(job: Job) -> OwnerReference:
    """Return the workload of a Volcano Job: the Job's TrainJob, or the Job itself."""
    return _named_after(job.metadata.controller) or owner_of(job)


def as_kubectl_takes(workload: OwnerReference) -> str:
    """Return a workload in the form for `kubectl get`, such as job.batch/longrun."""
    group = workload.api_version.rpartition("/")[0]
    return f"{workload.kind.lower()}{f'.{group}' if group else ''}/{workload.name}"


def _named_after(above: OwnerReference | None) -> OwnerReference | None:
    """Return the creator of a gang's owner, if the gang is shown under the creator's name."""
    kind = row_of(above)
    return above if kind and kind.names_gangs else None
