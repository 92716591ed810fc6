"""Resource groups: pods get the node labels, tolerations, affinity and scheduler of their group.

The pods of a Volcano Job get the group of their template. The settings of the group are recorded in the Job at its
creation. Therefore, the gang is planned with the recorded settings, and all pods of the Job get the same settings.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from muster.api import names
from muster.api.kubernetes.core import PodSpec
from muster.api.kubernetes.meta import ObjectMeta, TemplateMeta
from muster.api.muster.pools import is_musters
from muster.api.unchecked import value_at
from muster.api.volcano.batch import Job, TaskSpec, is_job
from muster.api.volcano.podsettings import PodSettings, additions, stored
from muster.volcano.tasks import scheduler_of
from webhook.config import ResourceGroup
from webhook.patch import Patch, Why

Groups = Sequence[ResourceGroup]

_RECORD = ("metadata", "annotations", names.GROUPED_TEMPLATES)
_RECORDED = Why("its pods get these settings", "resource groups and markPods")
_KEPT = Why("settings of pods are fixed", "the Job before the update")
_NONE = stored([])
_REASONS = {
    "nodeSelector": ("labels", "nodes of the resource group have this label"),
    "affinity": ("affinity", "the pod has no affinity itself"),
    "tolerations": ("tolerations", "nodes of the resource group may have this taint"),
    "schedulerName": ("schedulerName", "the scheduler of its nodes"),
}
"""Maps a field of a pod to the field of a resource group that sets it, and to the reason shown for the addition."""


def group_of(groups: Groups, namespace: str, annotations: Mapping[str, str]) -> ResourceGroup | None:
    """Return the first group that matches pods with these annotations in this namespace."""
    return next((group for group in groups if group.takes(namespace, annotations)), None)


def group_of_pod(groups: Groups, namespace: str, meta: ObjectMeta) -> ResourceGroup | None:
    """Return the resource group of a pod; None for pods of Volcano Jobs, which are created with their settings."""
    return None if is_job(meta.controller) else group_of(groups, namespace, meta.annotations)


def assign(spec: Mapping[str, Any], group: ResourceGroup, patch: Patch) -> None:
    """Add the settings of the group to a pod."""
    for path, value in additions(spec, group.settings):
        field, reason = _REASONS[str(path[0])]
        why = Why(reason, f"resource group {group.name}: {field}")
        if path[-1] == "-":
            patch.append_item("spec", *path[:-1], value=value, why=why)
        else:
            patch.set("spec", *path, value=value, why=why)


def record(job: Job, document: Mapping[str, Any], groups: Groups, namespace: str, patch: Patch, *, marks: bool) -> None:
    """Record the settings of a new Job's pods: resource groups' settings, and markers if Muster schedules the pods."""
    found: list[PodSettings] = []
    for task in job.spec.tasks:
        settings = _settings(job, task, groups, namespace, marks=marks)
        if settings is None or not any(additions(task.template.get("spec") or {}, settings)):
            continue
        same = next((each for each in found if replace(each, tasks=[]) == settings), None)
        if same is None:
            found.append(same := settings)
        same.tasks.append(task.name)
    given = value_at(document, _RECORD)
    if (found or given is not None) and given != stored(found):
        patch.set(*_RECORD, value=stored(found), why=_RECORDED)


def keep_record(document: Mapping[str, Any], old: Mapping[str, Any], patch: Patch) -> None:
    """Restore the recorded settings of pods in an update that omits or changes the record."""
    known, given = value_at(old, _RECORD), value_at(document, _RECORD)
    if known != given:
        patch.set(*_RECORD, value=known or _NONE, why=_KEPT)


def _settings(job: Job, task: TaskSpec, groups: Groups, namespace: str, *, marks: bool) -> PodSettings | None:
    """Return the settings of a task's pods; None if the pods have no resource group and get no markers.

    Raise ValidationError if the template is malformed.
    """
    meta = msgspec.convert(_without_nulls(task.template.get("metadata")), TemplateMeta)
    group = None if names.opted_out(meta.labels) else group_of(groups, namespace, meta.annotations)
    if not (group or marks):
        return None
    settings = group.settings if group else PodSettings()
    spec = msgspec.convert(_without_nulls(task.template.get("spec")), PodSpec)
    scheduler = settings.scheduler_name or spec.scheduler_name or scheduler_of(job.spec)
    return replace(settings, marked=marks and is_musters(scheduler))


def _without_nulls(part: Any) -> dict[str, Any]:
    """Return a section of a pod template without null fields; raise ValidationError if the section is not a map."""
    members = msgspec.convert(part or {}, dict[str, Any])
    return {name: value for name, value in members.items() if value is not None}
