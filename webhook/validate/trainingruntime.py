"""Validation of both kinds of runtimes: templates fit their steps, and Muster can run everything that they ask for."""

from collections.abc import Iterator, Mapping
from http import HTTPStatus
from typing import Any

import msgspec
from msgspec.json import Decoder

from muster.api.base import Wire
from muster.api.fields import FieldError
from muster.api.kubeflow.jobset import ReplicatedJob
from muster.api.kubeflow.trainer import (
    ANCESTOR,
    DATASET_INITIALIZER,
    MODEL_INITIALIZER,
    NODE,
    TRAINER,
    RuntimeRef,
    TrainJob,
    TrainJobSpec,
)
from muster.api.kubeflow.trainingruntime import ClusterTrainingRuntime, MLPolicy, TrainingRuntime
from muster.api.kubernetes.admission import AdmissionRequest
from muster.api.limits import PODS
from muster.runtime.plugins.jobset import claim_names, mounted_names, unmapped
from muster.runtime.plugins.pod_groups import together
from muster.runtime.train_job import Target, describe
from webhook.review import Handler, Verdict, decode
from webhook.validate.pod import check_gpus
from webhook.validate.trainjob import deprecation

CONTAINERS: Mapping[str, str] = {
    TRAINER: NODE,
    DATASET_INITIALIZER: DATASET_INITIALIZER,
    MODEL_INITIALIZER: MODEL_INITIALIZER,
}
"""Step of a TrainJob → the container that its pods must have."""
TEMPLATE = "spec.template.spec"
JOBS = f"{TEMPLATE}.replicatedJobs"
CLAIMS = f"{TEMPLATE}.volumeClaimPolicies"

_POLICIES = {each.encode_name for each in msgspec.structs.fields(MLPolicy)}


class _Spec(Wire):
    """ML policies of any name."""

    ml_policy: dict[str, Any] | None = None


class _Policied(Wire):
    """A runtime, reduced to its ML policies."""

    spec: _Spec = msgspec.field(default_factory=_Spec)


_POLICY = Decoder(_Policied)
_ANY_JOB = TrainJob(spec=TrainJobSpec(runtime_ref=RuntimeRef(name="any")))


def reviewer(kind: type[TrainingRuntime | ClusterTrainingRuntime], target: Target = "Job") -> Handler:
    """Return the handler for one of the two kinds, on CREATE and UPDATE."""
    decoder = Decoder(kind)

    def review(request: AdmissionRequest) -> Verdict:
        runtime = decode(request.object, decoder)
        policy, warnings = runtime.spec.ml_policy, []
        if policy and policy.flux is not None:
            warnings.append("spec.mlPolicy.flux: Muster does not run Flux; TrainJobs of this runtime will be refused")
        if request.operation == "UPDATE" and _same(request, decoder):
            return Verdict(warnings=warnings)  # only metadata has changed
        if request.operation == "CREATE":
            warnings += deprecation(runtime, f"{kind.__name__} {request.name or runtime.metadata.name}")
        errors = [*_check_policy(request.object), *check(runtime, target)]
        return Verdict(errors=errors, warnings=warnings, refusal=HTTPStatus.FORBIDDEN)

    return review


def check(runtime: TrainingRuntime | ClusterTrainingRuntime, target: Target = "Job") -> Iterator[FieldError]:
    """Yield everything that is wrong with a runtime."""
    seen: set[str] = set()
    for index, job in enumerate(runtime.spec.template.spec.replicated_jobs):
        path = f"{JOBS}[{index}]"
        yield from _check_step(job, path)
        yield from check_gpus(_at(job.template, "spec", "template"), f"{path}.template.spec.template")
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


def _same(request: AdmissionRequest, decoder: Decoder[Any]) -> bool:
    """Return True if the spec is unchanged, policies that Muster does not know included."""
    return all(
        decode(request.old_object, each).spec == decode(request.object, each).spec for each in (decoder, _POLICY)
    )


def _check_policy(raw: msgspec.Raw) -> Iterator[FieldError]:
    """Refuse policies that Muster does not know, as TrainJobs would run without them."""
    for name in sorted(set(decode(raw, _POLICY).spec.ml_policy or {}) - _POLICIES):
        known = ", ".join(sorted(_POLICIES - {"numNodes", "flux"}))
        message = f"must be left out: Muster knows {known}, and runs no other"
        yield FieldError(f"spec.mlPolicy.{name}", message, name, "NotSupported")


def _check_step(job: ReplicatedJob, path: str) -> Iterator[FieldError]:
    """Check that a step of a TrainJob is one Job, with the container that TrainJobs configure."""
    step = _at(job.template, "metadata", "labels").get(ANCESTOR)
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


def _check_order(job: ReplicatedJob, path: str, seen: set[str]) -> Iterator[FieldError]:
    for place, dependency in enumerate(job.depends_on):
        if dependency.name not in seen:
            message = f"must be the name of a replicated job that stands before it: {', '.join(sorted(seen)) or 'none'}"
            yield FieldError(f"{path}.dependsOn[{place}].name", message, dependency.name, "NotFound")


def _check_claims(runtime: TrainingRuntime | ClusterTrainingRuntime) -> Iterator[FieldError]:
    """Check that each claim has a name of its own, under which a container mounts it."""
    base = msgspec.to_builtins(runtime.spec.template.spec)
    names, mounted = claim_names(base), mounted_names(base)
    for place, policy in enumerate(runtime.spec.template.spec.volume_claim_policies):
        for index, template in enumerate(policy.templates):
            name = template.metadata.name
            path = f"{CLAIMS}[{place}].templates[{index}].metadata.name"
            if not name:
                yield FieldError(path, "must be set: containers mount the claim under it", reason="Required")
            elif names.count(name) > 1:
                yield FieldError(path, "must be the name of one claim only", name, "Duplicate")
            elif name not in mounted:
                there = ", ".join(sorted(mounted)) or "none"
                yield FieldError(path, f"must be mounted by a container of the runtime; mounted are {there}", name)


def _check_mapped(runtime: TrainingRuntime | ClusterTrainingRuntime) -> Iterator[FieldError]:
    """Refuse fields of a JobSet that a Job of Muster's cannot carry out, before TrainJobs rely on them."""
    info = describe(_ANY_JOB, runtime)
    for each in unmapped(info.base, [pod_set.name for pod_set in together(info)], info.framework):
        yield FieldError(f"{TEMPLATE}.{each.field}", f"must be {each.wanted}: {each.why}", each.value)


def _at(node: Mapping[str, Any], *path: str) -> Mapping[str, Any]:
    """Return a member of a template, empty if it is missing; msgspec.ValidationError if it is not a map."""
    for part in path:
        node = msgspec.convert(node.get(part) or {}, dict[str, Any])
    return node
