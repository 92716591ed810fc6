"""Resource groups of Volcano Jobs: they are written into the templates, from which gangs are planned and pods made."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from muster.api.batch import Job
from muster.api.core import PodSpec
from muster.api.meta import TemplateMeta
from muster.volcano.defaults import task_name
from webhook.config import ResourceGroup
from webhook.mutate.optin import opted_out
from webhook.mutate.resourcegroup import assign, group_of
from webhook.mutate.template_digest import recorded
from webhook.patch import Patch

Groups = Sequence[ResourceGroup]


def group_of_template(template: Mapping[str, Any], groups: Groups, namespace: str) -> ResourceGroup | None:
    """The group that a task's pods belong to, by the namespace or the annotations of their template."""
    meta = msgspec.convert(_without_nulls(template.get("metadata")), TemplateMeta)
    return None if opted_out(meta.labels) else group_of(groups, namespace, meta.annotations)


def assign_groups(job: Job, groups: Groups, namespace: str, patch: Patch, old: Mapping[str, Any] | None) -> None:
    """Writes the groups into the templates of a new Job, or of those tasks that creation has changed in the `old` one.

    A Job keeps what it was created with: one that was there before its group was configured does not get it later.
    """
    known = None if old is None else recorded(old)
    for index, task in enumerate(job.spec.tasks):
        if known is not None and task_name(index, task) not in known:
            continue
        group = group_of_template(task.template, groups, namespace)
        if group:
            spec = _without_nulls(task.template.get("spec"))
            msgspec.convert(spec, PodSpec)  # so that nobody below stumbles over its shape
            assign(spec, group, patch, "spec", "tasks", index, "template", "spec")


def _without_nulls(part: Any) -> dict[str, Any]:
    """The members of a part of a template; ValidationError if it can have none."""
    members = msgspec.convert(part or {}, dict[str, Any])
    return {name: value for name, value in members.items() if value is not None}
