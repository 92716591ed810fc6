"""Defaults of Queues and PodGroups, which are stored in the objects so that all clients read the same values.

No value of a client is replaced, because a client that applies its manifest again would find a difference.
"""

import msgspec

from muster.api import names
from muster.api.kubernetes.admission import AdmissionRequest
from muster.api.kubernetes.meta import ObjectMeta
from muster.api.unchecked import mapping
from muster.api.volcano.batch import is_job
from muster.kube.errors import APIError
from muster.volcano.access import pool_of_queue
from webhook.lookup import Lookups
from webhook.mutate.optin import ANNOTATED, annotated_queue, in_default_queue
from webhook.patch import Patch, Why
from webhook.review import Handler, MalformedError, ReviewVerdict, generic

_DEFAULT = Why("left out", "default")
_COPY = Why("only Muster writes it", "a new object")


def reviewer(lookups: Lookups) -> Handler:
    """Return the handler for new PodGroups, which sets the queue and its node pool.

    PodGroups of Volcano Jobs are skipped. An exported PodGroup contains the status of its original, which is dropped,
    because only Muster may record that a gang was admitted. If the namespace cannot be read, the queue is not changed.
    A gang in the default queue can run, while the pods of a refused PodGroup wait.
    """

    def review(request: AdmissionRequest) -> ReviewVerdict:
        try:
            group = generic(request.object)
            metadata = msgspec.convert(mapping(group.get("metadata")), ObjectMeta)
            if is_job(metadata.controller):
                return ReviewVerdict()
            own = mapping(group.get("spec")).get("queue")
        except (MalformedError, msgspec.ValidationError):
            return ReviewVerdict()  # the API server's schema refuses it
        patch = Patch(group)
        admitted = mapping(group.get("status")).get("phase") not in (None, "", "Pending")
        if request.operation == "CREATE" and admitted:
            patch.set("status", value={}, why=_COPY)
        try:
            queue = annotated_queue(request.namespace, lookups.namespaces) if in_default_queue(own) else ""
            pool = pool_of_queue(queue or own or names.DEFAULT_QUEUE, lookups.queues.get)
        except APIError:
            return ReviewVerdict.admitted_with(patch)
        if queue:
            patch.set("spec", "queue", value=queue, why=ANNOTATED)
        if pool and names.NODE_POOL not in metadata.labels:
            patch.set("metadata", "labels", names.NODE_POOL, value=pool, why=Why("the pool of its queue", "default"))
        return ReviewVerdict.admitted_with(patch)

    return review


def review_queue(request: AdmissionRequest) -> ReviewVerdict:
    """Fill in defaults on CREATE; a malformed object passes unchanged to the schema check."""
    try:
        queue = generic(request.object)
    except MalformedError:
        return ReviewVerdict()
    patch, spec = Patch(queue), mapping(queue.get("spec"))
    if spec.get("weight") is None:
        patch.set("spec", "weight", value=1, why=_DEFAULT)
    if spec.get("reclaimable") is None:
        patch.set("spec", "reclaimable", value=True, why=_DEFAULT)
    return ReviewVerdict.admitted_with(patch)
