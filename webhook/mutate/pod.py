"""A pod that asks for Muster: steered when it has a queue, shaped when it has a framework, in one patch.

Before that it is taken to the nodes of its resource group, which may also choose its scheduler.
"""

from collections.abc import Sequence
from typing import Any

import msgspec

from muster.api import names
from muster.api.admission import AdmissionRequest
from muster.api.core import PodSpec
from muster.api.fields import FieldError
from muster.api.meta import ObjectMeta
from muster.runtime.framework import Framework
from webhook.config import ResourceGroup
from webhook.lookup import Lookups, Namespaces
from webhook.mutate import optin
from webhook.mutate.mark import mark
from webhook.mutate.resourcegroup import assign, group_of_pod
from webhook.mutate.scheduling import gate, scheduler_of, steer
from webhook.mutate.shape import shape
from webhook.patch import Patch
from webhook.review import Handler, Verdict, generic
from webhook.validate.queues.name import unknown_queue


def reviewer(
    lookups: Lookups, framework: Framework, *, marks: bool = False, groups: Sequence[ResourceGroup] = ()
) -> Handler:
    """The handler for pods, on CREATE. Reviewing a pod again that it changed already changes nothing."""

    def review(request: AdmissionRequest) -> Verdict:
        return mutate(generic(request.object), request.namespace, lookups, framework, marks=marks, groups=groups)

    return review


def mutate(
    pod: dict[str, Any],
    namespace: str,
    lookups: Lookups,
    framework: Framework,
    *,
    marks: bool = False,
    groups: Sequence[ResourceGroup] = (),
) -> Verdict:
    """Patch, or errors. `namespace` is the review's: the pod's own may be empty.

    `marks`: pods that Muster places get markers; `groups` are the resource groups that there are.
    """
    meta = msgspec.convert(pod.get("metadata") or {}, ObjectMeta)
    if optin.opted_out(meta.labels):
        return Verdict()
    spec = msgspec.convert(pod.get("spec") or {}, PodSpec)  # always, so that nobody below stumbles over its shape
    patch = Patch(pod)
    errors: list[FieldError] = []
    warnings: list[str] = []
    group = group_of_pod(groups, namespace, meta)
    if group:
        assign(pod.get("spec") or {}, group, patch, "spec")
    asked = _asked(pod, meta, namespace, lookups.namespaces, group)
    scheduler = scheduler_of(pod.get("spec") or {}, asked, group)
    if asked:
        # The queue may have been closed since the workload was admitted; its pods still come.
        errors += unknown_queue(asked.path, asked.queue, lookups.queues)
        warnings += steer(pod, meta, asked, patch, group=group)
    warnings += gate(pod, meta, scheduler, patch, group=group)
    if marks and scheduler in names.SCHEDULERS:
        mark(pod.get("spec") or {}, patch, "spec")
    if names.FRAMEWORK in meta.labels:
        owners = lookups.owners
        errors += shape(pod, meta, spec, namespace=namespace, owners=owners, framework=framework, patch=patch)
    if errors:
        return Verdict(errors=errors, warnings=warnings)
    return Verdict(patch=patch.operations, reasons=patch.reasons, warnings=warnings)


def _asked(
    pod: dict[str, Any], meta: ObjectMeta, namespace: str, namespaces: Namespaces, group: ResourceGroup | None
) -> optin.Asked | None:
    """Who asks for a queue: the pod, else its namespace, unless the pod's group has a scheduler of somebody else's."""
    if optin.decided(meta.labels):
        return optin.by_itself(meta.labels)
    spec = pod.get("spec") or {}
    if group and group.scheduler_name:
        if group.scheduler_name not in names.SCHEDULERS:
            return None
        spec = {**spec, "schedulerName": group.scheduler_name}
    if not optin.takes_defaults(spec, meta):
        return None
    # Unless the pod itself is a reason to send it to us, its namespace is, and its labels are known to hold a queue.
    for_itself = group is not None or names.FRAMEWORK in meta.labels or names.QUEUE_ALLOCATION_GATE in meta.annotations
    return optin.by_namespace(namespace, namespaces.labels(namespace, with_queue=not for_itself))
