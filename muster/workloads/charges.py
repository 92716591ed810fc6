"""The queue to which a pod is charged, and the charged resources, for planner, recorder and controller. Pure.

A pod is charged if kube-scheduler calls Muster for it. Other pods are not charged: the queue and gang that they name
have not been checked.
"""

from muster.api import names
from muster.api.kubernetes.core import Pod, PodSpec
from muster.api.kubernetes.meta import ObjectMeta
from muster.api.muster.pools import is_musters
from muster.resources.vector import Vector, within
from muster.workloads.table import gang_of


def charged_queue(pod: Pod) -> str | None:
    """Return the queue that a charged pod names; None if the pod is not charged.

    The queue of the pod's PodGroup takes precedence.
    """
    return named_queue(pod) or names.DEFAULT_QUEUE if placed_by_muster(pod.spec) else None


def named_queue(pod: Pod) -> str:
    """Return the queue that a pod names; empty if it names none.

    When a member of a gang gets its node, the queue of its PodGroup is written to an annotation, which takes
    precedence. The pod is therefore charged to the same queue after the PodGroup has been deleted.
    """
    return (pod.metadata.annotations.get(names.VOLCANO_QUEUE) if gang_of(pod) else "") or own_queue(pod.metadata)


def charged_amounts(amounts: Vector, offered: Vector | None) -> Vector:
    """Return the charge for a pod: at most as much of each resource as its node has offered, if known.

    kube-scheduler does not bind pods that need more, but other clients may do so, and a pod may be resized. Callers
    must not change the result.
    """
    return amounts if offered is None else within(amounts, offered)


def own_queue(meta: ObjectMeta) -> str:
    """Return the queue that a pod without a gang names; empty if it names none. Volcano's label takes precedence."""
    return (
        meta.labels.get(names.QUEUE_NAME)
        or meta.labels.get(names.QUEUE)
        or meta.annotations.get(names.VOLCANO_QUEUE, "")
    )


def placed_by_muster(spec: PodSpec) -> bool:
    """Return True if kube-scheduler calls Muster for the pod because of its scheduler's name or its markers."""
    return is_musters(spec.scheduler_name) or marked(spec)


def marked(spec: PodSpec) -> bool:
    """Return True if the pod has both marker resources, for which a shared kube-scheduler calls Muster."""
    missing = names.MARKERS
    for each in (*spec.containers, *spec.init_containers):
        missing = missing.difference(each.resources.limits, each.resources.requests)
    return not missing
