"""The queue that a pod is charged to, and the amounts, for planner, recorder and controller. Pure.

A pod is charged if kube-scheduler asks Muster about it. Other pods may name any queue and gang, because no check has
seen them, and are not charged.
"""

from muster.api import names
from muster.api.kubernetes.core import Pod, PodSpec
from muster.api.kubernetes.meta import ObjectMeta
from muster.api.muster.pools import is_musters
from muster.resources.vector import Vector, within
from muster.workloads.table import gang_of


def charged_queue(pod: Pod) -> str | None:
    """Return the queue that a pod names; None if it is not charged. The queue of its PodGroup takes precedence."""
    return named_queue(pod) or names.DEFAULT_QUEUE if placed_by_muster(pod.spec) else None


def named_queue(pod: Pod) -> str:
    """Return the queue that a pod names; empty if it names none.

    A member of a gang gets the queue of its PodGroup in an annotation, with its node: that counts first. So its charge
    stays the same when the PodGroup is deleted.
    """
    return (pod.metadata.annotations.get(names.VOLCANO_QUEUE) if gang_of(pod) else "") or own_queue(pod.metadata)


def charged_amounts(amounts: Vector, offered: Vector | None) -> Vector:
    """Return the charge for a pod's amounts: of each resource at most what its node has offered, if that is known.

    kube-scheduler binds no pod beyond that, but others may, and a pod may be resized. Not to be changed.
    """
    return amounts if offered is None else within(amounts, offered)


def own_queue(meta: ObjectMeta) -> str:
    """Return the queue that a pod without a gang names; empty if it names none. Volcano's label counts first."""
    return (
        meta.labels.get(names.QUEUE_NAME)
        or meta.labels.get(names.QUEUE)
        or meta.annotations.get(names.VOLCANO_QUEUE, "")
    )


def placed_by_muster(spec: PodSpec) -> bool:
    """Return True if kube-scheduler asks Muster about the pod: by its scheduler's name, or by the pod's markers."""
    return is_musters(spec.scheduler_name) or marked(spec)


def marked(spec: PodSpec) -> bool:
    """Return True if the pod carries both markers, by which a shared kube-scheduler asks Muster about it."""
    missing = names.MARKERS
    for each in (*spec.containers, *spec.init_containers):
        missing = missing.difference(each.resources.limits, each.resources.requests)
    return not missing
