"""Validation of the objects that result from a TrainJob: workloads by the rules of their kinds, pods by dry runs.

Errors name the TrainJob's own fields. A refused field that is not in the TrainJob comes from the runtime. The error
then names the reference to the runtime, or the TrainJob's patches if they change the pod set of the refused field.
"""

import re
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from msgspec import convert, to_builtins

from muster.api import names
from muster.api.fields import FieldError, Findings
from muster.api.kubeflow import trainer
from muster.api.unchecked import mapping, value_at
from muster.api.volcano.batch import JOBS, Job
from muster.runtime.framework import Framework
from muster.runtime.plan import Compiled, Component
from muster.workloads.kind import pod_templates
from muster.workloads.table import kind_in
from webhook.apiserver import DryRuns
from webhook.lookup import NamespaceQueues
from webhook.validate.jobtemplates import check_template
from webhook.validate.trials import MayKnow, Trial, check_trials, pod_to_try, translated
from webhook.validate.workload import VALIDATED, check_workload

REFERENCE = "spec.runtimeRef"
PATCHES = "spec.runtimePatches"
_FIELD = re.compile(r"spec\.containers\[([0-9]+)\]\.(\w+)(.*)")
_STEPS = {
    "spec.trainer": trainer.NODE,
    "spec.initializer.dataset": trainer.DATASET_INITIALIZER,
    "spec.initializer.model": trainer.MODEL_INITIALIZER,
}
"""Maps fields of a TrainJob to the container into which each field is merged."""
_RESOURCES = "resources"
_RESOURCES_PER_NODE = "resourcesPerNode"


def check_jobs(
    job: trainer.TrainJob, compiled: Compiled, framework: Framework, queues: NamespaceQueues
) -> Iterator[FieldError]:
    """Return errors for fields of the runtime and of patches that would make the TrainJob's workloads invalid."""
    reference, meta = job.spec.runtime_ref, job.metadata
    own = {f"metadata.{part}[{key}]" for part in ("labels", "annotations") for key in getattr(meta, part)}
    for component in compiled.components:
        for error in _mistakes(component, framework, queues):
            if error.path in own:
                yield error
                continue
            kind = component.kind
            what = f"the {kind} that {reference.kind} {reference.name} and the TrainJob's patches produce is invalid"
            yield FieldError(REFERENCE, f"{what}: {error}", reference.name)


def _mistakes(component: Component, framework: Framework, queues: NamespaceQueues) -> list[FieldError]:
    """Return the errors in a component, by the rules of its kind; some kinds have no rules."""
    manifest = component.manifest
    kind = kind_in(manifest)
    if manifest.get("apiVersion") == JOBS.api_version and component.kind == JOBS.kind:
        return check_template(convert(manifest, Job), framework).errors
    return check_workload(kind, to_builtins(manifest), queues, framework).errors if kind in VALIDATED else []


def check_pods(
    job: trainer.TrainJob, compiled: Compiled, namespace: str, dry_runs: DryRuns, may_know: MayKnow
) -> Findings:
    """Return the API server's verdict on the first pod of each pod set."""
    return check_trials([*_trials(job, compiled)], namespace, dry_runs, may_know)


def _trials(job: trainer.TrainJob, compiled: Compiled) -> Iterator[Trial]:
    spec = to_builtins(job.spec)
    patched = {each.name for patch in job.spec.runtime_patches for each in patch.replicated_jobs}
    for component in compiled.components:
        manifest = to_builtins(component.manifest)
        kind = kind_in(manifest)
        for place, template in pod_templates(manifest, kind.templates) if kind else ():
            labels = mapping(value_at(template, ("metadata", "labels")))
            name = str(mapping(value_at(manifest, place[:3])).get("name") or labels.get(names.REPLICATED_JOB) or "pod")
            path = PATCHES if name in patched else REFERENCE
            pod = pod_to_try(template, name)
            yield Trial(pod, path, path, partial(_own, spec, pod))


def _own(spec: Mapping[str, Any], pod: Mapping[str, Any], field: str) -> str | None:
    """Return the field of the TrainJob that determines this field of the pod."""
    match = _FIELD.fullmatch(field)
    containers = pod["spec"].get("containers") or []
    if match is None or int(match[1]) >= len(containers):
        return None
    made, key, rest = containers[int(match[1])], match[2], match[3]
    for path, container in _STEPS.items():
        given = mapping(value_at(spec, path.split(".")[1:]))
        if container == made.get("name") and key == _RESOURCES and given.get(_RESOURCES_PER_NODE):
            return f"{path}.{_RESOURCES_PER_NODE}{rest}"
        if container == made.get("name") and given.get(key) and (place := translated(f"{key}{rest}", made, given)):
            return f"{path}.{place}"
    return None
