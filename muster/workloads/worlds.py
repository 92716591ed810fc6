"""The gang of a framework is its world: which pods start together, and how many they are."""

from muster.api import names
from muster.api.kubernetes.core import Pod
from muster.api.kubernetes.meta import Object, ObjectMeta
from muster.api.muster.gang import group_name_for_owner
from muster.workloads.adapter import number
from muster.workloads.choose import adapter_for
from muster.workloads.kind import AskedPod, WorkloadKind
from muster.workloads.table import CONTROLLERS, KINDS

_WORLDS = [(kind, kind.world) for kind in KINDS if kind.world]


def group_name(meta: ObjectMeta) -> str:
    """The name of the PodGroup of a pod that names none itself: all pods of its world, or of its owner, share it."""
    for _, world in _worlds_of(meta):
        return world
    return group_name_for_owner(meta.controller.uid if meta.controller else meta.uid)


def world_of(meta: ObjectMeta) -> WorkloadKind | None:
    """The kind of workload whose world the pod is in; None where the world is all pods of one controller, or nobody's.

    The workload's name stands in the kind's `ranks.name_label`.
    """
    return next((kind for kind, _ in _worlds_of(meta)), None)


def world_size(pod: Pod, owner: Object | None) -> int | None:
    """How many ranks the world of a pod has, as its environment says too; None where it asks for no framework.

    `owner` is the pod's controller. None also where pods of its kind have no ranks, or it could not be read.
    """
    ref = pod.metadata.controller
    source = CONTROLLERS.get((ref.api_version, ref.kind)) if ref else None
    if source is None or names.FRAMEWORK not in pod.metadata.labels or not isinstance(owner, source.type):
        return None
    return adapter_for(owner, AskedPod(pod.metadata, pod.spec)).size() or None


def needed(size: int, elastic: str | None) -> int:
    """How many of so many ranks must start together: of an elastic world (`minNodes:maxNodes`) its minimum."""
    least = number((elastic or "").partition(":")[0].strip())
    return min(least, size) if least else size


def _worlds_of(meta: ObjectMeta) -> list[tuple[WorkloadKind, str]]:
    if names.FRAMEWORK not in meta.labels or meta.controller is None:
        return []
    return [(kind, name) for kind, world in _WORLDS if (name := world.group(meta))]
