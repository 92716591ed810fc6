"""A pod that asks for Muster: steered when it has a queue, shaped when it has a framework, in one patch."""

from typing import Any

import msgspec

from muster.api import names
from muster.api.admission import AdmissionRequest
from muster.api.core import PodSpec
from muster.api.meta import ObjectMeta
from muster.runtime.fields import FieldError
from muster.runtime.framework import Framework
from webhook.lookup import Lookups, Namespaces
from webhook.mutate import asks
from webhook.mutate.shape import shape
from webhook.mutate.steer import steer
from webhook.patch import Patch
from webhook.review import Handler, Verdict, generic
from webhook.validate.queue_name import unknown_queue


def reviewer(lookups: Lookups, framework: Framework, *, marks: bool = False) -> Handler:
    """The handler for pods, on CREATE. Reviewing a pod again that it changed already changes nothing."""

    def review(request: AdmissionRequest) -> Verdict:
        return mutate(generic(request.object), request.namespace, lookups, framework, marks=marks)

    return review


def mutate(
    pod: dict[str, Any], namespace: str, lookups: Lookups, framework: Framework, *, marks: bool = False
) -> Verdict:
    """Patch, or errors. `namespace` is the review's: the pod's own may be empty; `marks`: steered pods get markers."""
    meta = msgspec.convert(pod.get("metadata") or {}, ObjectMeta)
    if asks.opted_out(meta.labels):
        return Verdict()
    spec = msgspec.convert(pod.get("spec") or {}, PodSpec)  # always, so that nobody below stumbles over its shape
    patch = Patch(pod)
    errors: list[FieldError] = []
    warnings: list[str] = []
    asked = _asked(pod, meta, namespace, lookups.namespaces)
    if asked:
        # The queue may have been closed since the workload was admitted; its pods still come.
        errors += unknown_queue(asked.path, asked.queue, lookups.queues)
        warnings += steer(pod, meta, asked, patch, marks=marks)
    if names.FRAMEWORK in meta.labels:
        owners = lookups.owners
        errors += shape(pod, meta, spec, namespace=namespace, owners=owners, framework=framework, patch=patch)
    if errors:
        return Verdict(errors=errors, warnings=warnings)
    return Verdict(patch=patch.operations, reasons=patch.reasons, warnings=warnings)


def _asked(pod: dict[str, Any], meta: ObjectMeta, namespace: str, namespaces: Namespaces) -> asks.Asked | None:
    """Who asks for a queue: the pod, else its namespace."""
    if asks.decided(meta.labels):
        return asks.by_itself(meta.labels)
    spec = pod.get("spec") or {}
    if not asks.takes_defaults(spec, meta):
        return None
    # Without a framework there is no other reason to send us this pod than its namespace.
    return asks.by_namespace(namespace, namespaces.labels(namespace, with_queue=names.FRAMEWORK not in meta.labels))
