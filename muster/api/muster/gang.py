"""Gangs on the wire: the gang of a pod, its slot in the gang, its gates and its pin to a node.

Pure functions that the webhook, the controller and the extender evaluate alike.
"""

from copy import deepcopy
from hashlib import sha256
from typing import Any, NamedTuple

from muster.api import names
from muster.api.kubernetes.core import Pod, PodSpec
from muster.api.kubernetes.meta import ObjectMeta, OwnerReference
from muster.api.kubernetes.scheduling import PodSchedulingGroup
from muster.api.limits import EPOCH, RANK, whole_number
from muster.api.muster.pools import is_musters

DEFAULT_POD_SET = "pods"
"""Name of the only pod set of a workload that has no tasks (a Job, a StatefulSet, …)."""


_ONE_TEMPLATE = frozenset(
    {("batch/v1", "Job"), ("apps/v1", "StatefulSet"), ("apps/v1", "ReplicaSet"), ("v1", "ReplicationController")}
)
_NATIVE = "native."
_MOST_NAME_CHARS = 253
_MAKERS = frozenset({"CronJob", "JobFlow"})
_NOTED_PARTS = 3


class Slot(NamedTuple):
    """A slot of a gang, taken by one pod: a pod set, and a rank in it, which counts from 0."""

    pod_set: str
    rank: int


def gang_of(pod: Pod) -> str | None:
    """Return the name of the pod's gang, which is in its namespace; None if it has none.

    It is the PodGroup that the pod names in labels or annotations, else its native one, unless another scheduler has
    the pod.
    """
    named = named_gang(pod.metadata)
    if named is not None or not is_musters(pod.spec.scheduler_name):
        return named
    return native_gang_of(pod.metadata, pod.spec.scheduling_group)


def named_gang(meta: ObjectMeta) -> str | None:
    """Return the name of the PodGroup that a pod or template names in its metadata; None if it names none."""
    return (
        meta.annotations.get(names.GROUP_NAME)
        or meta.labels.get(names.GANG)
        or meta.labels.get(names.COSCHEDULING_GROUP)
        or None
    )


def native_gang_of(meta: ObjectMeta, group: PodSchedulingGroup | None) -> str | None:
    """Return the name of the gang that a pod's `spec.schedulingGroup` stands for; None if it stands for none.

    Where the feature gate WorkloadWithJob is on, the Job controller gives every Job a group, also those that ask for
    none: they stay gangs as Muster reads them. Of a Job that asks, admission has marked the template.
    """
    if group is None or not group.pod_group_name:
        return None
    owner = meta.controller
    of_a_job = owner is not None and (owner.api_version, owner.kind) == ("batch/v1", "Job")
    if of_a_job and names.NATIVE_GROUP not in meta.annotations:
        return None
    return native_gang(group.pod_group_name)


def native_gang(name: str) -> str:
    """Return the name of the gang of the native PodGroup of this name, and of its Placement.

    It is another than that of a PodGroup of the same name that is no native one.
    """
    gang = f"{_NATIVE}{name}"
    if len(gang) <= _MOST_NAME_CHARS:
        return gang
    digest = sha256(name.encode()).hexdigest()[:10]
    return f"{gang[: _MOST_NAME_CHARS - len(digest) - 1].rstrip('-.')}-{digest}"


def group_name_for_owner(uid: str) -> str:
    """Return the name of the PodGroup of pods that have an owner but name no group (as in Volcano)."""
    return f"podgroup-{uid}"


def makes_all_alike(group: ObjectMeta) -> bool:
    """Return True if all pods of a PodGroup are made from one template: its owner is a controller of such pods."""
    return any((each.api_version, each.kind) in _ONE_TEMPLATE for each in group.owner_references)


def workload_note(owner: ObjectMeta) -> dict[str, str]:
    """Return the annotation of a PodGroup with the workload that made the gang's owner: a ReplicaSet's Deployment.

    Events about the gang go there, too. What makes Jobs by the clock or in steps is none: it hears of its Jobs itself.
    """
    above = owner.controller
    if above is None or above.kind in _MAKERS:
        return {}
    return {names.WORKLOAD: f"{above.api_version}/{above.kind}/{above.name}/{above.uid}"}


def workload_above(group: ObjectMeta) -> OwnerReference | None:
    """Return the workload that made the owner of a PodGroup, as its annotation says; None without one."""
    parts = group.annotations.get(names.WORKLOAD, "").rsplit("/", 3)
    if len(parts) <= _NOTED_PARTS or not all(parts):
        return None
    return OwnerReference(api_version=parts[0], kind=parts[1], name=parts[2], uid=parts[3])


def later_tasks(meta: ObjectMeta) -> frozenset[str]:
    """Return the tasks that a PodGroup does not count yet, because they wait for others (`dependsOn`).

    No placement is planned for them; their pods are placed as they come. A task leaves the list when it has started.
    """
    return frozenset(filter(None, meta.annotations.get(names.LATER_TASKS, "").split(",")))


def slot_of(meta: ObjectMeta) -> Slot | None:
    """Return the slot of a pod: by Volcano task and index, Indexed Job index, StatefulSet ordinal, or Muster's note.

    None without any of these, or with a rank beyond the limit; the planner then gives it the first free rank.
    """
    annotations, labels = meta.annotations, meta.labels
    if names.TASK_SPEC in annotations:
        return _slot(annotations[names.TASK_SPEC], annotations.get(names.TASK_INDEX))
    for index in (
        annotations.get(names.MEMBER_INDEX),
        annotations.get(names.COMPLETION_INDEX),
        labels.get(names.COMPLETION_INDEX),
        labels.get(names.POD_INDEX),
    ):
        slot = _slot(DEFAULT_POD_SET, index)
        if slot:
            return slot
    return None


def _slot(pod_set: str, index: str | None) -> Slot | None:
    rank = whole_number(index, RANK.value)
    return None if rank is None else Slot(pod_set, rank)


def gated(pod: Pod) -> bool:
    """Return True if the pod still has a gate of Muster's, as its gang has no placement."""
    gates = pod.spec.scheduling_gates
    return bool(gates) and any(gate.name in names.GATES for gate in gates)


def other_gates(spec: PodSpec) -> tuple[str, ...]:
    """Return the scheduling gates that are not Muster's, and that others lift."""
    gates = spec.scheduling_gates
    return tuple(gate.name for gate in gates if gate.name not in names.GATES) if gates else ()


def epoch_of(meta: ObjectMeta) -> int | None:
    """Return the epoch of the placement that pinned this pod; None if Muster did not pin it."""
    return whole_number(meta.annotations.get(names.EPOCH), EPOCH.value)


def pinned_affinity(affinity: dict[str, Any] | None, node: str) -> dict[str, Any]:
    """Return the pod's affinity (as JSON) with a required match of the node's name; the argument is not changed.

    The terms of required node affinity are alternatives, so the pin is added to each of them; kube-scheduler then
    evaluates that one node only (measured on 1.36).
    """
    pin = {"key": "metadata.name", "operator": "In", "values": [node]}
    result = deepcopy(affinity) if affinity else {}
    node_affinity = result.setdefault("nodeAffinity", {})
    required = node_affinity.setdefault("requiredDuringSchedulingIgnoredDuringExecution", {})
    # A term without any expression matches no node, and must still match none with the pin.
    terms = [term for term in required.get("nodeSelectorTerms", []) if term]
    if required.get("nodeSelectorTerms") and not terms:
        return result
    required["nodeSelectorTerms"] = [
        {**term, "matchFields": [*term.get("matchFields", []), pin]} for term in terms or [{}]
    ]
    return result
