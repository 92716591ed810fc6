"""What may change in a Volcano Job: how many, how many at least, and its priority. Everything else is fixed."""

from collections.abc import Iterator, Mapping
from copy import deepcopy
from typing import Any

from muster.runtime.fields import FieldError

MUTABLE = ("minAvailable", "priorityClassName")
MUTABLE_IN_TASK = ("replicas", "minAvailable")
_MISSING = object()


def check_update(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[FieldError]:
    """Each field that differs and must not."""
    before, after = _fixed(old), _fixed(new)
    tasks_before, tasks_after = before.pop("tasks", None) or [], after.pop("tasks", None) or []
    if len(tasks_before) != len(tasks_after):
        message = f"job updates may not add or remove tasks: there were {len(tasks_before)}"
        yield FieldError("spec.tasks", message, len(tasks_after))
    else:
        for index, (was, is_) in enumerate(zip(tasks_before, tasks_after, strict=True)):
            yield from _differences(was, is_, f"spec.tasks[{index}]")
    yield from _differences(before, after, "spec")


def _fixed(job: Mapping[str, Any]) -> dict[str, Any]:
    """The spec without what may change; claim names are left out where the controller may fill them in."""
    spec: dict[str, Any] = deepcopy(dict(job.get("spec") or {}))
    for name in MUTABLE:
        spec.pop(name, None)
    for task in spec.get("tasks") or []:
        for name in MUTABLE_IN_TASK:
            task.pop(name, None)
    return spec


def _differences(old: Mapping[str, Any], new: Mapping[str, Any], path: str) -> Iterator[FieldError]:
    for name in sorted({*old, *new}):
        was, is_ = old.get(name, _MISSING), new.get(name, _MISSING)
        if was == is_ or (path == "spec" and name == "volumes" and _only_named(was, is_)):
            continue
        message = (
            "job updates may not change fields other than `minAvailable`, `priorityClassName`, "
            "`tasks[*].replicas` and `tasks[*].minAvailable` under spec; create a new job instead"
        )
        yield FieldError(f"{path}.{name}", message, reason="Forbidden")


def _only_named(old: Any, new: Any) -> bool:
    """Whether volumes differ only by names of claims that were generated since."""
    if not isinstance(old, list) or not isinstance(new, list) or len(old) != len(new):
        return False
    return all(
        was == is_
        or (not was.get("volumeClaimName") and {**is_, "volumeClaimName": ""} == {**was, "volumeClaimName": ""})
        for was, is_ in zip(old, new, strict=True)
    )
