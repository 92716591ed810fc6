"""Opting in to Muster: the pod, its workload or its namespace names a queue, in this order of precedence.

1. the pod itself, which has the labels of its template;
2. its workload: labels of a Job, Deployment, … are copied to the template when the workload is created, unless the
   template itself is explicit;
3. its namespace, except for pods that are placed otherwise: pods that name another scheduler, have a node, or belong to
  a gang or a DaemonSet.

An object is *explicit* if it has the label `muster.dev/queue`, which opts in, or `muster.dev/managed: "false"`, which
opts out and takes precedence. In a template, `muster.dev/managed` with a value other than "false" overrides the
workload's label.

Volcano's namespace annotation is supported, too. The annotation names the queue of those Volcano Jobs and PodGroups
that name no queue or the default queue. Muster manages Volcano Jobs and PodGroups in any case, so the annotation is a
default, not an opt-in.

The label `muster.dev/queue-locked: "true"` of a namespace enforces its queue for all its objects. In pods, workloads
and TrainJobs, a different queue is replaced; Volcano Jobs and PodGroups with a different queue are refused.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from muster.api import names
from muster.api.kubernetes.meta import ObjectMeta
from muster.api.muster.gang import named_gang
from muster.api.muster.pools import is_musters
from muster.api.unchecked import value_at
from muster.api.volcano.batch import Job
from muster.volcano.access import locked_to
from muster.workloads.table import TIED_OWNERS
from webhook.lookup import Namespaces
from webhook.patch import Patch, Why

ANNOTATED = Why("the queue of its namespace", f"annotation {names.VOLCANO_QUEUE}, or label {names.QUEUE_LOCKED}")


@dataclass(frozen=True, slots=True)
class OptIn:
    """The queue of a pod, and the path of the label that names it; `inherited` if the label is the namespace's."""

    queue: str
    path: str
    inherited: bool


def is_explicit(labels: Mapping[str, str]) -> bool:
    """Return True if these labels opt in or out, so that the labels of the owner and of the namespace do not count."""
    return names.QUEUE in labels or names.opted_out(labels)


def from_labels(labels: Mapping[str, str]) -> OptIn | None:
    """Return the queue that these labels of a pod or template name; None if they do not opt in."""
    if names.opted_out(labels) or names.QUEUE not in labels:
        return None
    return OptIn(labels[names.QUEUE], f"metadata.labels[{names.QUEUE}]", inherited=False)


def from_namespace(namespace: str, labels: Mapping[str, str]) -> OptIn | None:
    """Return the queue of pods and Jobs that do not opt in or out themselves, in a namespace with these labels.

    Return None if the labels name no queue.
    """
    if names.opted_out(labels) or not labels.get(names.QUEUE):
        return None
    return OptIn(labels[names.QUEUE], f"namespace {namespace}: metadata.labels[{names.QUEUE}]", inherited=True)


def from_lock(namespace: str, own: OptIn | None, namespaces: Namespaces) -> OptIn | None:
    """Return the locked queue of the namespace if the object names a different queue; otherwise None."""
    labels = namespaces.metadata(namespace).labels if own else {}
    locked = locked_to(labels)
    return from_namespace(namespace, labels) if own and locked not in {"", own.queue} else None


def set_back(path: str, queue: str, locked: str) -> str:
    """Return the warning that the namespace's queue has replaced another queue."""
    return (
        f"{path}: Muster replaced {queue!r} by {locked!r}, because the namespace is locked to its queue "
        f"({names.QUEUE_LOCKED})"
    )


def may_inherit(spec: Mapping[str, Any], meta: ObjectMeta) -> bool:
    """Return True if a pod that is not explicit can get its namespace's queue.

    A pod can get the queue if it has no node, names no gang and no other scheduler, and does not belong to a DaemonSet.
    """
    scheduler = spec.get("schedulerName") or names.CLUSTER_SCHEDULER
    return (
        not spec.get("nodeName")
        and (scheduler == names.CLUSTER_SCHEDULER or is_musters(scheduler))
        and named_gang(meta) is None
        and not any(owner.kind in TIED_OWNERS for owner in meta.owner_references)
    )


def annotated_queue(namespace: str, namespaces: Namespaces) -> str:
    """Return the queue that the namespace is locked to, or else the queue in Volcano's annotation.

    Return "" if the namespace names no queue; raise APIError if the namespace cannot be read.
    """
    metadata = namespaces.metadata(namespace)
    return locked_to(metadata.labels) or metadata.annotations.get(names.VOLCANO_QUEUE, "")


def in_default_queue(queue: str | None) -> bool:
    """Return True if the queue is the default queue, or no queue is given.

    The schema sets the queue `default` if no queue is given, so both cases look the same.
    """
    return (queue or names.DEFAULT_QUEUE) == names.DEFAULT_QUEUE


def set_queue(job: Job, old: Mapping[str, Any] | None, namespace: str, namespaces: Namespaces, patch: Patch) -> str:
    """Write the namespace's queue into a new Job in the default queue, and the `old` Job's queue into an update.

    Return the resulting queue of the Job.
    """
    if not in_default_queue(job.spec.queue):
        return job.spec.queue
    queue = annotated_queue(namespace, namespaces) if old is None else value_at(old, ("spec", "queue"))
    if not in_default_queue(queue):
        patch.set("spec", "queue", value=queue, why=ANNOTATED)
    return queue or names.DEFAULT_QUEUE
