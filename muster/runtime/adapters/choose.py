"""Which adapter speaks for a pod: it follows from the pod's controller and from labels of the higher owners."""

from collections.abc import Mapping
from typing import Any

from muster.api.apps import STATEFUL_SETS, StatefulSet
from muster.api.base import Resource
from muster.api.batch import JOBS, Job
from muster.api.core import INDEXED_JOBS, IndexedJob, PodSpec
from muster.api.meta import Object, ObjectMeta
from muster.api.names import TASK_SPEC
from muster.runtime.adapters.bare import BarePodAdapter
from muster.runtime.adapters.base import Adapter, OwnerError
from muster.runtime.adapters.job import job_adapter
from muster.runtime.adapters.stateful import LWS_NAME, LeaderWorkerSetAdapter, StatefulSetAdapter
from muster.runtime.adapters.volcano import VolcanoJobAdapter

_SOURCES: Mapping[tuple[str, str], Resource[Any]] = {
    (resource.api_version, resource.kind): resource for resource in (INDEXED_JOBS, STATEFUL_SETS, JOBS)
}
_REFUSED = {
    "ReplicaSet": "pods of a ReplicaSet (or Deployment) have no index, so none of them has a rank",
    "DaemonSet": "pods of a DaemonSet have no index, so none of them has a rank",
    "ReplicationController": "pods of a ReplicationController have no index, so none of them has a rank",
}
_KINDS = "a batch/v1 Job with completionMode Indexed, a JobSet, a StatefulSet, a LeaderWorkerSet or a Volcano Job"


def source_of(meta: ObjectMeta) -> Resource[Any] | None:
    """The kind of the owner that must be read before `adapter_for`; None for a pod without an owner.

    Raises OwnerError where pods of the owner's kind have no ranks.
    """
    owner = meta.controller
    if owner is None:
        return None
    resource = _SOURCES.get((owner.api_version, owner.kind))
    if resource:
        return resource
    reason = _REFUSED.get(owner.kind, f"Muster does not know how pods of a {owner.kind} find their rank")
    raise OwnerError(f"{reason}; use {_KINDS}. This pod belongs to {owner.kind} {owner.name}", owner.kind)


def adapter_for(meta: ObjectMeta, spec: PodSpec, pod: Mapping[str, Any], owner: Object | None) -> Adapter:
    """The adapter for a pod; `owner` is what `source_of` asked for, `pod` the document itself."""
    if isinstance(owner, IndexedJob):
        return job_adapter(owner)
    if isinstance(owner, StatefulSet):
        if LWS_NAME in meta.labels:
            return LeaderWorkerSetAdapter(owner, meta, spec.subdomain)
        return StatefulSetAdapter(owner)
    if isinstance(owner, Job):
        return VolcanoJobAdapter(owner, meta.annotations.get(TASK_SPEC, ""))
    return BarePodAdapter(meta, spec, pod)
