"""Who opts in to Muster, and where several have their say, who wins: the nearest to the pod.

1. the pod itself, which has the labels of its template;
2. its workload: labels of a Job, Deployment, … are copied to the template when the workload is created, unless the
   template is explicit itself;
3. its namespace, for pods that nobody else has placed: not those that name another scheduler, have a node, belong to a
   gang, or to a DaemonSet.

An object is *explicit* if it has either the label `muster.dev/queue`, which opts in, or `muster.dev/managed: "false"`,
which opts out; where the same object has both, it is left alone. `muster.dev/managed` with another value in a template
takes the place of its workload's.

A namespace has a second way, from Volcano: an annotation names the queue of those Volcano Jobs and PodGroups in it that
are in none or in the default one. These kinds are Muster's anyway, so that this is a default and no opt-in.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from muster.api import names
from muster.api.kubernetes.meta import ObjectMeta
from muster.api.muster.gang import gang_of
from muster.api.volcano.batch import Job
from muster.workloads.table import KINDS
from webhook.lookup import Namespaces
from webhook.objects.documents import find
from webhook.patch import Patch, Why

TIED_OWNERS = (*(kind.resource.kind for kind in KINDS if kind.one_node_each), "Node")
"""Kinds whose pods belong to one node each: nobody has to find a place for them."""
ANNOTATED = Why("the queue of its namespace", f"annotation {names.VOLCANO_QUEUE}")


@dataclass(frozen=True, slots=True)
class OptIn:
    """The queue that a pod is to be in, where that is said, and whether it is the namespace that says so."""

    queue: str
    path: str
    inherited: bool


def opted_out(labels: Mapping[str, str]) -> bool:
    """Whether the object is to be left alone."""
    return labels.get(names.MANAGED) == "false"


def is_explicit(labels: Mapping[str, str]) -> bool:
    """Whether the object opts in or out itself, so that nobody further away counts."""
    return names.QUEUE in labels or opted_out(labels)


def from_labels(labels: Mapping[str, str]) -> OptIn | None:
    """What a pod or template says itself; None if it does not opt in."""
    if opted_out(labels) or names.QUEUE not in labels:
        return None
    return OptIn(labels[names.QUEUE], f"metadata.labels[{names.QUEUE}]", inherited=False)


def from_namespace(namespace: str, labels: Mapping[str, str]) -> OptIn | None:
    """What a namespace with these labels says for the pods and Jobs in it that are not explicit."""
    if opted_out(labels) or not labels.get(names.QUEUE):
        return None
    return OptIn(labels[names.QUEUE], f"namespace {namespace}: metadata.labels[{names.QUEUE}]", inherited=True)


def may_inherit(spec: Mapping[str, Any], meta: ObjectMeta) -> bool:
    """Whether a pod that is not explicit may get the queue of its namespace: nobody else has placed it."""
    scheduler = spec.get("schedulerName") or names.CLUSTER_SCHEDULER
    return (
        not spec.get("nodeName")
        and (scheduler == names.CLUSTER_SCHEDULER or scheduler in names.SCHEDULERS)
        and gang_of(meta) is None
        and not any(owner.kind in TIED_OWNERS for owner in meta.owner_references)
    )


def annotated_queue(namespace: str, namespaces: Namespaces) -> str:
    """The queue in Volcano's annotation of the namespace, "" without it; APIError if that could not be found out."""
    return namespaces.annotations(namespace).get(names.VOLCANO_QUEUE, "")


def in_default_queue(queue: str | None) -> bool:
    """Whether this is no choice: the schema writes `default` where nothing is said, so the two look the same."""
    return (queue or names.DEFAULT_QUEUE) == names.DEFAULT_QUEUE


def set_queue(job: Job, old: Mapping[str, Any] | None, namespace: str, namespaces: Namespaces, patch: Patch) -> None:
    """Gives a Volcano Job in no queue, or in the default one, that of its namespace, where its user sees it.

    An update without a queue keeps the one that the Job has, whatever the namespace names by now: a Job stays in its
    queue. APIError where the namespace of a new Job cannot be read: the user submits it again, which is better than a
    Job that waits in another queue than it should.
    """
    if not in_default_queue(job.spec.queue):
        return
    queue = annotated_queue(namespace, namespaces) if old is None else find(old, ("spec", "queue"))
    if not in_default_queue(queue):
        patch.set("spec", "queue", value=queue, why=ANNOTATED)
