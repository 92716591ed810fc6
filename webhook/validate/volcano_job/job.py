"""A Volcano Job as a whole: what must hold on CREATE, and what may change on UPDATE."""

from collections.abc import Iterator

from msgspec.json import Decoder

from muster.api import names
from muster.api.admission import AdmissionRequest
from muster.api.batch import Job
from muster.api.compat import KNOWN, compat
from muster.api.fields import FieldError, Findings
from muster.runtime.framework import Framework
from muster.runtime.workload import template_of
from muster.volcano.plugins import registry as plugins
from muster.volcano.tasks import total_replicas
from webhook.dryrun import DryRuns
from webhook.lookup import Queues
from webhook.review import Handler, Verdict, decode, generic
from webhook.validate.disruption import check_amounts, check_one_of_two
from webhook.validate.queues.name import unusable_queue
from webhook.validate.topology import check_topology
from webhook.validate.volcano_job.amounts import check_amounts_of, check_pods
from webhook.validate.volcano_job.canonical import same
from webhook.validate.volcano_job.frameworks import check_frameworks
from webhook.validate.volcano_job.names import check_names
from webhook.validate.volcano_job.policies import check_policies
from webhook.validate.volcano_job.tasks import check_dependencies, check_task
from webhook.validate.volcano_job.templates import check_priority, check_templates
from webhook.validate.volcano_job.update import check_update
from webhook.validate.volcano_job.volumes import check_volumes

_JOB = Decoder(Job)


def reviewer(queues: Queues, framework: Framework, dry_runs: DryRuns | None = None) -> Handler:
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
            found.add(check_templates(job, request.namespace, dry_runs))
        return Verdict(errors=found.errors, warnings=found.warnings)

    return review


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
        *_check_budgets(job),
    ]


def warn(job: Job) -> list[str]:
    """What is allowed but will surprise."""
    result = [*plugins.warnings(job.spec.plugins), *_warn_compat(job)]
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


def _check_budgets(job: Job) -> Iterator[FieldError]:
    """Disruption budgets that the pods would be refused for."""
    yield from check_amounts(job.metadata.annotations, "metadata.annotations")
    for index, task in enumerate(job.spec.tasks):
        _, _, annotations = template_of(task.template)
        path = f"spec.tasks[{index}].template.metadata.annotations"
        yield from check_amounts(annotations, path)
        yield from check_one_of_two(annotations, path)


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
