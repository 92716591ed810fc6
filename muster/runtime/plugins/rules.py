"""Rules for a TrainJob and its runtime that do not depend on the framework.

The rules check the runtime before it is merged with the TrainJob.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from muster.api.fields import FieldError, Findings
from muster.api.kubeflow import runtimepatch, trainer, trainingruntime
from muster.runtime.info import Info
from muster.runtime.train_job import injections, pod_template, step_of

_PATH = "spec.runtimeRef"
_PATCHES = "spec.runtimePatches"
_MOUNT = "initializer"
"""Name of the volume for the initializers' data in Kubeflow's runtimes."""
_OWN_FIELDS = (trainer.DATASET_INITIALIZER, trainer.MODEL_INITIALIZER, trainer.NODE)
_MANAGER = re.compile(
    r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/[A-Za-z0-9/\-._~%!$&'()*+,;=:]+", re.ASCII
)

Runtime = trainingruntime.TrainingRuntime | trainingruntime.ClusterTrainingRuntime


class TrainJobRules:
    """Validation of every TrainJob."""

    name = "Rules"

    def validate(self, info: Info) -> Findings:
        """Return the errors that depend neither on the framework nor on the target."""
        job, runtime = info.train_job, info.runtime
        if job is None or runtime is None:
            return Findings()
        errors = [*_framework(info), *_trainer(info), *_initializers(job, runtime), *_injections(info)]
        errors += check_managers(job)
        for patch in job.spec.runtime_patches:
            errors += _patch(patch, runtime)
        return Findings(errors, list(_without_mount(job, runtime)))


def check_managers(job: trainer.TrainJob) -> Iterator[FieldError]:
    """Check that each patch names its manager by a domain-prefixed path. This check does not need the runtime."""
    for index, patch in enumerate(job.spec.runtime_patches):
        if not _MANAGER.fullmatch(patch.manager):
            message = 'must be a domain-prefixed path (such as "acme.io/foo")'
            yield FieldError(f"spec.runtimePatches[{index}].manager", message, patch.manager)


def _framework(info: Info) -> Iterator[FieldError]:
    if info.framework == "flux":
        message = "must not refer to a runtime with mlPolicy flux, which Muster does not support"
        yield FieldError(_PATH, message, info.runtime_name)
    policy = info.runtime.spec.ml_policy if info.runtime else None
    if policy is None and info.trainer and info.trainer.resources_per_node and not info.trainers:
        message = "must be left out: the runtime has no step trainer to which it applies"
        yield FieldError("spec.trainer.resourcesPerNode", message, info.trainer.resources_per_node)


def _trainer(info: Info) -> Iterator[FieldError]:
    """Check that training pods have the container `node`, which gets the trainer's settings, variables and ports."""
    for pod_set in info.pod_sets:
        if pod_set.role in {"trainer", "launcher"} and pod_set.target is None:
            message = f"must refer to a runtime whose job {pod_set.name} has a container {trainer.NODE!r}"
            yield FieldError(_PATH, message, info.runtime_name)
    if not info.trainers and info.framework != "plain":
        message = f"must refer to a runtime with a step trainer, because its policy is {info.framework}"
        yield FieldError(_PATH, message, info.runtime_name)


def _initializers(job: trainer.TrainJob, runtime: Runtime) -> Iterator[FieldError]:
    """Check that each initializer of the TrainJob is a step of the runtime, with a container of its name."""
    name = runtime.metadata.name
    for step in _wanted(job):
        jobs = [each for each in _jobs(runtime) if each["name"] == step or step_of(each) == step]
        if not jobs:
            message = f"must have {step} job when trainJob is configured with input {step.partition('-')[0]} config"
            yield FieldError(_PATH, message, name)
        elif step not in [each.get("name") for each in _containers_of(jobs[0])]:
            message = f"must have container with name {step} in the {jobs[0]['name']} job"
            yield FieldError(_PATH, message, name)


def _without_mount(job: trainer.TrainJob, runtime: Runtime) -> Iterator[str]:
    """Yield a warning for each initializer without a volume for its data; Kubeflow Trainer rejects such a runtime."""
    wanted = _wanted(job)
    for each in _jobs(runtime):
        step = str(step_of(each) or each["name"])
        for container in _containers_of(each) if step in wanted else ():
            mounts = [mount.get("name") for mount in container.get("volumeMounts") or []]
            if container.get("name") == step and _MOUNT not in mounts:
                yield (
                    f"{_PATH}: {runtime.metadata.name}: container {step} of job {each['name']} mounts no volume "
                    f"{_MOUNT!r}, so its data may be lost before the training starts"
                )


def _wanted(job: trainer.TrainJob) -> list[str]:
    initializer = job.spec.initializer
    steps = (
        {trainer.DATASET_INITIALIZER: initializer.dataset, trainer.MODEL_INITIALIZER: initializer.model}
        if initializer
        else {}
    )
    return [step for step, wanted in steps.items() if wanted is not None]


def _containers_of(job: Mapping[str, Any]) -> list[dict[str, Any]]:
    return list((pod_template(job).get("spec") or {}).get("containers") or [])


def _injections(info: Info) -> Iterator[FieldError]:
    for pod_set, container, found in injections(info):
        if found is None:
            message = f'envInjection target podSet "{pod_set}" container "{container}" not found in runtime template'
            yield FieldError(_PATH, message, info.runtime_name)


def _patch(patch: runtimepatch.RuntimePatch, runtime: Runtime) -> Iterator[FieldError]:
    known = {job["name"]: job for job in _jobs(runtime)}
    for job in patch.replicated_jobs:
        if job.name not in known:
            message = "must not have replicated job that doesn't exist in the runtime job template"
            yield FieldError(_PATCHES, message, job.name)
            continue
        spec = pod_template(known[job.name]).get("spec") or {}
        for kind, patches in _containers(job).items():
            there = {each.get("name") for each in spec.get(f"{kind}s") or []}
            yield from _container_errors(kind, patches, job.name, there)


def _container_errors(
    kind: str, patches: list[runtimepatch.ContainerPatch], job: str, there: set[str | None]
) -> Iterator[FieldError]:
    for container in patches:
        if container.name not in there:
            message = f"must not have {kind} that doesn't exist in the runtime job {job}"
            yield FieldError(_PATCHES, message, container.name)
        if container.env and container.name in _OWN_FIELDS:
            message = f"must not have envs for the {', '.join(_OWN_FIELDS)} containers"
            yield FieldError(_PATCHES, message, container.name)


def _containers(patch: runtimepatch.ReplicatedJobPatch) -> dict[str, list[runtimepatch.ContainerPatch]]:
    template = patch.template.spec.template if patch.template and patch.template.spec else None
    spec = template.spec if template and template.spec else runtimepatch.PodSpecPatch()
    return {"initContainer": spec.init_containers, "container": spec.containers}


def _jobs(runtime: Runtime) -> list[dict[str, Any]]:
    return [{"name": job.name, "template": job.template} for job in runtime.spec.template.spec.replicated_jobs]
