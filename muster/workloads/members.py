"""The gang of a pod, and its slot in the gang: by its labels and annotations, and by the row of its controller's kind.

Pure functions that the webhook, the controller and the extender evaluate alike; `muster.api.muster.gang` has the rest
of what gangs are on the wire.
"""

from muster.api import names
from muster.api.kubernetes.core import Pod
from muster.api.kubernetes.meta import ObjectMeta
from muster.api.kubernetes.scheduling import PodSchedulingGroup
from muster.api.limits import RANK, whole_number
from muster.api.muster.gang import DEFAULT_POD_SET, Slot, named_gang, native_gang
from muster.api.muster.pools import is_musters
from muster.workloads.table import INDEXES, row_of


def gang_of(pod: Pod) -> str | None:
    """Return the name of the pod's gang, which is in its namespace; None if it has none.

    It is the PodGroup that the pod names in labels or annotations, else its native one, unless another scheduler has
    the pod.
    """
    named = named_gang(pod.metadata)
    if named is not None or not is_musters(pod.spec.scheduler_name):
        return named
    return native_gang_of(pod.metadata, pod.spec.scheduling_group)


def native_gang_of(meta: ObjectMeta, group: PodSchedulingGroup | None) -> str | None:
    """Return the name of the gang that a pod's `spec.schedulingGroup` stands for; None if it stands for none.

    Some controllers give each of their workloads a group (`WorkloadKind.grouped`), also those that ask for none: these
    stay gangs as Muster reads them. Of a workload that asks, admission has marked the template.
    """
    if group is None or not group.pod_group_name:
        return None
    kind = row_of(meta.controller)
    if kind and kind.grouped and names.NATIVE_GROUP not in meta.annotations:
        return None
    return native_gang(group.pod_group_name)


def slot_of(meta: ObjectMeta) -> Slot | None:
    """Return the slot of a pod: by Volcano task and index, Muster's note, or the index that its controller gave it.

    None without any of these, or with a rank beyond the limit; the planner then gives it the first free rank.
    """
    annotations, labels = meta.annotations, meta.labels
    if names.TASK_SPEC in annotations:
        return _slot(annotations[names.TASK_SPEC], annotations.get(names.TASK_INDEX))
    for index in (
        annotations.get(names.MEMBER_INDEX),
        *(place.get(key) for key in INDEXES for place in (annotations, labels)),
    ):
        slot = _slot(DEFAULT_POD_SET, index)
        if slot:
            return slot
    return None


def _slot(pod_set: str, index: str | None) -> Slot | None:
    rank = whole_number(index, RANK.value)
    return None if rank is None else Slot(pod_set, rank)


def makes_all_alike(group: ObjectMeta) -> bool:
    """Return True if all pods of a PodGroup are made from one template: its owner is a controller of such pods."""
    rows = (row_of(each) for each in group.owner_references)
    return any(kind is not None and kind.one_template for kind in rows)
