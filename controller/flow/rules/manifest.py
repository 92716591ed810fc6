"""The Job of a step: its JobTemplate with the step's patch. No I/O.

A patch is merged as Kubernetes merges a strategic merge patch: tasks by name, volumes by mount path, and in pod
templates the lists that have a key by that key. Fields that are left out stay.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from msgspec import to_builtins

from muster.api.muster.creator import passed_on
from muster.api.volcano.batch import JOBS, JobSpec
from muster.api.volcano.flow import JOB_FLOWS, MADE_FOR, MADE_OF, Flow, JobFlow, JobPatch, JobTemplate, job_name
from muster.volcano.tasks import task_name
from muster.workloads.adapter import Owner

JSON = dict[str, Any]
_MAX_LABEL: Final = 63
_KEYS: Final = {
    **dict.fromkeys(("containers", "initContainers", "volumes", "env", "imagePullSecrets"), "name"),
    **dict.fromkeys(("schedulingGates", "resourceClaims"), "name"),
    "ports": "containerPort",
    "volumeMounts": "mountPath",
    "volumeDevices": "devicePath",
    "hostAliases": "ip",
    "topologySpreadConstraints": "topologyKey",
}
"""Lists of a pod template whose elements are merged by a key, as the types of Kubernetes say; others are replaced."""


def job_manifest(job_flow: JobFlow, flow: Flow, template: JobTemplate) -> JSON:
    """The Job, owned by the JobFlow. Marks that are too long for a label are annotations only."""
    meta = job_flow.metadata
    marks = {MADE_OF: f"{meta.namespace}.{flow.name}", MADE_FOR: f"{meta.namespace}.{meta.name}"}
    metadata = {
        "name": job_name(job_flow, flow.name),
        "namespace": meta.namespace,
        "labels": {key: value for key, value in marks.items() if len(value) <= _MAX_LABEL},
        "annotations": passed_on(meta.annotations, marks),
        "ownerReferences": [Owner.of(JOB_FLOWS, meta).reference()],
    }
    spec = patched(template.spec, flow.patch.job_spec if flow.patch else None)
    return {"apiVersion": JOBS.api_version, "kind": JOBS.kind, "metadata": metadata, "spec": spec}


def patched(base: JobSpec, patch: JobPatch | None) -> JSON:
    """The spec of the Job."""
    spec: JSON = to_builtins(base)
    changes: JSON = to_builtins(patch) if patch else {}
    if "tasks" in changes:
        named = [{**task, "name": task_name(index, base.tasks[index])} for index, task in enumerate(spec["tasks"])]
        changes["tasks"] = _by_key(named, changes["tasks"], "name", _task)
    if "volumes" in changes:
        changes["volumes"] = _by_key(spec.get("volumes", []), changes["volumes"], "mountPath", lambda _, new: dict(new))
    if "plugins" in changes:
        known = spec.get("plugins", {})
        more = {name: [*known.get(name, []), *args] for name, args in changes["plugins"].items()}
        changes["plugins"] = {**known, **more}
    return {**spec, **changes}


def _task(base: Mapping[str, Any], patch: Mapping[str, Any]) -> JSON:
    template = merged(base.get("template", {}), patch.get("template", {}))
    return {**base, **patch, "template": template}


def merged(base: Mapping[str, Any], patch: Mapping[str, Any]) -> JSON:
    """A part of a pod template with a patch of its shape."""
    result = dict(base)
    for key, value in patch.items():
        there = result.get(key)
        if isinstance(value, Mapping) and isinstance(there, Mapping):
            result[key] = merged(there, value)
        elif key in _KEYS and isinstance(value, list) and isinstance(there, list):
            result[key] = _by_key(there, value, _KEYS[key], merged)
        else:
            result[key] = value
    return result


def _by_key(base: Sequence[JSON], patch: Sequence[JSON], key: str, merge: Any) -> list[JSON]:
    """`base` with elements of the same key merged in their place, and new ones at the end."""
    result = list(base)
    places = {each.get(key): index for index, each in enumerate(result)}
    for each in patch:
        place = places.setdefault(each.get(key), len(result))
        if place < len(result):
            result[place] = merge(result[place], each)
        else:
            result.append(each)
    return result
