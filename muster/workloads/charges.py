"""The queue to which a pod's resources are charged, and these resources, for planner, recorder and controller. Pure.

A pod is charged if kube-scheduler calls Muster for this pod. Other pods are not charged, because Muster has not checked
the queue and gang in their labels.
"""

from muster.api import names
from muster.api.kubernetes.core import Pod, PodSpec
from muster.api.kubernetes.meta import ObjectMeta
from muster.api.muster.pools import is_musters
from muster.resources.vector import Vector, within
from muster.workloads.table import gang_of


def charged_queue(pod: Pod) -> str | None:
    """Return the queue to which a pod is charged; None for a pod that is not charged.

    The queue of the pod's PodGroup takes precedence.
    """
    return named_queue(pod) or names.DEFAULT_QUEUE if placed_by_muster(pod.spec) else None


def named_queue(pod: Pod) -> str:
    """Return the queue that a pod names, including its gang's queue; empty if the pod names no queue.

    When a member of a gang gets its node, Muster writes the PodGroup's queue to an annotation of the pod; this
    annotation takes precedence. The pod is therefore charged to the same queue after the PodGroup has been deleted.
    """
    return (pod.metadata.annotations.get(names.VOLCANO_QUEUE) if gang_of(pod) else "") or own_queue(pod.metadata)


def charged_amounts(amounts: Vector, offered: Vector | None) -> Vector:
    """Return the resources to charge for a pod: at most as much of each as its node has offered, if known.

    kube-scheduler does not bind a pod that needs more than its node offers, but other clients may do so, and a pod may
    be resized. Callers must not change the result.
    """
    return amounts if offered is None else within(amounts, offered)


def own_queue(meta: ObjectMeta) -> str:
    """Return the queue in the pod's own labels or annotation; empty if they name no queue.

    Volcano's label takes precedence.
    """
    return (
        meta.labels.get(names.QUEUE_NAME)
        or meta.labels.get(names.QUEUE)
        or meta.annotations.get(names.VOLCANO_QUEUE, "")
    )


def placed_by_muster(spec: PodSpec) -> bool:
    """Return True if kube-scheduler calls Muster for the pod, by its scheduler name or its marker resources."""
    return is_musters(spec.scheduler_name) or marked(spec)


def marked(spec: PodSpec) -> bool:
    """Return True if the pod has both marker resources, for which a shared kube-scheduler calls Muster."""
    missing = names.MARKERS
    for each in (*spec.containers, *spec.init_containers):
        missing = missing.difference(each.resources.limits, each.resources.requests)
    return not missing
