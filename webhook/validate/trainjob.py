"""Validation of a TrainJob and of both kinds of runtimes.

The runtime of a TrainJob must exist and match the TrainJob. Updates can change only mutable fields. A runtime must
follow the rules of `muster.runtime.training_runtime`, and must have only policies that Muster supports. Refusals have
the status Forbidden (403), because clients of Kubeflow Trainer distinguish it from the schema's Invalid (422).
"""

from collections.abc import Callable, Iterator
from functools import partial
from http import HTTPStatus
from typing import Any

import msgspec

from muster.api import names
from muster.api.base import Wire
from muster.api.fields import FieldError, Findings
from muster.api.kubeflow import runtimepatch, trainer, trainingruntime
from muster.api.kubernetes import admission, core
from muster.api.kubernetes.meta import Object
from muster.api.limits import PODS
from muster.resources.accelerators import Claims
from muster.resources.runtime import budget_mistakes
from muster.runtime.framework import Framework
from muster.runtime.plan import Compiled, Plan
from muster.runtime.plugins.rules import check_managers
from muster.runtime.train_job import Target, compile_train_job
from muster.runtime.training_runtime import check_runtime
from muster.workloads.table import row
from webhook.lookup import Lookups, Runtime
from webhook.objects.names import MAX_LABEL, unknown_keys, unusable_queue
from webhook.objects.pools import beyond_every_node
from webhook.review import Handler, ReviewVerdict, decode, generic
from webhook.validate.edits import unmoved
from webhook.validate.pod import check_annotations
from webhook.validate.trainjobpods import REFERENCE, check_jobs, check_pods
from webhook.validate.trials import may_create_pods

Against = Callable[[trainer.TrainJob, Runtime], Findings]
"""Function by which the runtime plugins check a TrainJob against its runtime."""
_KINDS = (trainingruntime.CLUSTER_TRAINING_RUNTIMES.kind, trainingruntime.TRAINING_RUNTIMES.kind)
_PODS = "a manager, and trainingRuntimeSpec.template.spec.replicatedJobs with the pods' template of each job to change"
_OBJECTS = "a manager, and trainingRuntimeSpec.template.metadata for the objects that run the TrainJob"
_POLICIES = {each.encode_name for each in msgspec.structs.fields(trainingruntime.MLPolicy)}


class _NamedEntry(Wire):
    """An entry of a list that is keyed by name."""

    name: str


def reviewer(lookups: Lookups, framework: Framework, target: Target = "Job") -> Handler:
    """Return the handler for TrainJobs, on CREATE and UPDATE."""

    def review(request: admission.AdmissionRequest) -> ReviewVerdict:
        job = _read_train_job(request.object)

        def against(job: trainer.TrainJob, runtime: Runtime) -> Findings:
            claims, queues = lookups.claims(request.namespace), lookups.queues_for(request.namespace)
            found, compiled = _check_against(job, runtime, framework, target, claims)
            if compiled and not found.errors:
                found.errors += check_jobs(job, compiled, framework, queues)
            here = job.spec.managed_by in {None, trainer.CONTROLLER}  # else another cluster has the pods
            if compiled and not found.errors and lookups.dry_runs and here:
                may_know = partial(may_create_pods, request, lookups.rights)
                found.add(check_pods(job, compiled, request.namespace, lookups.dry_runs, may_know))
            return found

        if request.operation == "UPDATE":
            old = decode(request.old_object, trainer.TrainJob)
            findings = check_update(old, job, request.namespace, lookups, against)
            findings.warnings += set(older_fields(job)).difference(older_fields(old))
            findings.warnings += unmoved(row(trainer.TRAIN_JOBS), generic(request.old_object), generic(request.object))
        else:
            findings = check_train_job(job, request.namespace, lookups, against)
            findings.warnings += older_fields(job)
        return ReviewVerdict(errors=findings.errors, warnings=findings.warnings, refusal=HTTPStatus.FORBIDDEN)

    return review


def _read_train_job(raw: msgspec.Raw) -> trainer.TrainJob:
    """Decode the TrainJob, including its raw parts, so that later checks can rely on the types of all fields."""
    job = decode(raw, trainer.TrainJob)
    spec = job.spec
    steps = [spec.initializer.dataset, spec.initializer.model] if spec.initializer else []
    named = [each.env for each in (spec.trainer, *steps) if each]
    for pod in _pod_patches(job):
        containers = (*pod.containers, *pod.init_containers)
        named += [pod.volumes, pod.scheduling_gates, *(each.env for each in containers)]
        named += [each.volume_mounts for each in containers]
    for entries in named:
        msgspec.convert(entries, list[_NamedEntry])
    if spec.trainer and spec.trainer.resources_per_node:
        msgspec.convert(spec.trainer.resources_per_node, core.ResourceRequirements)
    return job


def _pod_patches(job: trainer.TrainJob) -> Iterator[runtimepatch.PodSpecPatch]:
    for patch in job.spec.runtime_patches:
        for each in patch.replicated_jobs:
            spec = each.template.spec if each.template else None
            if spec and spec.template and spec.template.spec:
                yield spec.template.spec


def check_train_job(job: trainer.TrainJob, namespace: str, lookups: Lookups, against: Against) -> Findings:
    """Return all errors of a new TrainJob."""
    meta = job.metadata
    findings = Findings(
        [*check_annotations(meta.annotations), *budget_mistakes(meta.annotations, "metadata.annotations")],
        unknown_keys({"labels": meta.labels, "annotations": meta.annotations}),
    )
    if names.QUEUE in meta.labels:
        findings.errors += _check_queue(job, namespace, lookups)
    findings.warnings += _too_large(job, lookups)
    reference = job.spec.runtime_ref
    wrong = list(_check_reference(reference))
    runtime = None if wrong else lookups.runtimes.find(reference, namespace)
    if runtime is None:
        findings.errors += [*(wrong or [_missing(reference)]), *check_managers(job)]
        return findings
    findings.warnings += deprecation(runtime, f"{reference.kind} {reference.name}")
    findings.add(against(job, runtime))
    return findings.distinct()  # created objects repeat the TrainJob's annotations, and so their errors


def _too_large(job: trainer.TrainJob, lookups: Lookups) -> list[str]:
    """Return a warning for each resource of a training pod that no node has, if the TrainJob itself sets resources."""
    given = job.spec.trainer.resources_per_node if job.spec.trainer else None
    if not given:
        return []
    container = core.Container(resources=msgspec.convert(given, core.ResourceRequirements))
    queue = job.metadata.labels.get(names.QUEUE) or names.DEFAULT_QUEUE
    spec = core.PodSpec(containers=[container])
    return beyond_every_node("spec.trainer.resourcesPerNode", spec, queue, lookups.queues)


def _check_queue(job: trainer.TrainJob, namespace: str, lookups: Lookups) -> list[FieldError]:
    path, queue = f"metadata.labels[{names.QUEUE}]", job.metadata.labels[names.QUEUE]
    return unusable_queue(path, queue, lookups.queues_for(namespace))


def check_update(
    old: trainer.TrainJob, new: trainer.TrainJob, namespace: str, lookups: Lookups, against: Against
) -> Findings:
    """Check a changed TrainJob beyond the schema.

    A deleted runtime is no error here, because the TrainJob was already admitted.
    """
    patched = _without_times(old) != _without_times(new)
    resized = old.metadata.annotations.get(names.NUM_NODES) != new.metadata.annotations.get(names.NUM_NODES)
    added = (old.spec.trainer, old.spec.initializer) != (new.spec.trainer, new.spec.initializer)
    queues = [each.metadata.labels.get(names.QUEUE) for each in (old, new)]
    moved = queues[1] is not None and queues[0] != queues[1]
    if new.metadata.deletion_timestamp or not (patched or added or resized or moved):
        return Findings()
    findings = Findings(_check_queue(new, namespace, lookups) if moved else [])
    if patched:
        findings.errors += _check_moment(old, new)
    runtime = lookups.runtimes.find(new.spec.runtime_ref, namespace)
    if runtime:
        findings.add(against(new, runtime).since(against(old, runtime)))
    elif patched:
        findings.errors += check_managers(new)
    return findings


def deprecation(runtime: Object, name: str) -> list[str]:
    """Return a warning if the runtime is labelled as deprecated."""
    if runtime.metadata.labels.get(trainer.SUPPORT) != trainer.DEPRECATED:
        return []
    label = f"{trainer.SUPPORT}: {trainer.DEPRECATED}"
    return [f"{name} is deprecated and will be removed; choose another runtime (label {label})"]


def older_fields(job: trainer.TrainJob) -> Iterator[str]:
    """Yield a warning for each field of older Trainer versions.

    The schema contains the old fields only for this warning; otherwise, the API server would drop the fields silently.
    """
    spec = job.spec
    written = {
        "podTemplateOverrides": (spec.pod_template_overrides, _PODS),
        "podSpecOverrides": (spec.pod_spec_overrides, _PODS),
        "labels": (spec.labels, _OBJECTS),
        "annotations": (spec.annotations, _OBJECTS),
    }
    for name, (value, instead) in written.items():
        if value:
            yield f"spec.{name}: has no effect since Kubeflow Trainer 2.2; use spec.runtimePatches: {instead}"


def _check_reference(reference: trainer.RuntimeRef) -> Iterator[FieldError]:
    if reference.api_group not in {"", trainer.GROUP}:
        yield FieldError(f"{REFERENCE}.apiGroup", f"must be {trainer.GROUP}", reference.api_group, "NotSupported")
    if reference.kind not in _KINDS:
        message = f"must be {' or '.join(_KINDS)}"
        yield FieldError(f"{REFERENCE}.kind", message, reference.kind, "NotSupported")


def _missing(reference: trainer.RuntimeRef) -> FieldError:
    kind = f"{reference.kind[0].lower()}{reference.kind[1:]}"
    where = " in the TrainJob's namespace" if reference.kind == trainingruntime.TRAINING_RUNTIMES.kind else ""
    message = f"specified {kind} must be created before the TrainJob is created; no object has this name{where}"
    return FieldError(REFERENCE, message, reference.name)


def _check_moment(old: trainer.TrainJob, new: trainer.TrainJob) -> Iterator[FieldError]:
    """Refuse changes of runtime patches while pods run, because patches change the pod template."""
    path = "spec.runtimePatches"
    if not (old.spec.suspend or new.spec.suspend):
        message = "can only be modified while the TrainJob is suspended; set spec.suspend to true first"
        yield FieldError(path, message, reason="Forbidden")
    for status in old.status.jobs_status:
        if status.active:
            message = f"cannot be modified while replicated job {status.name} is still active; wait for its pods to end"
            yield FieldError(path, message, reason="Forbidden")


def _check_against(
    job: trainer.TrainJob, runtime: Runtime, framework: Framework, target: Target, claims: Claims
) -> tuple[Findings, Compiled | None]:
    """Check the TrainJob by the rules of the runtime plugins, against the unpatched runtime."""
    count = job.spec.trainer.num_nodes if job.spec.trainer else None
    if count is not None and not 0 < count <= PODS.value:  # avoid a list of so many hosts
        few = FieldError("spec.trainer.numNodes", "must be at least 1; use spec.suspend to start no pods", count)
        return Findings([few] if count < 1 else PODS.exceeded("spec.trainer.numNodes", count)), None
    reference = job.spec.runtime_ref
    what = f"must refer to a valid runtime, which {reference.kind} {reference.name} is not"
    wrong = [FieldError(REFERENCE, f"{what}: {each}", reference.name) for each in check_runtime(runtime, target)]
    if wrong:
        return Findings(wrong), None
    compiled = compile_train_job(job, runtime, framework, target, claims)
    findings = Findings(list(compiled.errors), list(compiled.findings.warnings))
    if compiled.plan:
        findings.errors += _check_host_names(job, compiled.plan)
    return findings, compiled


def _check_host_names(job: trainer.TrainJob, plan: Plan) -> Iterator[FieldError]:
    """Refuse a TrainJob whose pods would have host names that are not DNS labels, because no pod could be created."""
    for pod_set in plan.pod_sets:
        last = pod_set.endpoints[-1].partition(".")[0] if pod_set.endpoints else ""
        if len(last) > MAX_LABEL:
            message = (
                f"is too long: pod {last} of {pod_set.name} would have a host name of {len(last)} characters; "
                f"{MAX_LABEL} are allowed, so shorten it by {len(last) - MAX_LABEL}"
            )
            yield FieldError("metadata.name", message, job.metadata.name)


def _without_times(job: trainer.TrainJob) -> list[object]:
    return [(patch.manager, patch.training_runtime_spec) for patch in job.spec.runtime_patches]


class _PoliciesSpec(Wire):
    """The ML policies of a runtime, including unknown policies."""

    ml_policy: dict[str, Any] | None = None


class _Policied(Wire):
    """A runtime, reduced to its ML policies."""

    spec: _PoliciesSpec = msgspec.field(default_factory=_PoliciesSpec)


def runtime_reviewer(
    kind: type[trainingruntime.TrainingRuntime | trainingruntime.ClusterTrainingRuntime], target: Target = "Job"
) -> Handler:
    """Return the handler for TrainingRuntimes or ClusterTrainingRuntimes, on CREATE and UPDATE."""

    def review(request: admission.AdmissionRequest) -> ReviewVerdict:
        runtime = decode(request.object, kind)
        policy, warnings = runtime.spec.ml_policy, []
        if policy and policy.flux is not None:
            warnings.append("spec.mlPolicy.flux: Muster does not run Flux; TrainJobs of this runtime will be refused")
        if request.operation == "UPDATE" and _same_runtime(request, kind):
            return ReviewVerdict(warnings=warnings)  # only metadata has changed
        if request.operation == "CREATE":
            warnings += deprecation(runtime, f"{kind.__name__} {request.name or runtime.metadata.name}")
        errors = [*_check_policy(request.object), *check_runtime(runtime, target)]
        return ReviewVerdict(errors=errors, warnings=warnings, refusal=HTTPStatus.FORBIDDEN)

    return review


def _same_runtime(request: admission.AdmissionRequest, kind: type[Any]) -> bool:
    """Return True if the spec is unchanged, including unknown policies."""
    return all(decode(request.old_object, each).spec == decode(request.object, each).spec for each in (kind, _Policied))


def _check_policy(raw: msgspec.Raw) -> Iterator[FieldError]:
    """Refuse policies that Muster does not support, because TrainJobs would run without them."""
    for name in sorted(set(decode(raw, _Policied).spec.ml_policy or {}) - _POLICIES):
        known = ", ".join(sorted(_POLICIES - {"numNodes", "flux"}))
        message = f"must be left out: Muster supports only {known}"
        yield FieldError(f"spec.mlPolicy.{name}", message, name, "NotSupported")
