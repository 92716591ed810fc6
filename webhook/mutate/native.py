"""The native PodGroup of a pod: as which the controller publishes the pod's gang (docs/native-podgroups.md).

The field cannot change later, so it is written when the pod is created; the PodGroup need not exist by then. Pods of
Volcano Jobs do not come here: the controller makes them with the field.
"""

from contextlib import suppress

from muster.api.kubernetes.core import Pod
from muster.api.kubernetes.meta import Object
from muster.api.muster.gang import named_gang
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
    """Name the native PodGroup of a gang of two or more, by the rule that sizes the gang for its PodGroup."""
    spec, meta = review.spec, review.meta
    if lookups.native_groups is None or meta.controller is None or not is_musters(review.scheduler):
        return
    if spec.get("schedulingGroup") or spec.get(_REFUSED_WITH) or named_gang(meta) not in {None, group_name(meta)}:
        return
    if not lookups.native_groups():
        return
    pod = Pod(metadata=meta, spec=review.typed_spec)
    if min_member(pod, _owner(review, lookups.owners)) > 1:
        why = Why("preemption by other profiles ends its gang whole", "nativePodGroups")
        review.patch.set("spec", "schedulingGroup", value={"podGroupName": group_name(meta)}, why=why)


def _owner(review: PodReview, owners: Owners) -> Object | None:
    """Return the pod's controller; None if it cannot be read, or pods of its kind have no ranks."""
    with suppress(APIError, OwnerError):
        source, reference = source_of(review.meta), review.meta.controller
        return owners.find(source, review.namespace, reference) if source and reference else None
    return None
