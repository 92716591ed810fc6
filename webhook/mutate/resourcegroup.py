"""Resource groups: pods get the node labels, tolerations, affinity and scheduler of their group.

The pods of a Volcano Job get the group from their template. The settings of the group are written into the template
when the Job is created, so the gang is planned with them, and all pods of the Job are alike.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from muster.api import names
from muster.api.kubernetes import constraints, core
from muster.api.kubernetes.meta import ObjectMeta, TemplateMeta
from muster.api.volcano.batch import Job, is_job
from webhook.config import ResourceGroup, explicit
from webhook.mutate.reapply import recorded
from webhook.patch import Part, Patch, Why

Groups = Sequence[ResourceGroup]


def group_of(groups: Groups, namespace: str, annotations: Mapping[str, str]) -> ResourceGroup | None:
    """Return the first group that matches pods with these annotations in this namespace."""
    return next((group for group in groups if group.takes(namespace, annotations)), None)


def group_of_pod(groups: Groups, namespace: str, meta: ObjectMeta) -> ResourceGroup | None:
    """Return the group of a pod; None for pods of a Volcano Job, whose template already has the settings."""
    return None if is_job(meta.controller) else group_of(groups, namespace, meta.annotations)


def assign(spec: Mapping[str, Any], group: ResourceGroup, patch: Patch, *place: Part) -> None:
    """Add the settings of the group to the pod spec at the path `place`."""
    selector = spec.get("nodeSelector") or {}
    for key, value in group.labels.items():
        if selector.get(key) != value:
            patch.set(*place, "nodeSelector", key, value=value, why=_why(group, "labels", "its nodes have this label"))
    if group.affinity and not spec.get("affinity"):
        why = _why(group, "affinity", "it has none itself")
        patch.set(*place, "affinity", value=group.affinity, why=why)
    known = [explicit(each) for each in msgspec.convert(spec.get("tolerations") or [], list[constraints.Toleration])]
    for toleration in group.tolerations:
        if toleration not in known:
            why = _why(group, "tolerations", "its nodes may have this taint")
            patch.append_item(*place, "tolerations", value=msgspec.to_builtins(toleration), why=why)
    if group.scheduler_name and spec.get("schedulerName") != group.scheduler_name:
        why = _why(group, "schedulerName", "the scheduler of its nodes")
        patch.set(*place, "schedulerName", value=group.scheduler_name, why=why)


def group_of_template(template: Mapping[str, Any], groups: Groups, namespace: str) -> ResourceGroup | None:
    """Return the group of a task's pods, according to the namespace or the annotations of their template."""
    meta = msgspec.convert(_without_nulls(template.get("metadata")), TemplateMeta)
    return None if names.opted_out(meta.labels) else group_of(groups, namespace, meta.annotations)


def assign_groups(job: Job, groups: Groups, namespace: str, patch: Patch, old: Mapping[str, Any] | None) -> None:
    """Write the groups into the templates of a new Job, or of the tasks that creation has changed in the `old` Job."""
    known = None if old is None else recorded(old)
    for index, task in enumerate(job.spec.tasks):
        if known is not None and task.name not in known:
            continue
        group = group_of_template(task.template, groups, namespace)
        if group:
            spec = _without_nulls(task.template.get("spec"))
            msgspec.convert(spec, core.PodSpec)  # raises here, so that `assign` can rely on its shape
            assign(spec, group, patch, "spec", "tasks", index, "template", "spec")


def _without_nulls(part: Any) -> dict[str, Any]:
    """Return the members of a part of a template; ValidationError if it is not a map."""
    members = msgspec.convert(part or {}, dict[str, Any])
    return {name: value for name, value in members.items() if value is not None}


def _why(group: ResourceGroup, field: str, reason: str) -> Why:
    return Why(reason, f"resource group {group.name}: {field}")
