"""Validation of a Volcano Job as a whole: the rules on CREATE, and the allowed changes on UPDATE."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from msgspec import structs

from muster.api import names
from muster.api.fields import FieldError, Findings
from muster.api.kubernetes import admission
from muster.api.limits import PODS, TASKS
from muster.api.muster.pools import is_musters
from muster.api.unchecked import mapping
from muster.api.volcano.batch import JOBS, QUIRKS, Job, TaskSpec, compat
from muster.resources.runtime import budget_mistakes
from muster.runtime.framework import Framework
from muster.runtime.workload import template_of
from muster.volcano.manifests import Manifest, containers
from muster.volcano.plugins import registry as plugins
from muster.volcano.plugins.base import JobPlugin, PluginError
from muster.volcano.plugins.registry import plugins_for
from muster.volcano.pods import complete_pod
from muster.volcano.tasks import DEFAULT_MAX_RETRY, PodSlot, queue_of, total_replicas
from muster.workloads.table import row
from webhook.apiserver import DryRuns
from webhook.lookup import Lookups
from webhook.objects.canonical import AMOUNTS, PLUGINS, TEXTS, canonical, same
from webhook.objects.names import unknown_keys, unusable_queue
from webhook.objects.pools import beyond_every_node, wrong_scheduler
from webhook.review import MOST_WARNINGS, Handler, ReviewVerdict, decode, generic
from webhook.senders import is_controller
from webhook.validate.edits import fixed_sizes, unmoved
from webhook.validate.pod import check_budgets
from webhook.validate.trials import MayKnow, Trial, check_trials, may_create_pods, missing_class, pod_to_try, translated
from webhook.validate.volcano_job.spec import check_counts, check_limits, check_names, check_policies, check_volumes
from webhook.validate.volcano_job.tasks import check_dependencies, check_frameworks, check_pods_of_tasks, check_tasks

MUTABLE = ("minAvailable", "priorityClassName")
MUTABLE_IN_TASK = ("replicas", "minAvailable")
_FIXED = (
    "job updates may not change fields other than `minAvailable`, `priorityClassName`, "
    "`tasks[*].replicas` and `tasks[*].minAvailable` under spec; create a new job instead"
)
_KEYED = TEXTS | AMOUNTS | {PLUGINS}


_ANY = "any"
"""Name of the Job and the pod in dry runs. The name is fixed, so that many similar Jobs cause only one call."""
_MOST_SHAPED = 32
"""Maximum number of containers in a pod for a dry run with plugins: the plugin svc adds two variables per task to each
container."""


def check_templates(job: Job, namespace: str, dry_runs: DryRuns, may_know: MayKnow = lambda: True) -> Findings:
    """Return the API server's verdict on the first pods of the Job's tasks."""
    plugins = _plugins(job)
    trials = (_trial(job, task, f"spec.tasks[{index}].template", plugins) for index, task in enumerate(job.spec.tasks))
    return check_trials(trials, namespace, dry_runs, may_know)


def _plugins(job: Job) -> Sequence[JobPlugin]:
    """Return the plugins that shape pods for dry runs.

    Return None if the Job is refused anyway, because of its plugins or its size.
    """
    try:
        small = len(job.spec.tasks) <= TASKS.value and total_replicas(job.spec) <= PODS.value
        return plugins_for(job.spec.plugins) if small else ()
    except PluginError:
        return ()


def _trial(job: Job, task: TaskSpec, path: str, plugins: Sequence[JobPlugin]) -> Trial:
    """Return the dry run for a task's first pod, or None; plugins shape the pod unless it has too many containers."""
    pod = sample(job, task)
    if plugins and pod["spec"].get("containers") and len(containers(pod)) <= _MOST_SHAPED:
        anonymous = structs.replace(job, metadata=structs.replace(job.metadata, name=_ANY, uid=_ANY))
        with suppress(PluginError):  # the Job is refused by its plugins, or its status has the reason
            pod["spec"] = complete_pod(anonymous, PodSlot(task, 0, _ANY), plugins)["spec"]

    def own(field: str) -> str | None:
        of_job = job.spec.priority_class_name and not mapping(task.template.get("spec")).get("priorityClassName")
        if of_job and field == "spec.priorityClassName":
            return field
        place = field if field.startswith("metadata") else translated(field, pod, task.template)
        return f"{path}.{place}" if place else None

    return Trial(pod, path, "spec.plugins", own)


def check_priority(job: Job, namespace: str, dry_runs: DryRuns) -> Iterator[FieldError]:
    """Check with one pod that the PriorityClass exists: without it, no further pod of the Job could be created."""
    if name := job.spec.priority_class_name:
        yield from missing_class("spec.priorityClassName", name, namespace, dry_runs)


def sample(job: Job, task: TaskSpec) -> Manifest:
    """Return a pod of this task as its template describes the pod, without changes by plugins."""
    pod = pod_to_try(task.template, task.name)
    if job.spec.priority_class_name and not pod["spec"].get("priorityClassName"):
        pod["spec"]["priorityClassName"] = job.spec.priority_class_name
    return pod


def reviewer(lookups: Lookups, framework: Framework) -> Handler:
    """Return the handler for Volcano Jobs.

    Pod templates are immutable, so they are tested only on CREATE. A new PriorityClass is also tested on UPDATE.
    """

    def review(request: admission.AdmissionRequest) -> ReviewVerdict:
        job = decode(request.object, Job)
        for task in job.spec.tasks:
            template_of(task.template)  # raises here, so that the checks below can rely on its shape
        if request.operation == "UPDATE":
            return _review_update(request, job, lookups.dry_runs)
        usable = lookups.queues_for(request.namespace)
        found = Findings([*check_job(job), *unusable_queue("spec.queue", job.spec.queue, usable)], warn(job))
        found.errors += wrong_scheduler("spec.schedulerName", job.spec.scheduler_name, queue_of(job.spec), usable)
        for index, task in enumerate(job.spec.tasks):
            spec, _, _ = template_of(task.template)
            place = f"spec.tasks[{index}].template.spec"
            found.errors += wrong_scheduler(f"{place}.schedulerName", spec.scheduler_name, queue_of(job.spec), usable)
            found.warnings += beyond_every_node(place, spec, queue_of(job.spec), usable)
        found.add(check_frameworks(job, framework))
        if lookups.dry_runs:
            may_know = partial(may_create_pods, request, lookups.rights)
            found.add(check_templates(job, request.namespace, lookups.dry_runs, may_know))
        return ReviewVerdict.found(found)

    return review


def _review_update(request: admission.AdmissionRequest, job: Job, dry_runs: DryRuns | None) -> ReviewVerdict:
    old, new = generic(request.old_object), generic(request.object)
    if job.metadata.deletion_timestamp:
        return ReviewVerdict()
    warnings = [*unmoved(row(JOBS), old, new)]
    if same(old.get("spec"), new.get("spec")):
        return ReviewVerdict(warnings=warnings)  # it must be possible to remove a finalizer
    before = _check_changed(decode(request.old_object, Job))
    errors = [*check_update(old, new), *_check_changed(job).since(before).errors]
    if not is_controller(request, owned=job.metadata.controller is not None):  # Muster's controller may
        errors += fixed_sizes(row(JOBS), old, new)
    if dry_runs and job.spec.priority_class_name != (old.get("spec") or {}).get("priorityClassName"):
        errors += check_priority(job, request.namespace, dry_runs)
    return ReviewVerdict(errors=errors, warnings=warnings)


def _check_changed(job: Job) -> Findings:
    """Check the rules for mutable fields, which apply on CREATE and UPDATE."""
    return Findings([*check_counts(job), *check_tasks(job), *check_names(job)])


def check_job(job: Job) -> list[FieldError]:
    """Return all errors of a new Job, except for its queue."""
    if not job.spec.tasks:
        message = "No task specified in job spec; add at least one, with a name, replicas and a template"
        return [FieldError("spec.tasks", message, reason="Required"), *check_names(job)]
    return [
        *check_names(job),
        *check_limits(job.spec),
        *check_counts(job),
        *check_tasks(job),
        *check_policies(job.spec.policies, "spec.policies"),
        *check_dependencies(job.spec.tasks),
        *check_volumes(job.spec.volumes),
        *plugins.check_plugins(job),
        *check_budgets(job.metadata.annotations, "metadata.annotations", one=False),
        *budget_mistakes(job.metadata.annotations, "metadata.annotations"),
        *check_pods_of_tasks(job),
    ]


def warn(job: Job) -> list[str]:
    """Return warnings about valid settings that do not have the effect which users probably expect."""
    unknown = sorted(compat(job.metadata) - set(QUIRKS))
    result = list(plugins.warnings(job))
    if unknown:
        path = f"metadata.annotations[{names.COMPAT}]"
        result.append(
            f"{path}: {', '.join(unknown)} is unknown and has no effect; known values are {', '.join(QUIRKS)}"
        )
    result += unknown_keys({"labels": job.metadata.labels, "annotations": job.metadata.annotations})
    if names.RESTART_BUDGET in job.metadata.annotations and not _restarts(job):
        path = f"metadata.annotations[{names.RESTART_BUDGET}]"
        result.append(
            f"{path}: has no effect, because no policy of the Job restarts pods; add one, such as PodFailed: RestartJob"
        )
    for index, task in enumerate(job.spec.tasks):
        if len(result) >= MOST_WARNINGS:
            break
        path = f"spec.tasks[{index}]"
        result += unknown_keys(task.template.get("metadata"), f"{path}.template.metadata", job.metadata.labels)
        if task.topology_policy not in {"", "none"}:
            result.append(f"{path}.topologyPolicy: has no effect: the kubelet's topologyManagerPolicy decides")
    if job.spec.scheduler_name and not is_musters(job.spec.scheduler_name):
        result.append(
            f"spec.schedulerName: {job.spec.scheduler_name!r} is not a scheduler of Muster's: the pods will not be "
            f"placed together; leave it out, or use {names.VOLCANO_SCHEDULER!r}"
        )
    return result


def _restarts(job: Job) -> bool:
    policies = (*job.spec.policies, *(policy for task in job.spec.tasks for policy in task.policies))
    return any(policy.action.startswith("Restart") for policy in policies)


def check_update(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[FieldError]:
    """Yield an error for each immutable field that differs."""
    before, after = _without_mutable(old), _without_mutable(new)
    tasks_before, tasks_after = before.get("tasks", []), after.get("tasks", [])
    if len(tasks_before) != len(tasks_after):
        message = f"job updates may not add or remove tasks: there were {len(tasks_before)}"
        yield FieldError("spec.tasks", message, len(tasks_after))
        before["tasks"] = after["tasks"] = []
    for path in _differences(before, after, "spec"):
        yield FieldError(path, _FIXED, reason="Forbidden")


def _without_mutable(job: Mapping[str, Any]) -> dict[str, Any]:
    """Return the canonical spec without mutable fields and without defaults from older versions of Muster."""
    spec = canonical(job.get("spec"))
    for name in MUTABLE:
        spec.pop(name, None)
    for index, task in enumerate(spec.get("tasks", [])):
        for name in MUTABLE_IN_TASK:
            task.pop(name, None)
        task.setdefault("name", f"default{index}")
    for each in (spec, *spec.get("tasks", [])):
        each.setdefault("maxRetry", DEFAULT_MAX_RETRY)
    return spec


def _differences(old: Any, new: Any, path: str, name: str = "spec") -> Iterator[str]:
    """Yield the path of each difference between two values, as deep as their structures are the same."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key in sorted({*old, *new}):
            where = f"{path}[{key}]" if name in _KEYED else f"{path}.{key}"
            yield from _differences(old.get(key), new.get(key), where, key)
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for index, (was, is_) in enumerate(zip(old, new, strict=True)):
            yield from _differences(was, is_, f"{path}[{index}]", "")
    elif old != new:
        yield path
