"""A patch of an object that is written again: it fills in what creation had filled in, and adds nothing new."""

from collections.abc import Mapping
from typing import Any

from webhook.patch import UNSAID, Part, Patch, Why, find
from webhook.validate.volcano_job.canonical import canonical

_ALWAYS = ("spec", "minAvailable")
"""A Job without it would be a gang that may start in part."""


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
        """See `Patch`."""
        if self._fills_in(path):
            super().set(*path, value=value, why=why)

    def append(self, *path: Part, value: Any, why: Why = UNSAID) -> None:
        """See `Patch`."""
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
