"""What may change in a Volcano Job: how many, how many at least, and its priority. Everything else is fixed."""

from collections.abc import Iterator, Mapping
from typing import Any

from muster.api.fields import FieldError
from webhook.validate.volcano_job.canonical import AMOUNTS, PLUGINS, TEXTS, canonical

MUTABLE = ("minAvailable", "priorityClassName")
MUTABLE_IN_TASK = ("replicas", "minAvailable")
_MESSAGE = (
    "job updates may not change fields other than `minAvailable`, `priorityClassName`, "
    "`tasks[*].replicas` and `tasks[*].minAvailable` under spec; create a new job instead"
)
_KEYED = TEXTS | AMOUNTS | {PLUGINS}


def check_update(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[FieldError]:
    """Each field that differs and must not."""
    before, after = _fixed(old), _fixed(new)
    tasks_before, tasks_after = before.get("tasks", []), after.get("tasks", [])
    if len(tasks_before) != len(tasks_after):
        message = f"job updates may not add or remove tasks: there were {len(tasks_before)}"
        yield FieldError("spec.tasks", message, len(tasks_after))
        before["tasks"] = after["tasks"] = []
    for path in _differences(before, after, "spec"):
        yield FieldError(path, _MESSAGE, reason="Forbidden")


def _fixed(job: Mapping[str, Any]) -> dict[str, Any]:
    """The spec, in its one form, without what may change."""
    spec = canonical(job.get("spec"))
    for name in MUTABLE:
        spec.pop(name, None)
    for task in spec.get("tasks", []):
        for name in MUTABLE_IN_TASK:
            task.pop(name, None)
    return spec


def _differences(old: Any, new: Any, path: str, name: str = "spec") -> Iterator[str]:
    """The paths where the two differ: as deep as they have the same structure."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key in sorted({*old, *new}):
            where = f"{path}[{key}]" if name in _KEYED else f"{path}.{key}"
            yield from _differences(old.get(key), new.get(key), where, key)
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for index, (was, is_) in enumerate(zip(old, new, strict=True)):
            yield from _differences(was, is_, f"{path}[{index}]", "")
    elif old != new:
        yield path
