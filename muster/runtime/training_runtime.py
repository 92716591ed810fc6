"""Checks of both kinds of runtimes: the templates must fit their steps, and Muster must support all fields.

Admission checks runtimes. The controller also checks each runtime that it uses, because a label of a namespace can
disable admission.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from muster.api.fields import FieldError
from muster.api.kubeflow import jobset, trainer
from muster.api.limits import PODS
from muster.runtime.plugins.jobset import claim_names, mounted_names, unmapped
from muster.runtime.plugins.pod_groups import together
from muster.runtime.train_job import Runtime, Target, describe
from muster.runtime.workload import gpu_errors

CONTAINERS: Mapping[str, str] = {
    trainer.TRAINER: trainer.NODE,
    trainer.DATASET_INITIALIZER: trainer.DATASET_INITIALIZER,
    trainer.MODEL_INITIALIZER: trainer.MODEL_INITIALIZER,
}
"""Maps a step of a TrainJob to the container that the step's pods must have."""
TEMPLATE = "spec.template.spec"
JOBS = f"{TEMPLATE}.replicatedJobs"
CLAIMS = f"{TEMPLATE}.volumeClaimPolicies"

_ANY_JOB = trainer.TrainJob(spec=trainer.TrainJobSpec(runtime_ref=trainer.RuntimeRef(name="any")))


def check_runtime(runtime: Runtime, target: Target = "Job") -> Iterator[FieldError]:
    """Yield all errors of a runtime."""
    seen: set[str] = set()
    for index, job in enumerate(runtime.spec.template.spec.replicated_jobs):
        path = f"{JOBS}[{index}]"
        yield from _check_step(job, path)
        yield from gpu_errors(_at(job.template, "spec", "template"), f"{path}.template.spec.template")
        yield from _check_order(job, path, seen)
        seen.add(job.name)
    count = runtime.spec.ml_policy.num_nodes if runtime.spec.ml_policy else None
    if count is not None and not 0 <= count <= PODS.value:
        yield FieldError("spec.mlPolicy.numNodes", f"must be a number from 0 to {PODS.value}", count)
    yield from _check_claims(runtime)
    if target == "Job":
        yield from _check_mapped(runtime)
    policy = runtime.spec.pod_group_policy
    if policy and policy.coscheduling and policy.volcano:
        message = "must have either coscheduling or volcano, not both"
        yield FieldError("spec.podGroupPolicy", message, reason="Forbidden")


def _check_step(job: jobset.ReplicatedJob, path: str) -> Iterator[FieldError]:
    """Check that a step of a TrainJob is a single Job, which has the container that TrainJobs configure."""
    step = _at(job.template, "metadata", "labels").get(trainer.ANCESTOR)
    wanted = CONTAINERS.get(step) if isinstance(step, str) else None
    if wanted is None:
        return
    if job.replicas != 1:
        yield FieldError(f"{path}.replicas", f"always must be 1 for a {step}", job.replicas)
    containers = _at(job.template, "spec", "template", "spec").get("containers") or []
    there = [container.get("name") for container in msgspec.convert(containers, list[dict[str, Any]])]
    if wanted not in there:
        message = f"must contain the required container for the ancestor: {step}; name one of them {wanted}"
        yield FieldError(f"{path}.template.spec.template.spec.containers", message, there)


def _check_order(job: jobset.ReplicatedJob, path: str, seen: set[str]) -> Iterator[FieldError]:
    for place, dependency in enumerate(job.depends_on):
        if dependency.name not in seen:
            message = f"must be the name of an earlier replicated job: {', '.join(sorted(seen)) or 'none'}"
            yield FieldError(f"{path}.dependsOn[{place}].name", message, dependency.name, "NotFound")


def _check_claims(runtime: Runtime) -> Iterator[FieldError]:
    """Check that each claim has a unique name, and that a container mounts the claim by this name."""
    base = msgspec.to_builtins(runtime.spec.template.spec)
    names, mounted = claim_names(base), mounted_names(base)
    for place, policy in enumerate(runtime.spec.template.spec.volume_claim_policies):
        for index, template in enumerate(policy.templates):
            name = template.metadata.name
            path = f"{CLAIMS}[{place}].templates[{index}].metadata.name"
            if not name:
                yield FieldError(path, "must be set: containers mount the claim by this name", reason="Required")
            elif names.count(name) > 1:
                yield FieldError(path, "must be the name of one claim only", name, "Duplicate")
            elif name not in mounted:
                there = ", ".join(sorted(mounted)) or "none"
                yield FieldError(path, f"must be mounted by a container of the runtime; mounted volumes: {there}", name)


def _check_mapped(runtime: Runtime) -> Iterator[FieldError]:
    """Reject fields of a JobSet that Muster's Job cannot implement, before TrainJobs rely on them."""
    info = describe(_ANY_JOB, runtime)
    for each in unmapped(info.base, [pod_set.name for pod_set in together(info)], info.framework):
        yield FieldError(f"{TEMPLATE}.{each.field}", f"must be {each.wanted}: {each.why}", each.value)


def _at(node: Mapping[str, Any], *path: str) -> Mapping[str, Any]:
    """Return one section of a template; empty if the section is missing.

    Raises msgspec.ValidationError if the section is not a map.
    """
    for part in path:
        node = msgspec.convert(node.get(part) or {}, dict[str, Any])
    return node
