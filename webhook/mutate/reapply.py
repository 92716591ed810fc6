"""Updates of Volcano Jobs by `kubectl apply` or `replace`, which send the user's manifest without Muster's additions.

An update gets back the values that creation filled in, and no new values. A Job keeps its original additions (groups,
markers, DNS policy), even if defaults or configuration have changed since.

* `Reapply` is the patch of an update: it only writes members that also have a value in the old Job.
* In templates, the values of groups and markers are mixed with the user's own. Therefore, an annotation of the Job
  holds a digest of the original of each template that creation changed. A template with the same digest is the
  original, sent again, and gets the old content back.
"""

import hashlib
from collections.abc import Mapping
from typing import Any

import msgspec

from muster.api import names
from muster.api.unchecked import value_at
from muster.api.volcano.batch import Job
from webhook.objects.canonical import canonical, same
from webhook.patch import NO_REASON, Part, Patch, Why

_ALWAYS = ("spec", "minAvailable")
"""A Job without a minimum would be a gang that may start in part."""
_DIGITS = 16
_RECORD = ("metadata", "annotations", names.GROUPED_TEMPLATES)
_WHY = Why("so that the manifest can be applied again", "default")


class Reapply(Patch):
    """Operations on the new version of a Job, limited to members of the `old` version; always includes the minimum.

    A template that is equivalent to the old template is not changed, because the additions may be different today.
    """

    def __init__(self, document: Mapping[str, Any], old: Mapping[str, Any]) -> None:
        super().__init__(document)
        self._old = old
        self._unchanged: dict[int, bool] = {}

    def set(self, *path: Part, value: Any, why: Why = NO_REASON) -> None:
        """Set a member if creation also filled it in."""
        if self._fills_in(path):
            super().set(*path, value=value, why=why)

    def append_item(self, *path: Part, value: Any, why: Why = NO_REASON) -> None:
        """Add an element if creation also filled in the list."""
        if self._fills_in(path):
            super().append_item(*path, value=value, why=why)

    def _fills_in(self, path: tuple[Part, ...]) -> bool:
        if path[:2] == ("spec", "tasks") and path[3:4] == ("template",) and self._template_unchanged(path[2]):
            return False
        return path == _ALWAYS or value_at(self._old, path) is not None

    def _template_unchanged(self, task: Part) -> bool:
        index = int(task)
        if index not in self._unchanged:
            path = ("spec", "tasks", index, "template")
            self._unchanged[index] = same(value_at(self._old, path), value_at(self._document, path))
        return self._unchanged[index]


def remember(job: Job, document: Mapping[str, Any], patch: Patch) -> None:
    """Record the templates of a new Job that the patch changes; keep the record of an earlier review."""
    known = recorded(document)
    paths = (operation["path"].split("/") for operation in patch.operations)
    written = {path[3] for path in paths if path[1:3] == ["spec", "tasks"] and path[4:5] == ["template"]}
    tasks = enumerate(job.spec.tasks)
    changed = {task.name: _digest(task.template) for index, task in tasks if str(index) in written}
    if not changed.keys() <= known.keys():
        patch.set(*_RECORD, value=msgspec.json.encode({**changed, **known}).decode(), why=_WHY)


def keep_record(document: Mapping[str, Any], old: Mapping[str, Any], patch: Patch) -> None:
    """Restore the record in an update that lacks it."""
    known = value_at(old, _RECORD)
    if known is not None and value_at(document, _RECORD) is None:
        patch.set(*_RECORD, value=known, why=_WHY)


def restore(job: Job, old: Mapping[str, Any], patch: Patch) -> None:
    """Restore the old content of templates that are sent unchanged since creation."""
    record = recorded(old)
    for index, task in enumerate(job.spec.tasks):
        known = record.get(task.name)
        if known is not None and known == _digest(task.template):
            place = ("spec", "tasks", index, "template")
            patch.set(*place, value=value_at(old, place), why=_WHY)


def recorded(document: Mapping[str, Any]) -> dict[str, str]:
    """Return the digest of each task's template, by the task's name; empty if the annotation is not Muster's."""
    try:
        return msgspec.json.decode(value_at(document, _RECORD) or "{}", type=dict[str, str])
    except (TypeError, msgspec.MsgspecError):
        return {}


def _digest(template: Mapping[str, Any]) -> str:
    """Return a digest that is equal for equivalent templates."""
    text = msgspec.json.encode(canonical(template), order="deterministic")
    return hashlib.sha256(text).hexdigest()[:_DIGITS]
