"""Resource groups: pods that belong to some of the nodes are taken there, whatever they say themselves.

The pods of a Volcano Job are as their template: the group is written into that when the Job is created, so that the
gang is planned with it, and pods that replace others later are like them.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from muster.api.batch import is_job
from muster.api.constraints import Toleration
from muster.api.meta import ObjectMeta
from webhook.config import ResourceGroup, explicit
from webhook.patch import Part, Patch, Why


def group_of(groups: Sequence[ResourceGroup], namespace: str, annotations: Mapping[str, str]) -> ResourceGroup | None:
    """The group of pods with these annotations in that namespace: the first that takes them."""
    return next((group for group in groups if group.takes(namespace, annotations)), None)


def group_of_pod(groups: Sequence[ResourceGroup], namespace: str, meta: ObjectMeta) -> ResourceGroup | None:
    """The group of a pod; None if its template was given one already."""
    return None if is_job(meta.controller) else group_of(groups, namespace, meta.annotations)


def assign(spec: Mapping[str, Any], group: ResourceGroup, patch: Patch, *place: Part) -> None:
    """Adds to `patch` what takes a pod with this spec, which stands at `place`, to the nodes of the group."""
    selector = spec.get("nodeSelector") or {}
    for key, value in group.labels.items():
        if selector.get(key) != value:
            patch.set(*place, "nodeSelector", key, value=value, why=_why(group, "labels", "its nodes have this label"))
    if group.affinity and not spec.get("affinity"):
        why = _why(group, "affinity", "it has none of its own")
        patch.set(*place, "affinity", value=group.affinity, why=why)
    known = [explicit(each) for each in msgspec.convert(spec.get("tolerations") or [], list[Toleration])]
    for toleration in group.tolerations:
        if toleration not in known:
            why = _why(group, "tolerations", "its nodes may have this taint")
            patch.append(*place, "tolerations", value=msgspec.to_builtins(toleration), why=why)
    if group.scheduler_name and spec.get("schedulerName") != group.scheduler_name:
        why = _why(group, "schedulerName", "the scheduler of its nodes")
        patch.set(*place, "schedulerName", value=group.scheduler_name, why=why)


def _why(group: ResourceGroup, field: str, reason: str) -> Why:
    return Why(reason, f"resource group {group.name}: {field}")
