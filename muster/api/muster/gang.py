"""Gangs on the wire: their names, the gates of their pods, and the pin of a pod to a node.

The webhook, the controller and the extender use the same pure functions.
"""

from collections.abc import Container
from copy import deepcopy
from hashlib import sha256
from typing import Any, NamedTuple

from muster.api import names
from muster.api.kubernetes.core import Pod, PodSpec
from muster.api.kubernetes.meta import ObjectMeta, OwnerReference
from muster.api.limits import EPOCH, whole_number

DEFAULT_POD_SET = "pods"
"""Name of the only pod set of a workload that has no tasks (a Job, a StatefulSet, …)."""

_NATIVE = "native."
_MOST_NAME_CHARS = 253
_NOTED_PARTS = 3


class Slot(NamedTuple):
    """The position of one pod in a gang: a pod set, and a rank in this set, counted from 0."""

    pod_set: str
    rank: int


def named_gang(meta: ObjectMeta) -> str | None:
    """Return the name of the PodGroup in the metadata of a pod or template; None if the metadata name no PodGroup."""
    return (
        meta.annotations.get(names.GROUP_NAME)
        or meta.labels.get(names.GANG)
        or meta.labels.get(names.COSCHEDULING_GROUP)
        or None
    )


def native_gang(name: str) -> str:
    """Return the name of the gang of the native PodGroup with this name; the gang's Placement has the same name.

    The result never equals the name of a gang of a Volcano PodGroup.
    """
    gang = f"{_NATIVE}{name}"
    if len(gang) <= _MOST_NAME_CHARS:
        return gang
    digest = sha256(name.encode()).hexdigest()[:10]
    return f"{gang[: _MOST_NAME_CHARS - len(digest) - 1].rstrip('-.')}-{digest}"


def group_name_for_owner(uid: str) -> str:
    """Return the name of the PodGroup for an owner's pods that do not name a gang themselves (as in Volcano)."""
    return f"podgroup-{uid}"


def workload_note(owner: ObjectMeta, makers: Container[str]) -> dict[str, str]:
    """Return the PodGroup's annotation with the workload (such as a Deployment) that created the gang's owner.

    Events about the gang are also recorded for this workload. The result is empty if an object of a kind in `makers`
    (CronJob, JobFlow) created the owner. The controllers of these kinds watch the workloads that they create, and do
    not need the Events.
    """
    above = owner.controller
    if above is None or above.kind in makers:
        return {}
    return {names.WORKLOAD: f"{above.api_version}/{above.kind}/{above.name}/{above.uid}"}


def workload_above(group: ObjectMeta) -> OwnerReference | None:
    """Return the workload in a PodGroup's annotation, which created the group's owner; None without the annotation."""
    parts = group.annotations.get(names.WORKLOAD, "").rsplit("/", 3)
    if len(parts) <= _NOTED_PARTS or not all(parts):
        return None
    return OwnerReference(api_version=parts[0], kind=parts[1], name=parts[2], uid=parts[3])


def later_tasks(meta: ObjectMeta) -> frozenset[str]:
    """Return the tasks that a PodGroup does not count yet, because the tasks depend on others (`dependsOn`).

    A task in this list has no planned nodes; its pods are placed when they arrive. A task is removed from the list when
    its pods have started.
    """
    return frozenset(filter(None, meta.annotations.get(names.LATER_TASKS, "").split(",")))


def gated(pod: Pod) -> bool:
    """Return True if the pod still has Muster's scheduling gate, because its gang has no placement."""
    gates = pod.spec.scheduling_gates
    return bool(gates) and any(gate.name in names.GATES for gate in gates)


def other_gates(spec: PodSpec) -> tuple[str, ...]:
    """Return the scheduling gates of a pod that belong to other controllers."""
    gates = spec.scheduling_gates
    return tuple(gate.name for gate in gates if gate.name not in names.GATES) if gates else ()


def epoch_of(meta: ObjectMeta) -> int | None:
    """Return the epoch of the placement that pinned this pod; None if Muster did not pin it."""
    return whole_number(meta.annotations.get(names.EPOCH), EPOCH.value)


def pinned_affinity(affinity: dict[str, Any] | None, node: str) -> dict[str, Any]:
    """Return a copy of the pod's affinity (as JSON) that also requires the node with this name.

    The terms of required node affinity are alternatives, so the requirement is added to each term. As a result,
    kube-scheduler evaluates only the pinned node (measured on 1.36).
    """
    pin = {"key": "metadata.name", "operator": "In", "values": [node]}
    result = deepcopy(affinity) if affinity else {}
    node_affinity = result.setdefault("nodeAffinity", {})
    required = node_affinity.setdefault("requiredDuringSchedulingIgnoredDuringExecution", {})
    # A term without any expression matches no node, and must not match a node because of the pin.
    terms = [term for term in required.get("nodeSelectorTerms", []) if term]
    if required.get("nodeSelectorTerms") and not terms:
        return result
    required["nodeSelectorTerms"] = [
        {**term, "matchFields": [*term.get("matchFields", []), pin]} for term in terms or [{}]
    ]
    return result
