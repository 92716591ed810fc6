"""Tells the members of a gang from the pods of another life of its owner.

A workload that is deleted and created again under its name has, for a while, pods of both lives, and the PodGroup of
one of them. Where the garbage collector takes the PodGroup later than the first pods, the new pods would be planned as
replacements in a gang that is about to go; and pods that outlive their PodGroup would count for the next one.
"""

from extender.planner.state.pods import PodRecord
from muster.api.kubernetes.meta import OwnerReference
from muster.api.volcano.batch import is_job
from muster.api.volcano.scheduling import PodGroup
from muster.workloads.table import row_of


def named_for_one_life(group: PodGroup) -> bool:
    """Return True if all pods that name the PodGroup are of its owner: none, or one that its name tells."""
    owner = group.metadata.controller
    return owner is None or is_job(owner) or group.metadata.name.endswith(owner.uid)


def of_owner(group: PodGroup, pods: list[PodRecord]) -> list[PodRecord]:
    """Return the pods without those that certainly belong to another owner of the name of the PodGroup's owner."""
    owner, kind = group.metadata.controller, row_of(group.metadata.controller)
    if owner is None:
        return pods
    label = kind.world.uid_label if kind and kind.world else ""
    return [pod for pod in pods if _uid_of(pod, owner, label) in {"", owner.uid}]


def _uid_of(pod: PodRecord, owner: OwnerReference, label: str) -> str:
    """Return the UID that the pod knows the owner of its gang by; empty if it does not say."""
    if pod.controller == f"{owner.kind}/{owner.name}":
        return pod.controller_uid
    return pod.labels.get(label, "") if label else ""
