"""The gang of pods that are not a Volcano Job's: its PodGroup, its world, and the pods that start together.

The gang of a framework is its world: all ranks start together.
"""

from muster.api import names
from muster.api.kubernetes.core import Pod
from muster.api.kubernetes.meta import Object, ObjectMeta
from muster.api.limits import PODS, whole_number
from muster.api.muster.gang import group_name_for_owner
from muster.workloads.kind import AskedPod, WorkloadKind
from muster.workloads.table import CONTROLLERS, KINDS, adapter_for, gang_rules

_WORLDS = [(kind, kind.world) for kind in KINDS if kind.world]


def group_name(meta: ObjectMeta) -> str:
    """The name of the PodGroup of a pod that names none itself: all pods of its world, or of its owner, share it."""
    for _, world in _worlds_of(meta):
        return world
    return group_name_for_owner(meta.controller.uid if meta.controller else meta.uid)


def world_of(meta: ObjectMeta) -> WorkloadKind | None:
    """The kind of workload whose world the pod is in; None if there is none, or it is all pods of one controller.

    The label `ranks.name_label` of the kind has the workload's name.
    """
    return next((kind for kind, _ in _worlds_of(meta)), None)


def world_size(pod: Pod, owner: Object | None) -> int | None:
    """The number of ranks in the world of a pod, as in its environment; None for a pod without a framework.

    `owner` is the pod's controller. None also if pods of its kind have no ranks, or it could not be read.
    """
    ref = pod.metadata.controller
    source = CONTROLLERS.get((ref.api_version, ref.kind)) if ref else None
    if source is None or names.FRAMEWORK not in pod.metadata.labels or not isinstance(owner, source.type):
        return None
    return adapter_for(owner, AskedPod(pod.metadata, pod.spec)).size() or None


def needed(size: int, elastic: str | None) -> int:
    """The ranks out of `size` that must start together: of an elastic world (`minNodes:maxNodes`) its minimum."""
    least = whole_number((elastic or "").partition(":")[0].strip())
    return min(least, size) if least else size


def min_member(pod: Pod, owner: Object | None) -> int:
    """The pods that must start together: as annotated, else the world of a framework, else 1.

    Never more than exist at a time: the owner may have been scaled down since, or have its JobSet's annotation. `owner`
    is the pod's controller, if it can be read.
    """
    rules = gang_rules(pod.metadata.controller)
    at_once = rules.at_once(owner) if owner and rules and rules.at_once else None
    most = world_size(pod, owner) or at_once
    for meta in (owner.metadata, pod.metadata) if owner else (pod.metadata,):
        for key in (names.MIN_MEMBER, names.VOLCANO_GROUP_MIN_MEMBER):
            least = whole_number(meta.annotations.get(key), PODS.value)
            if least:
                return min(least, most or least)
    if not (most and owner and shaped(pod, owner)):
        return 1
    elastic = pod.metadata.annotations.get(names.ELASTIC) or owner.metadata.annotations.get(names.ELASTIC)
    return needed(most, elastic)


def shaped(pod: Pod, owner: Object) -> bool:
    """True if the webhook shapes these pods for a framework."""
    return names.FRAMEWORK in owner.metadata.labels or names.FRAMEWORK in pod.metadata.labels


def _worlds_of(meta: ObjectMeta) -> list[tuple[WorkloadKind, str]]:
    if names.FRAMEWORK not in meta.labels or meta.controller is None:
        return []
    return [(kind, name) for kind, world in _WORLDS if (name := world.group(meta))]
