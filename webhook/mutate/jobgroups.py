"""Resource groups of Volcano Jobs: they are written into the templates, from which gangs are planned and pods made.

A Job keeps the groups that it was created with. So that its manifest can be applied again, whatever is configured by
then, an annotation of the Job says what its templates were like before; who sends those again means no change.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from muster.api import names
from muster.api.batch import Job, TaskSpec
from muster.api.core import PodSpec
from muster.api.meta import TemplateMeta
from webhook.config import ResourceGroup
from webhook.mutate.asks import opted_out
from webhook.mutate.resourcegroup import assign, group_of
from webhook.patch import Patch, Why, find
from webhook.validate.canonical import canonical

Groups = Sequence[ResourceGroup]
_DIGITS = 16
_RECORD = ("metadata", "annotations", names.GROUPED_TEMPLATES)
_WHY = Why("so that the manifest can be applied again", "resource group")


def group_of_template(template: Mapping[str, Any], groups: Groups, namespace: str) -> ResourceGroup | None:
    """The group that a task's pods belong to, by the namespace or the annotations of their template."""
    meta = msgspec.convert(_without_nulls(template.get("metadata")), TemplateMeta)
    return None if opted_out(meta.labels) else group_of(groups, namespace, meta.annotations)


def assign_groups(job: Job, groups: Groups, namespace: str, patch: Patch) -> dict[str, str]:
    """Writes the groups into the templates; answers which tasks that changes, with digests of their templates."""
    changed = {}
    for index, task in enumerate(job.spec.tasks):
        group = group_of_template(task.template, groups, namespace)
        if group:
            spec = _without_nulls(task.template.get("spec"))
            msgspec.convert(spec, PodSpec)  # so that nobody below stumbles over its shape
            before = len(patch.operations)
            assign(spec, group, patch, "spec", "tasks", index, "template", "spec")
            if len(patch.operations) > before:
                changed[_name(index, task)] = _digest(task.template)
    return changed


def remember(document: Mapping[str, Any], changed: Mapping[str, str], patch: Patch) -> None:
    """Notes what the templates of a new Job were like, unless that was noted before others changed them, too."""
    known = _record(document)
    if not changed.keys() <= known.keys():
        patch.set(*_RECORD, value=msgspec.json.encode({**changed, **known}).decode(), why=_WHY)


def restore(job: Job, document: Mapping[str, Any], old: Mapping[str, Any], patch: Patch) -> None:
    """Gives back templates that are sent as they were before, and the annotation that knows them."""
    known = find(old, _RECORD)
    if known is not None and find(document, _RECORD) is None:
        patch.set(*_RECORD, value=known, why=_WHY)
    for index in _sent_again(job, _record(old)):
        place = ("spec", "tasks", index, "template")
        patch.set(*place, value=find(old, place), why=_WHY)


def _sent_again(job: Job, record: Mapping[str, str]) -> Iterator[int]:
    for index, task in enumerate(job.spec.tasks):
        if record.get(_name(index, task)) == _digest(task.template):
            yield index


def _name(index: int, task: TaskSpec) -> str:
    return task.name or f"default{index}"


def _record(document: Mapping[str, Any]) -> dict[str, str]:
    """Task → digest of its template; nothing from an annotation that somebody else has written."""
    try:
        return msgspec.json.decode(find(document, _RECORD) or "{}", type=dict[str, str])
    except (TypeError, msgspec.MsgspecError):
        return {}


def _digest(template: Mapping[str, Any]) -> str:
    """The same for templates that mean the same."""
    text = msgspec.json.encode(canonical(template), order="deterministic")
    return hashlib.sha256(text).hexdigest()[:_DIGITS]


def _without_nulls(part: Any) -> dict[str, Any]:
    """The members of a part of a template; ValidationError if it can have none."""
    members = msgspec.convert(part or {}, dict[str, Any])
    return {name: value for name, value in members.items() if value is not None}
