"""Who asks for Muster, and where several do, who wins: the nearest to the pod.

1. the pod itself, which has the labels of its template;
2. its workload: labels of a Job, Deployment, … are copied to the template when the workload is created, unless the
   template says something itself;
3. its namespace, for pods that nobody else has placed: not those that name another scheduler, have a node, belong to a
   gang, or to a DaemonSet.

To say something is either `muster.dev/queue`, or `muster.dev/managed: "false"` (leave it alone); where the same object
says both, it is left alone. `muster.dev/managed` with another value in a template takes the place of its workload's.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from muster.api import names
from muster.api.gang import gang_of
from muster.api.meta import ObjectMeta
from muster.workloads.table import KINDS

TIED_OWNERS = (*(kind.resource.kind for kind in KINDS if kind.one_node_each), "Node")
"""Kinds whose pods belong to one node each: nobody has to find a place for them."""
_LEAVE_ALONE = "false"


@dataclass(frozen=True, slots=True)
class Asked:
    """The queue that a pod is to be in, and where that is said."""

    queue: str
    path: str
    inherited: bool


def opted_out(labels: Mapping[str, str]) -> bool:
    """Whether the object wants to be left alone."""
    return labels.get(names.MANAGED) == _LEAVE_ALONE


def decided(labels: Mapping[str, str]) -> bool:
    """Whether the object says something, so that nobody further away is asked."""
    return names.QUEUE in labels or opted_out(labels)


def by_itself(labels: Mapping[str, str]) -> Asked | None:
    """What a pod or template says; None if nothing, or to be left alone."""
    if opted_out(labels) or names.QUEUE not in labels:
        return None
    return Asked(labels[names.QUEUE], f"metadata.labels[{names.QUEUE}]", inherited=False)


def by_namespace(namespace: str, labels: Mapping[str, str]) -> Asked | None:
    """What a namespace says of the pods and Jobs in it that say nothing."""
    if opted_out(labels) or not labels.get(names.QUEUE):
        return None
    return Asked(labels[names.QUEUE], f"namespace {namespace}: metadata.labels[{names.QUEUE}]", inherited=True)


def takes_defaults(spec: Mapping[str, Any], meta: ObjectMeta) -> bool:
    """Whether a pod that says nothing may get the queue of its namespace."""
    scheduler = spec.get("schedulerName") or names.CLUSTER_SCHEDULER
    return (
        not spec.get("nodeName")
        and (scheduler == names.CLUSTER_SCHEDULER or scheduler in names.SCHEDULERS)
        and gang_of(meta) is None
        and not any(owner.kind in TIED_OWNERS for owner in meta.owner_references)
    )
