"""Creation of the Job for a JobFlow's step from the step's JobTemplate.

A step's patch is merged like a strategic merge patch: tasks by name, volumes by mount path, and lists in pod templates
by their keys. Fields that the patch omits stay unchanged.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from msgspec import to_builtins

from muster.api.muster.creator import passed_on
from muster.api.unchecked import value_at
from muster.api.volcano.batch import JOBS, JobSpec
from muster.api.volcano.flow import (
    JOB_FLOWS,
    MADE_FOR,
    MADE_OF,
    Flow,
    JobFlow,
    JobPatch,
    JobTemplate,
    job_name,
)
from muster.workloads.adapter import Owner
from muster.workloads.kind import Verbs, WorkloadKind, again
from muster.workloads.sample import JSON

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
"""Lists of a pod template that are merged by a key, as in Kubernetes' types; other lists are replaced."""
_STEPS = f"-l {MADE_FOR}={{namespace}}.{{name}}"
JOB_FLOW = WorkloadKind(
    JOB_FLOWS,
    templates=(),
    verbs=Verbs(
        ended=lambda flow: value_at(flow, ("status", "state", "phase")) in {"Succeed", "Failed"},
        instead={
            "hold": f"it cannot be held itself: `muster hold {_STEPS}` holds its Jobs, and later steps wait for them",
            "release": f"it cannot be held itself: `muster release {_STEPS}` releases its Jobs",
            "move": again("the Jobs of a JobFlow stay in the queues that admitted them"),
            "priority": f"`muster priority {_STEPS} --class CLASS` changes its Jobs; for later steps, change the "
            "JobTemplates",
            "resize": "resize its Jobs by their own names; for later steps, change the JobTemplates",
        },
    ),
)
"""The kind JobFlow, whose pods belong to its Jobs."""


def job_manifest(job_flow: JobFlow, flow: Flow, template: JobTemplate) -> JSON:
    """Return the Job of a step, which the JobFlow owns.

    Names that are too long for a label are stored only as annotations.
    """
    meta = job_flow.metadata
    marks = {MADE_OF: f"{meta.namespace}.{flow.name}", MADE_FOR: f"{meta.namespace}.{meta.name}"}
    metadata = {
        "name": job_name(job_flow, flow.name),
        "namespace": meta.namespace,
        "labels": {key: value for key, value in marks.items() if len(value) <= _MAX_LABEL},
        "annotations": passed_on(meta.annotations, marks),
        "ownerReferences": [Owner.from_meta(JOB_FLOWS, meta).reference()],
    }
    spec = patched(template.spec, flow.patch.job_spec if flow.patch else None)
    return {"apiVersion": JOBS.api_version, "kind": JOBS.kind, "metadata": metadata, "spec": spec}


def patched(base: JobSpec, patch: JobPatch | None) -> JSON:
    """Return the spec of a step's Job: the JobTemplate's spec with the step's patch applied."""
    spec: JSON = to_builtins(base)
    changes: JSON = to_builtins(patch) if patch else {}
    if "tasks" in changes:
        changes["tasks"] = _by_key(spec["tasks"], changes["tasks"], "name", _task)
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
    """Return one section of a pod template (such as `metadata`) with a patch of the same structure applied."""
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
    """Return `base` with the patch's elements: equal keys are merged in place, and new elements are appended."""
    result = list(base)
    places = {each.get(key): index for index, each in enumerate(result)}
    for each in patch:
        place = places.setdefault(each.get(key), len(result))
        if place < len(result):
            result[place] = merge(result[place], each)
        else:
            result.append(each)
    return result
