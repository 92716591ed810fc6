"""A Volcano Job that is written again, by `kubectl apply` or `replace`: as the user wrote it, without our additions.

So that a manifest can be applied again, an update gets back what creation filled in, and nothing new: a Job keeps what
it was created with (groups, markers, a DNS policy), whatever is a default or configured by then.

* `Reapply` is the patch of an update: it writes only where the old Job has a value too.
* Templates cannot be told apart by their members, as groups and markers stand in them beside the user's own. An
  annotation of the Job holds a digest of each template that creation changed, as it was sent; a template with the same
  digest is the old one, sent again, and gets the old content back.
"""

import hashlib
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from muster.api import names
from muster.api.volcano.batch import Job
from muster.volcano.defaults import task_name
from webhook.objects.canonical import canonical
from webhook.objects.documents import find
from webhook.patch import UNSAID, Part, Patch, Why

_ALWAYS = ("spec", "minAvailable")
"""A Job without it would be a gang that may start in part."""
_DIGITS = 16
_RECORD = ("metadata", "annotations", names.GROUPED_TEMPLATES)
_WHY = Why("so that the manifest can be applied again", "default")


class Reapply(Patch):
    """Operations on the new form of a Volcano Job, as far as the `old` one has what they set; its minimum always.

    So a Job that was made before something became a default stays without it. A task's template that means what the
    old one means is left alone: creation would add other things to it today.
    """

    def __init__(self, document: Mapping[str, Any], old: Mapping[str, Any]) -> None:
        super().__init__(document)
        self._old = old
        self._unchanged: dict[int, bool] = {}

    def set(self, *path: Part, value: Any, why: Why = UNSAID) -> None:
        """Sets a member if creation would have filled it in too."""
        if self._fills_in(path):
            super().set(*path, value=value, why=why)

    def append(self, *path: Part, value: Any, why: Why = UNSAID) -> None:
        """Adds an element if creation would have filled in the list too."""
        if self._fills_in(path):
            super().append(*path, value=value, why=why)

    def _fills_in(self, path: tuple[Part, ...]) -> bool:
        if path[:2] == ("spec", "tasks") and path[3:4] == ("template",) and self._template_unchanged(path[2]):
            return False
        return path == _ALWAYS or find(self._old, path) is not None

    def _template_unchanged(self, task: Part) -> bool:
        index = int(task)
        if index not in self._unchanged:
            path = ("spec", "tasks", index, "template")
            before, after = find(self._old, path), find(self._document, path)
            self._unchanged[index] = before == after or canonical(before) == canonical(after)
        return self._unchanged[index]


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
    """The digest of each task's template, by the task's name; none where somebody else has written the annotation."""
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
