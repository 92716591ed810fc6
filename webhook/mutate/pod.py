"""A pod that is sent to Muster: scheduled by it if it has a queue, shaped if it has a framework, in one patch.

The steps stand in `mutate`, in their order. The resource group comes first, as it may choose the scheduler; then the
queue, by which Muster's scheduler is set; then gates and markers, which depend on the scheduler. Shaping is independent
of them: it does not need a queue.
"""

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import msgspec

from muster.api import names
from muster.api.fields import FieldError
from muster.api.kubernetes.admission import AdmissionRequest
from muster.api.kubernetes.meta import ObjectMeta
from muster.api.muster.pools import is_musters
from muster.kube.errors import APIError
from muster.runtime.framework import Framework
from muster.volcano.pools import pool_of_queue
from webhook.config import ResourceGroup
from webhook.lookup import Lookups, NamespaceQueues, Namespaces
from webhook.mutate import optin
from webhook.mutate.native import name_native_group
from webhook.mutate.optin import OptIn
from webhook.mutate.podreview import PodReview
from webhook.mutate.resourcegroup import assign, group_of_pod
from webhook.mutate.scheduling import add_requested_gate, hold_member, mark, set_scheduler, share_gpus
from webhook.mutate.shape import shape
from webhook.objects.names import unknown_keys, unknown_queue
from webhook.objects.pools import wrong_scheduler
from webhook.objects.room import beyond_every_node
from webhook.review import Handler, Verdict, generic


def reviewer(
    lookups: Lookups, framework: Framework, *, marks: bool = False, groups: Sequence[ResourceGroup] = ()
) -> Handler:
    """Return the handler for pods, on CREATE. A second review of a pod changes nothing."""

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
    """Return a patch, or errors; `namespace` is the review's, as the pod's own may be empty."""
    meta = msgspec.convert(pod.get("metadata") or {}, ObjectMeta)
    if optin.opted_out(meta.labels):
        return Verdict()
    review = PodReview.of(pod, meta, namespace)
    if meta.controller is None:  # a controller's pods have no reader of warnings; its workload was warned
        review.warnings += unknown_keys(pod.get("metadata"))
    review.group = group_of_pod(groups, namespace, meta)
    if review.group:
        assign(review.spec, review.group, review.patch, "spec")
    review.opt_in = _opt_in(review, lookups.namespaces)
    if review.opt_in:
        review.errors += _queue_errors(review, review.opt_in, lookups)
        review.pool = pool_of_queue(review.opt_in.queue, lookups.queues.get)
        review.errors += wrong_scheduler("spec.schedulerName", review.scheduler, review.opt_in.queue, lookups.queues)
        if meta.controller is None:
            review.warnings += beyond_every_node("spec", review.typed_spec, review.opt_in.queue, lookups.queues)
        set_scheduler(review, review.opt_in)
    else:
        hold_member(review)
    name_native_group(review, lookups)
    add_requested_gate(review)
    if marks and is_musters(review.scheduler):
        mark(review.spec, review.patch, "spec")
    share_gpus(review)
    if names.FRAMEWORK in meta.labels:
        shape(review, lookups.owners, framework)
    return review.verdict


def _queue_errors(review: PodReview, opt_in: OptIn, lookups: Lookups) -> list[FieldError]:
    """Refuse a queue that does not exist, or is not for the namespace.

    One that was closed, or restricted, after its workload was admitted still takes the pods: the planner decides.
    """
    queues = NamespaceQueues(lookups.queues, lookups.namespaces, review.namespace)
    errors = unknown_queue(opt_in.path, opt_in.queue, queues)
    if not errors and review.meta.controller is None:
        with suppress(APIError):  # so that pods can be created while namespaces cannot be read
            errors = queues.refusal(opt_in.path, opt_in.queue)
    return errors


def _opt_in(review: PodReview, namespaces: Namespaces) -> OptIn | None:
    """Return the queue that the pod names, else its namespace; None if its resource group has a foreign scheduler."""
    labels = review.meta.labels
    if optin.is_explicit(labels):
        own, locked = optin.from_labels(labels), None
        with suppress(APIError):  # the planner, too, holds it to what its namespace may use
            locked = optin.from_lock(review.namespace, own, namespaces)
        if own and locked:
            review.warnings.append(optin.set_back(own.path, own.queue, locked.queue))
        return locked or own
    spec = review.spec
    if review.assigned_scheduler:
        if not is_musters(review.assigned_scheduler):
            return None
        spec = {**spec, "schedulerName": review.assigned_scheduler}
    if not optin.may_inherit(spec, review.meta):
        return None
    # A pod that is not sent for its own sake is sent for its namespace, whose labels must then name a queue.
    annotated = not names.REVIEWED_FOR.isdisjoint(review.meta.annotations)
    native = review.typed_spec.scheduling_group is not None
    for_itself = review.group is not None or names.FRAMEWORK in labels or annotated or native
    metadata = namespaces.metadata(review.namespace, with_queue=not for_itself)
    return optin.from_namespace(review.namespace, metadata.labels)
