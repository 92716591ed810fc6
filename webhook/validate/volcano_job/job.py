"""A Volcano Job as a whole: what must hold on CREATE, and what may change on UPDATE."""

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec.json import Decoder

from muster.api import names
from muster.api.fields import FieldError, Findings
from muster.api.kubernetes.admission import AdmissionRequest
from muster.api.kubernetes.authorization import ResourceAttributes
from muster.api.kubernetes.core import PODS
from muster.api.volcano.batch import Job
from muster.api.volcano.compat import KNOWN, compat
from muster.runtime.framework import Framework
from muster.runtime.workload import template_of
from muster.volcano.plugins import registry as plugins
from muster.volcano.tasks import total_replicas
from webhook.dryrun import DryRuns
from webhook.lookup import Queues
from webhook.objects.canonical import AMOUNTS, PLUGINS, TEXTS, canonical, same
from webhook.objects.known_keys import unknown_keys
from webhook.objects.names import unusable_queue
from webhook.review import Handler, Verdict, decode, generic
from webhook.rights import Rights
from webhook.validate.disruption import check_budgets
from webhook.validate.frameworks import check_frameworks
from webhook.validate.podgroup import check_topology
from webhook.validate.topology import check_nearness
from webhook.validate.volcano_job.amounts import check_amounts_of, check_pods
from webhook.validate.volcano_job.policies import check_policies
from webhook.validate.volcano_job.spec import check_names, check_volumes
from webhook.validate.volcano_job.tasks import check_dependencies, check_task
from webhook.validate.volcano_job.templates import check_priority, check_templates

_JOB = Decoder(Job)
MUTABLE = ("minAvailable", "priorityClassName")
MUTABLE_IN_TASK = ("replicas", "minAvailable")
_FIXED = (
    "job updates may not change fields other than `minAvailable`, `priorityClassName`, "
    "`tasks[*].replicas` and `tasks[*].minAvailable` under spec; create a new job instead"
)
_KEYED = TEXTS | AMOUNTS | {PLUGINS}


def reviewer(
    queues: Queues, framework: Framework, dry_runs: DryRuns | None = None, rights: Rights | None = None
) -> Handler:
    """The handler for Jobs, on CREATE and UPDATE; templates, which cannot change, are tried on CREATE.

    A priority can change, so a new one is tried on UPDATE.
    """

    def review(request: AdmissionRequest) -> Verdict:
        job = decode(request.object, _JOB)
        for task in job.spec.tasks:
            template_of(task.template)  # so that nobody below stumbles over its shape
        if request.operation == "UPDATE":
            return _review_update(request, job, dry_runs)
        found = Findings([*check(job), *unusable_queue("spec.queue", job.spec.queue, queues)], warn(job))
        found.add(check_frameworks(job, framework))
        if dry_runs:
            found.add(check_templates(job, request.namespace, dry_runs, lambda: _may_create_pods(request, rights)))
        return Verdict(errors=found.errors, warnings=found.warnings)

    return review


def _may_create_pods(request: AdmissionRequest, rights: Rights | None) -> bool:
    action = ResourceAttributes(verb="create", resource=PODS.plural, namespace=request.namespace)
    return rights is None or rights.allows(request.user_info, action)


def _review_update(request: AdmissionRequest, job: Job, dry_runs: DryRuns | None) -> Verdict:
    old, new = generic(request.old_object), generic(request.object)
    if job.metadata.deletion_timestamp or same(old, new):
        return Verdict()  # only metadata: nothing of ours, and a Job must be able to go away
    errors = [*check_update(old, new), *check_pods(job), *_check_counts(job), *_check_shape(job), *check_names(job)]
    if dry_runs and job.spec.priority_class_name != (old.get("spec") or {}).get("priorityClassName"):
        errors += check_priority(job, request.namespace, dry_runs)
    return Verdict(errors=errors)


def check(job: Job) -> list[FieldError]:
    """Everything that is wrong with a new Job, except for its queue."""
    if not job.spec.tasks:
        message = "No task specified in job spec; add at least one, with a name, replicas and a template"
        return [FieldError("spec.tasks", message, reason="Required"), *check_names(job)]
    return [
        *check_names(job),
        *check_pods(job),
        *check_amounts_of(job),
        *_check_counts(job),
        *_check_shape(job),
        *check_policies(job.spec.policies, "spec.policies"),
        *check_dependencies(job.spec.tasks),
        *check_volumes(job.spec.volumes),
        *plugins.check(job),
        *check_budgets(job),
        *check_nearness(job),
    ]


def warn(job: Job) -> list[str]:
    """What is allowed but will surprise."""
    keys = unknown_keys({"labels": job.metadata.labels, "annotations": job.metadata.annotations})
    for index, task in enumerate(job.spec.tasks):
        keys += unknown_keys(task.template.get("metadata"), f"spec.tasks[{index}].template.metadata")
    result = [*plugins.warnings(job.spec.plugins), *_warn_compat(job), *keys]
    if job.spec.scheduler_name in names.SCHEDULERS | {""}:
        return result
    warning = (
        f"spec.schedulerName: {job.spec.scheduler_name!r} is not a scheduler of Muster's: the pods will not be placed "
        f"together; leave it out, or use {names.VOLCANO_SCHEDULER!r}"
    )
    return [*result, warning]


def _warn_compat(job: Job) -> list[str]:
    unknown = sorted(compat(job.metadata) - set(KNOWN))
    path = f"metadata.annotations[{names.COMPAT}]"
    return [f"{path}: {', '.join(unknown)} means nothing; there are {', '.join(KNOWN)}"] if unknown else []


def _check_counts(job: Job) -> Iterator[FieldError]:
    tasks = job.spec.tasks
    total = total_replicas(job.spec)
    for index, task in enumerate(tasks):
        if task.min_available is not None and task.min_available > task.replicas:
            message = (
                f"'minAvailable' is greater than 'replicas' in task: {task.name}, job: {job.metadata.name}; "
                f"at most {task.replicas}"
            )
            yield FieldError(f"spec.tasks[{index}].minAvailable", message, task.min_available)
    if job.spec.min_available > total:
        message = f"job 'minAvailable' should not be greater than total replicas in tasks; at most {total}"
        yield FieldError("spec.minAvailable", message, job.spec.min_available)


def _check_shape(job: Job) -> Iterator[FieldError]:
    yield from check_topology(job.spec.network_topology, "spec.networkTopology")
    first: dict[str, int] = {}
    for index, task in enumerate(job.spec.tasks):
        path = f"spec.tasks[{index}]"
        if first.setdefault(task.name, index) != index:
            message = f"duplicated task name {task.name}; spec.tasks[{first[task.name]}] has it already"
            yield FieldError(f"{path}.name", message, task.name, "Duplicate")
        yield from check_task(task, path)
        yield from check_policies(task.policies, f"{path}.policies")
        if task.partition_policy:
            yield from check_topology(task.partition_policy.network_topology, f"{path}.partitionPolicy.networkTopology")


def check_update(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[FieldError]:
    """Each field that differs and must not."""
    before, after = _without_mutable(old), _without_mutable(new)
    tasks_before, tasks_after = before.get("tasks", []), after.get("tasks", [])
    if len(tasks_before) != len(tasks_after):
        message = f"job updates may not add or remove tasks: there were {len(tasks_before)}"
        yield FieldError("spec.tasks", message, len(tasks_after))
        before["tasks"] = after["tasks"] = []
    for path in _differences(before, after, "spec"):
        yield FieldError(path, _FIXED, reason="Forbidden")


def _without_mutable(job: Mapping[str, Any]) -> dict[str, Any]:
    """The spec, in its one form, without what may change."""
    spec = canonical(job.get("spec"))
    for name in MUTABLE:
        spec.pop(name, None)
    for task in spec.get("tasks", []):
        for name in MUTABLE_IN_TASK:
            task.pop(name, None)
    return spec


def _differences(old: Any, new: Any, path: str, name: str = "spec") -> Iterator[str]:
    """The paths where the two differ: as deep as they have the same structure."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key in sorted({*old, *new}):
            where = f"{path}[{key}]" if name in _KEYED else f"{path}.{key}"
            yield from _differences(old.get(key), new.get(key), where, key)
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for index, (was, is_) in enumerate(zip(old, new, strict=True)):
            yield from _differences(was, is_, f"{path}[{index}]", "")
    elif old != new:
        yield path
