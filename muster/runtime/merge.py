"""Merges a TrainJob into its runtime's template, as Kubernetes' strategic merge does for these fields."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from muster.api.kubeflow.trainer import Trainer

JSON = dict[str, Any]
_PARTS = frozenset({"replicatedJobs", "containers", "initContainers"})
"""Lists whose elements a patch changes, by name."""
_KEYS = {
    "env": "name",
    "volumes": "name",
    "volumeMounts": "mountPath",
    "imagePullSecrets": "name",
    "schedulingGates": "name",
}
"""Lists whose elements of the same key a patch replaces; it replaces any other list as a whole, such as tolerations."""


def by_key(base: Sequence[Mapping[str, Any]], extra: Iterable[Mapping[str, Any]], key: str) -> list[JSON]:
    """`base` with elements of the same key replaced in their place, and new ones at the end."""
    result = [dict(each) for each in base]
    places = {each.get(key): index for index, each in enumerate(result)}
    for each in extra:
        if each.get(key) in places:
            result[places[each.get(key)]] = dict(each)
        else:
            places[each.get(key)] = len(result)
            result.append(dict(each))
    return result


def deep(base: Mapping[str, Any], extra: Mapping[str, Any]) -> JSON:
    """`base` with the members of `extra`; maps are merged, everything else is replaced."""
    result = dict(base)
    for key, value in extra.items():
        there = result.get(key)
        result[key] = deep(there, value) if isinstance(there, Mapping) and isinstance(value, Mapping) else value
    return result


def patched(base: Mapping[str, Any], patch: Mapping[str, Any]) -> JSON:
    """`base` with a patch of its shape, as a strategic merge patch; the parts that it names must exist."""
    result = dict(base)
    for key, value in patch.items():
        there = result.get(key)
        if isinstance(value, Mapping):
            result[key] = patched(there or {}, value)
        elif key in _PARTS:
            result[key] = list(there or [])
            for part in value:
                result[key] = [patched(each, part) if each["name"] == part["name"] else each for each in result[key]]
        elif key in _KEYS:
            result[key] = by_key(there or [], value, _KEYS[key])
        else:
            result[key] = value
    return result


def with_trainer(
    container: Mapping[str, Any], trainer: Trainer, *, command: bool = True, resources: bool = True
) -> JSON:
    """Container `node` with the TrainJob's fields for it; without `command` or `resources` those stay as they are."""
    result = dict(container)
    if trainer.image:
        result["image"] = trainer.image
    if trainer.command and command:
        result["command"] = list(trainer.command)
    if trainer.args and command:
        result["args"] = list(trainer.args)
    if trainer.env:
        result["env"] = by_key(result.get("env") or [], trainer.env, "name")
    if trainer.resources_per_node and resources:
        result["resources"] = with_resources(result.get("resources") or {}, trainer.resources_per_node)
    return result


def with_resources(base: Mapping[str, Any], extra: Mapping[str, Any]) -> JSON:
    """Requests and limits merged resource by resource, claims by name."""
    result = {key: deep(base.get(key) or {}, extra.get(key) or {}) for key in ("requests", "limits")}
    claims = by_key(base.get("claims") or [], extra.get("claims") or [], "name")
    merged = {**result, "claims": claims}
    return {key: value for key, value in merged.items() if value}
