"""Opting in to Muster: the queue of a pod, named by itself, its workload or its namespace; the nearest to the pod wins.

1. the pod itself, which has the labels of its template;
2. its workload: labels of a Job, Deployment, … are copied to the template when the workload is created, unless the
   template is explicit itself;
3. its namespace, for pods that are not placed otherwise: not those that name another scheduler, have a node, or belong
   to a gang or a DaemonSet.

An object is *explicit* if it has the label `muster.dev/queue`, which opts in, or `muster.dev/managed: "false"`, which
opts out and wins. `muster.dev/managed` with another value in a template takes the place of its workload's.

A namespace has a second way, from Volcano: an annotation names the queue of those Volcano Jobs and PodGroups in it that
are in none or in the default one. Muster manages these kinds anyway, so this is a default and no opt-in.

A namespace with the label `muster.dev/queue-locked: "true"` holds all that is in it to the queue that it names. Pods,
workloads and TrainJobs which name another one are set back to it, Jobs and PodGroups are refused.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from muster.api import names
from muster.api.kubernetes.meta import ObjectMeta
from muster.api.muster.gang import named_gang
from muster.api.muster.pools import is_musters
from muster.api.unchecked import find
from muster.api.volcano.batch import Job
from muster.volcano.access import locked_to
from muster.workloads.table import TIED_OWNERS
from webhook.lookup import Namespaces
from webhook.patch import Patch, Why

ANNOTATED = Why("the queue of its namespace", f"annotation {names.VOLCANO_QUEUE}, or label {names.QUEUE_LOCKED}")


@dataclass(frozen=True, slots=True)
class OptIn:
    """The queue of a pod, and the path of the label that names it; `inherited` if that is its namespace's."""

    queue: str
    path: str
    inherited: bool


def opted_out(labels: Mapping[str, str]) -> bool:
    """Return True if the object is to be left alone."""
    return labels.get(names.MANAGED) == "false"


def is_explicit(labels: Mapping[str, str]) -> bool:
    """Return True if the object opts in or out itself, so that its owner and namespace do not count."""
    return names.QUEUE in labels or opted_out(labels)


def from_labels(labels: Mapping[str, str]) -> OptIn | None:
    """Return the queue of a pod or template with these labels; None if it does not opt in itself."""
    if opted_out(labels) or names.QUEUE not in labels:
        return None
    return OptIn(labels[names.QUEUE], f"metadata.labels[{names.QUEUE}]", inherited=False)


def from_namespace(namespace: str, labels: Mapping[str, str]) -> OptIn | None:
    """Return the queue of pods and Jobs that are not explicit, in a namespace with these labels; None without one."""
    if opted_out(labels) or not labels.get(names.QUEUE):
        return None
    return OptIn(labels[names.QUEUE], f"namespace {namespace}: metadata.labels[{names.QUEUE}]", inherited=True)


def from_lock(namespace: str, own: OptIn | None, namespaces: Namespaces) -> OptIn | None:
    """Return the queue that the namespace is locked to, if the object names another one; else None."""
    labels = namespaces.metadata(namespace).labels if own else {}
    locked = locked_to(labels)
    return from_namespace(namespace, labels) if own and locked not in {"", own.queue} else None


def set_back(path: str, queue: str, locked: str) -> str:
    """Return the warning that a queue was set back to that of the namespace."""
    return f"{path}: is {locked!r} in place of {queue!r}: the namespace is locked to its queue ({names.QUEUE_LOCKED})"


def may_inherit(spec: Mapping[str, Any], meta: ObjectMeta) -> bool:
    """Return True if a pod that is not explicit may get the queue of its namespace, as it is not placed otherwise."""
    scheduler = spec.get("schedulerName") or names.CLUSTER_SCHEDULER
    return (
        not spec.get("nodeName")
        and (scheduler == names.CLUSTER_SCHEDULER or is_musters(scheduler))
        and named_gang(meta) is None
        and not any(owner.kind in TIED_OWNERS for owner in meta.owner_references)
    )


def annotated_queue(namespace: str, namespaces: Namespaces) -> str:
    """Return the queue that the namespace is locked to, else that in Volcano's annotation of it, "" without any.

    APIError if that is not known.
    """
    metadata = namespaces.metadata(namespace)
    return locked_to(metadata.labels) or metadata.annotations.get(names.VOLCANO_QUEUE, "")


def in_default_queue(queue: str | None) -> bool:
    """Return True if no queue was chosen: the schema writes `default` for none, so the two look the same."""
    return (queue or names.DEFAULT_QUEUE) == names.DEFAULT_QUEUE


def set_queue(job: Job, old: Mapping[str, Any] | None, namespace: str, namespaces: Namespaces, patch: Patch) -> str:
    """Write the queue of the namespace into a new Job in the default one, and that of the `old` Job into an update.

    Return the queue that the Job has then.
    """
    if not in_default_queue(job.spec.queue):
        return job.spec.queue
    queue = annotated_queue(namespace, namespaces) if old is None else find(old, ("spec", "queue"))
    if not in_default_queue(queue):
        patch.set("spec", "queue", value=queue, why=ANNOTATED)
    return queue or names.DEFAULT_QUEUE
