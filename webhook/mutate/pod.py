"""A pod that asks for Muster: steered when it has a queue, shaped when it has a framework, in one patch."""

from typing import Any

import msgspec

from muster.api import names
from muster.api.admission import AdmissionRequest
from muster.api.meta import ObjectMeta
from muster.runtime.fields import FieldError
from muster.runtime.framework import Framework
from webhook.lookup import Owners, Queues
from webhook.mutate.shape import shape
from webhook.mutate.steer import steer
from webhook.patch import Patch
from webhook.review import Handler, Verdict, generic
from webhook.validate.queue_name import unknown_queue


def reviewer(queues: Queues, owners: Owners, framework: Framework) -> Handler:
    """The handler for pods, on CREATE. Reviewing a pod again that it changed already changes nothing."""

    def review(request: AdmissionRequest) -> Verdict:
        return mutate(generic(request.object), request.namespace, queues, owners, framework)

    return review


def mutate(pod: dict[str, Any], namespace: str, queues: Queues, owners: Owners, framework: Framework) -> Verdict:
    """Patch, or errors. `namespace` is the review's: the pod's own may be empty."""
    meta = msgspec.convert(pod.get("metadata") or {}, ObjectMeta)
    patch = Patch(pod)
    errors: list[FieldError] = []
    warnings: list[str] = []
    if names.QUEUE in meta.labels:
        # The queue may have been closed since the workload was admitted; its pods still come.
        errors += unknown_queue(f"metadata.labels[{names.QUEUE}]", meta.labels[names.QUEUE], queues)
        warnings += steer(pod, meta, patch)
    if names.FRAMEWORK in meta.labels:
        errors += shape(pod, meta, namespace, owners, framework, patch)
    return Verdict(errors=errors, patch=() if errors else patch.operations, warnings=warnings)
