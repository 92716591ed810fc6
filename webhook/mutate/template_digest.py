"""What the templates of a Volcano Job were like before admission filled them in: an annotation of the Job says it.

A Job keeps what it was created with: groups, markers, a DNS policy. So that its manifest can be applied again, whatever
is configured by then, who sends the templates of that time again means no change.
"""

import hashlib
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from muster.api import names
from muster.api.batch import Job
from muster.volcano.defaults import task_name
from webhook.patch import Patch, Why, find
from webhook.validate.volcano_job.canonical import canonical

_DIGITS = 16
_RECORD = ("metadata", "annotations", names.GROUPED_TEMPLATES)
_WHY = Why("so that the manifest can be applied again", "default")


def remember(job: Job, document: Mapping[str, Any], patch: Patch) -> None:
    """Notes the templates of a new Job that the patch changes, unless that was noted before others changed them."""
    known = recorded(document)
    written = _changed(patch)
    tasks = enumerate(job.spec.tasks)
    changed = {task_name(index, task): _digest(task.template) for index, task in tasks if str(index) in written}
    if not changed.keys() <= known.keys():
        patch.set(*_RECORD, value=msgspec.json.encode({**changed, **known}).decode(), why=_WHY)


def keep_record(document: Mapping[str, Any], old: Mapping[str, Any], patch: Patch) -> None:
    """Gives back the annotation to an update without it."""
    known = find(old, _RECORD)
    if known is not None and find(document, _RECORD) is None:
        patch.set(*_RECORD, value=known, why=_WHY)


def restore(job: Job, old: Mapping[str, Any], patch: Patch) -> None:
    """Gives back templates that are sent as they were before."""
    for index in _sent_again(job, recorded(old)):
        place = ("spec", "tasks", index, "template")
        patch.set(*place, value=find(old, place), why=_WHY)


def recorded(document: Mapping[str, Any]) -> dict[str, str]:
    """Task → digest of its template; nothing from an annotation that somebody else has written."""
    try:
        return msgspec.json.decode(find(document, _RECORD) or "{}", type=dict[str, str])
    except (TypeError, msgspec.MsgspecError):
        return {}


def _changed(patch: Patch) -> set[str]:
    """The numbers of the tasks in whose templates the patch writes."""
    paths = (operation["path"].split("/") for operation in patch.operations)
    return {path[3] for path in paths if path[1:3] == ["spec", "tasks"] and path[4:5] == ["template"]}


def _sent_again(job: Job, record: Mapping[str, str]) -> Iterator[int]:
    for index, task in enumerate(job.spec.tasks):
        known = record.get(task_name(index, task))
        if known is not None and known == _digest(task.template):
            yield index


def _digest(template: Mapping[str, Any]) -> str:
    """The same for templates that mean the same."""
    text = msgspec.json.encode(canonical(template), order="deterministic")
    return hashlib.sha256(text).hexdigest()[:_DIGITS]
