"""The workload of a gang, as people call it: `TrainJob fit`, and never the PodGroup's own name."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from muster.api.kubernetes.core import Pod
from muster.api.kubernetes.meta import ObjectMeta, OwnerReference
from muster.api.volcano.scheduling import PodGroup

_HASH = "pod-template-hash"
"""The label of pods of a Deployment, whose ReplicaSets are named after it."""


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


def workload_of(group: PodGroup, parents: Mapping[str, ObjectMeta], pods: Sequence[Pod] = ()) -> Workload:
    """Return the workload of a gang with these pods; `parents` are the Jobs that may have owners of their own, by UID.

    A Deployment is known by its pods' labels: its ReplicaSets are nothing that users have written.
    """
    owner = group.metadata.controller or next(iter(group.metadata.owner_references), None)
    if owner is None:
        return Workload("scheduling.volcano.sh/v1beta1", "PodGroup", group.metadata.name, group.metadata.uid)
    above = parents[owner.uid].controller if owner.uid in parents else None
    return _deployment(owner, pods) or _of(above if above and above.kind == "TrainJob" else owner)


def job_workload(job: ObjectMeta, api_version: str) -> Workload:
    """Return the workload of a Volcano Job: its TrainJob, or itself."""
    above = job.controller
    return _of(above) if above and above.kind == "TrainJob" else Workload(api_version, "Job", job.name, job.uid)


def _of(owner: OwnerReference) -> Workload:
    return Workload(owner.api_version, owner.kind, owner.name, owner.uid)


def _deployment(owner: OwnerReference, pods: Sequence[Pod]) -> Workload | None:
    if owner.kind != "ReplicaSet":
        return None
    for pod in pods:
        ending = f"-{pod.metadata.labels.get(_HASH, '')}"
        if len(ending) > 1 and owner.name.endswith(ending):
            return Workload("apps/v1", "Deployment", owner.name.removesuffix(ending))
    return None
