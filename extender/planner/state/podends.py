"""The end of a pod: its grace period, its own failure, and the controller that counts the failure."""

from muster.api.kubernetes.core import DEFAULT_GRACE_S, Pod
from muster.api.kubernetes.meta import ObjectMeta

_DISRUPTED = frozenset({"Evicted", "Preempting", "NodeShutdown", "Terminated", "NodeLost"})
"""Reasons in the status of pods that the kubelet or the node controller has ended although the pods did not fail."""


def grace_s(pod: Pod) -> float:
    """Return the pod's grace period in seconds: from the deletion request, otherwise from the spec."""
    meta, of_spec = pod.metadata, pod.spec.termination_grace_period_seconds
    asked = meta.deletion_grace_period_seconds if meta.deletion_timestamp else None
    return float(next((each for each in (asked, of_spec) if each is not None), DEFAULT_GRACE_S))


def failed_by_itself(pod: Pod) -> bool:
    """Return True for a pod that has failed for a reason other than a disruption."""
    status = pod.status
    if status.phase != "Failed" or pod.metadata.deletion_timestamp is not None or status.reason in _DISRUPTED:
        return False
    target = status.condition("DisruptionTarget")
    return target is None or target.status != "True"


def of_batch_job(meta: ObjectMeta) -> bool:
    """Return True for a pod of a Job of Kubernetes (batch/v1)."""
    owner = meta.controller
    return owner is not None and owner.kind == "Job" and owner.api_version.startswith("batch/")
