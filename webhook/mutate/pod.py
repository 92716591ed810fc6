"""Mutation of pods: a pod with a queue is scheduled by Muster, and a pod with a framework is shaped.

`mutate` lists the steps in their order. The resource group comes first, because it may choose the scheduler. The queue
is second, because it determines Muster's scheduler; gates and markers depend on the scheduler. Shaping is independent
of the other steps and does not require a queue.
"""

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import msgspec

from muster.api import names
from muster.api.fields import FieldError
from muster.api.kubernetes.admission import AdmissionRequest
from muster.api.kubernetes.core import Pod
from muster.api.kubernetes.meta import ObjectMeta
from muster.api.muster.gang import named_gang
from muster.api.muster.pools import is_musters
from muster.kube.errors import APIError
from muster.runtime.framework import Framework
from muster.volcano.access import pool_of_queue
from muster.workloads.table import group_name, min_member, native_gang_of
from webhook.config import ResourceGroup
from webhook.lookup import Lookups, Namespaces, known_controller
from webhook.mutate import optin
from webhook.mutate.optin import OptIn
from webhook.mutate.podreview import PodReview
from webhook.mutate.resourcegroup import assign, group_of_pod
from webhook.mutate.scheduling import add_requested_gate, hold_member, mark, set_scheduler, share_gpus
from webhook.mutate.shape import shape
from webhook.objects.names import unknown_keys, unknown_queue, unusable_queue
from webhook.objects.pools import beyond_every_node, wrong_scheduler
from webhook.patch import Why
from webhook.review import Handler, ReviewVerdict, generic
from webhook.senders import may_be_controller

_REFUSED_WITH = "evictionResponders"
"""Field that the API server rejects in a pod that names a native PodGroup."""


def reviewer(
    lookups: Lookups, framework: Framework, *, marks: bool = False, groups: Sequence[ResourceGroup] = ()
) -> Handler:
    """Return the handler for pods, on CREATE. A second review of a pod changes nothing."""

    def review(request: AdmissionRequest) -> ReviewVerdict:
        pod, believed = generic(request.object), may_be_controller(request)
        return mutate(pod, request.namespace, lookups, framework, marks=marks, groups=groups, believed=believed)

    return review


def mutate(
    pod: dict[str, Any],
    namespace: str,
    lookups: Lookups,
    framework: Framework,
    *,
    marks: bool = False,
    groups: Sequence[ResourceGroup] = (),
    believed: bool = True,
) -> ReviewVerdict:
    """Return a patch for a pod, or errors.

    `namespace` is the namespace in the review, because the pod itself may not name its namespace. `believed` is true if
    the sender may be the controller that owns the pod. The sender is checked, because users can also create pods that
    name a controller as their owner.
    """
    meta = msgspec.convert(pod.get("metadata") or {}, ObjectMeta)
    if names.opted_out(meta.labels):
        return ReviewVerdict()
    review = PodReview.read_pod(pod, meta, namespace)
    if meta.controller is None:  # no user reads warnings about a controller's pods; its workload was warned
        review.warnings += unknown_keys(pod.get("metadata"))
    review.group = group_of_pod(groups, namespace, meta)
    if review.group:
        assign(review.spec, review.group, review.patch)
    review.opt_in = _opt_in(review, lookups.namespaces)
    if review.opt_in:
        review.errors += _queue_errors(review, review.opt_in, lookups, believed=believed)
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
        mark(review.spec, review.patch)
    share_gpus(review)
    if names.FRAMEWORK in meta.labels:
        shape(review, lookups.owners, framework, lookups.claims(namespace))
    return review.verdict


def _queue_errors(review: PodReview, opt_in: OptIn, lookups: Lookups, *, believed: bool) -> list[FieldError]:
    """Return errors if the queue does not exist, or the namespace is not allowed to use it.

    A queue that was closed or restricted after a workload's admission still accepts the workload's pods; the planner
    decides whether they start. A user can also create a pod that names a workload as its owner. If the sender may be a
    user, the queue must therefore be open.
    """
    queues, owned = lookups.queues_for(review.namespace), review.meta.controller is not None
    if owned and not believed:
        return unusable_queue(opt_in.path, opt_in.queue, queues)
    errors = unknown_queue(opt_in.path, opt_in.queue, queues)
    if not errors and not owned:
        with suppress(APIError):  # so that pods can be created while namespaces cannot be read
            errors = queues.refusal(opt_in.path, opt_in.queue)
    return errors


def _opt_in(review: PodReview, namespaces: Namespaces) -> OptIn | None:
    """Return the queue of the pod, or else of its namespace; None if its resource group sets another scheduler."""
    labels = review.meta.labels
    if optin.is_explicit(labels):
        own, locked = optin.from_labels(labels), None
        with suppress(APIError):  # the planner also checks which queues the namespace may use
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
    # A pod without a setting of its own was sent because of its namespace, whose labels must then name a queue.
    annotated = not names.REVIEWED_FOR.isdisjoint(review.meta.annotations)
    native = review.typed_spec.scheduling_group is not None
    for_itself = review.group is not None or names.FRAMEWORK in labels or annotated or native
    metadata = namespaces.metadata(review.namespace, with_queue=not for_itself)
    return optin.from_namespace(review.namespace, metadata.labels)


def name_native_group(review: PodReview, lookups: Lookups) -> None:
    """Set the native PodGroup that is published for the pod's gang; remove any other native PodGroup from the pod.

    With the feature gate WorkloadWithJob, the Job controller creates a native PodGroup for each Job. With
    GenericWorkload, kube-scheduler queues all pods of a native PodGroup as a unit. Waiting pods would then block pods
    that already have nodes. A pod's `schedulingGroup` is immutable, so it is set at creation, even before the PodGroup
    exists (docs/native-podgroups.md). In pods of Volcano Jobs, the controller sets `schedulingGroup`.
    """
    spec, meta = review.spec, review.meta
    if not is_musters(review.scheduler) or native_gang_of(meta, review.typed_spec.scheduling_group):
        return
    name = _published_as(review, lookups)
    if spec.get("schedulingGroup") == {"podGroupName": name}:
        return
    if name:
        why = Why("preemption by other profiles evicts the whole gang", "nativePodGroups")
        review.patch.set("spec", "schedulingGroup", value={"podGroupName": name}, why=why)
    elif spec.get("schedulingGroup"):
        review.patch.set(
            "spec", "schedulingGroup", value=None, why=Why("the removed group is not the gang of the pod", "spec")
        )


def _published_as(review: PodReview, lookups: Lookups) -> str:
    """Return the name of the native PodGroup that is published for the pod's gang; "" for a gang of one pod."""
    meta = review.meta
    if lookups.native_groups is None or review.opt_in is None or meta.controller is None:
        return ""
    name = group_name(meta)
    if review.spec.get(_REFUSED_WITH) or named_gang(meta) not in {None, name} or not lookups.native_groups():
        return ""
    pod, owner = Pod(metadata=meta, spec=review.typed_spec), known_controller(meta, review.namespace, lookups.owners)
    return name if min_member(pod, owner) > 1 else ""
