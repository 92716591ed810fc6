"""The workload of a gang, as people call it: `TrainJob fit`, and never the PodGroup's own name."""

from typing import NamedTuple

from muster.api.kubernetes.meta import ObjectMeta, OwnerReference
from muster.api.muster.gang import workload_above
from muster.api.muster.native import reference
from muster.api.volcano.scheduling import PodGroup
from muster.workloads.table import row_of


class Workload(NamedTuple):
    """What a gang belongs to; a PodGroup that nobody owns is its own."""

    api_version: str
    kind: str
    name: str
    uid: str = ""

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"

    @property
    def reference(self) -> str:
        """As `kubectl get` takes it: job.batch/longrun."""
        group = self.api_version.rpartition("/")[0]
        return f"{self.kind.lower()}{f'.{group}' if group else ''}/{self.name}"


def workload_of(group: PodGroup) -> Workload:
    """Return the workload of a gang: its owner, or what has made that, if that is what its user has written."""
    owner = group.metadata.controller or next(iter(group.metadata.owner_references), None)
    if owner is None:
        own = reference(group)
        return Workload(own.api_version, own.kind, own.name, own.uid)
    return _called_by(workload_above(group.metadata)) or _of(owner)


def job_workload(job: ObjectMeta, api_version: str) -> Workload:
    """Return the workload of a Volcano Job: its TrainJob, or itself."""
    return _called_by(job.controller) or Workload(api_version, "Job", job.name, job.uid)


def _called_by(above: OwnerReference | None) -> Workload | None:
    """Return what has made the owner of a gang, if the gang is called by its name."""
    kind = row_of(above)
    return _of(above) if above and kind and kind.called else None


def _of(owner: OwnerReference) -> Workload:
    return Workload(owner.api_version, owner.kind, owner.name, owner.uid)
