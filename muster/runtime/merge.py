"""Merges a TrainJob into its runtime's template, as Kubernetes' strategic merge does for these fields."""

from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from typing import Any

from msgspec import to_builtins

from muster.api.kubeflow.runtimepatch import (
    ContainerPatch,
    PodSpecPatch,
    PodTemplatePatch,
    ReplicatedJobPatch,
    RuntimePatch,
)
from muster.api.kubeflow.trainer import Trainer

JSON = dict[str, Any]


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


def patched(jobs: Sequence[JSON], patches: Sequence[RuntimePatch]) -> list[JSON]:
    """Replicated jobs with all patches, in the order of the list; the parts that a patch names must exist."""
    result = deepcopy(list(jobs))
    named = {job["name"]: job for job in result}
    for patch in patches:
        template = patch.training_runtime_spec.template if patch.training_runtime_spec else None
        for job in template.spec.replicated_jobs if template and template.spec else []:
            if job.name in named:
                _patch_job(named[job.name], job)
    return result


def _patch_job(job: JSON, patch: ReplicatedJobPatch) -> None:
    if patch.template is None:
        return
    template = job["template"]
    if patch.template.metadata:
        template["metadata"] = deep(template.get("metadata") or {}, to_builtins(patch.template.metadata))
    if patch.template.spec and patch.template.spec.template:
        spec = template.setdefault("spec", {})
        spec["template"] = _patch_pod(spec.get("template") or {}, patch.template.spec.template)


def _patch_pod(pod: Mapping[str, Any], patch: PodTemplatePatch) -> JSON:
    result = dict(pod)
    if patch.metadata:
        result["metadata"] = deep(result.get("metadata") or {}, to_builtins(patch.metadata))
    if patch.spec:
        result["spec"] = _patch_spec(result.get("spec") or {}, patch.spec)
    return result


def _patch_spec(spec: Mapping[str, Any], patch: PodSpecPatch) -> JSON:
    given: JSON = to_builtins(patch)
    lists = {"volumes": "name", "imagePullSecrets": "name", "schedulingGates": "name"}
    containers = {"containers": patch.containers, "initContainers": patch.init_containers}
    rest = {key: value for key, value in given.items() if key not in {*lists, *containers}}
    result = deep(spec, rest)  # tolerations are replaced as a whole, as Kubernetes does it
    for key, name in lists.items():
        if key in given:
            result[key] = by_key(result.get(key) or [], given[key], name)
    for key, patches in containers.items():
        for container in patches:
            result[key] = [_patch_container(each, container) for each in result.get(key) or []]
    return result


def _patch_container(container: Mapping[str, Any], patch: ContainerPatch) -> JSON:
    result = dict(container)
    if container.get("name") != patch.name:
        return result
    if patch.env:
        result["env"] = by_key(result.get("env") or [], patch.env, "name")
    if patch.volume_mounts:
        result["volumeMounts"] = by_key(result.get("volumeMounts") or [], patch.volume_mounts, "mountPath")
    if patch.security_context:
        result["securityContext"] = deep(result.get("securityContext") or {}, patch.security_context)
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
