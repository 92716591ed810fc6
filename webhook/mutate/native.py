"""The native PodGroup of a pod: as which the controller publishes the pod's gang (docs/native-podgroups.md).

The field cannot change later, so it is written when the pod is created; the PodGroup need not exist by then. Pods of
Volcano Jobs do not come here: the controller makes them with the field.
"""

from contextlib import suppress

from muster.api.kubernetes.core import Pod
from muster.api.kubernetes.meta import Object
from muster.api.muster.gang import named_gang, native_gang_of
from muster.api.muster.pools import is_musters
from muster.kube.errors import APIError
from muster.workloads.adapter import OwnerError
from muster.workloads.table import group_name, min_member, source_of
from webhook.lookup import Lookups, Owners
from webhook.mutate.podreview import PodReview
from webhook.patch import Why

_REFUSED_WITH = "evictionResponders"
"""A field with which the API server refuses members of a group."""


def name_native_group(review: PodReview, lookups: Lookups) -> None:
    """Name the native PodGroup as which the pod's gang is published; none in place of one that is not the pod's gang.

    The Job controller gives each Job a group where the gate WorkloadWithJob is on. A kube-scheduler with the gate
    GenericWorkload queues the pods of a group as one: those that wait for room would hold back those that have places.
    """
    spec, meta = review.spec, review.meta
    if not is_musters(review.scheduler) or native_gang_of(meta, review.typed_spec.scheduling_group):
        return
    name = _published_as(review, lookups)
    if spec.get("schedulingGroup") == {"podGroupName": name}:
        return
    if name:
        why = Why("preemption by other profiles ends its gang whole", "nativePodGroups")
        review.patch.set("spec", "schedulingGroup", value={"podGroupName": name}, why=why)
    elif spec.get("schedulingGroup"):
        review.patch.set("spec", "schedulingGroup", value=None, why=Why("it is not the gang of the pod", "spec"))


def _published_as(review: PodReview, lookups: Lookups) -> str:
    """Return the name of the group as which a gang of two or more is published, by the rule that sizes gangs; or ""."""
    meta = review.meta
    if lookups.native_groups is None or review.opt_in is None or meta.controller is None:
        return ""
    name = group_name(meta)
    if review.spec.get(_REFUSED_WITH) or named_gang(meta) not in {None, name} or not lookups.native_groups():
        return ""
    pod = Pod(metadata=meta, spec=review.typed_spec)
    return name if min_member(pod, _owner(review, lookups.owners)) > 1 else ""


def _owner(review: PodReview, owners: Owners) -> Object | None:
    """Return the pod's controller; None if it cannot be read, or pods of its kind have no ranks."""
    with suppress(APIError, OwnerError):
        source, reference = source_of(review.meta), review.meta.controller
        return owners.find(source, review.namespace, reference) if source and reference else None
    return None
