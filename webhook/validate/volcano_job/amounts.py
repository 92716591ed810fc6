"""The limits of a Volcano Job's amounts: what is over them is named, all at once."""

from collections.abc import Iterator

from muster.api.fields import FieldError
from muster.api.limits import PODS, POLICIES, RESOURCES, RETRIES, SECONDS, TASKS, VOLUMES
from muster.api.volcano.batch import Job, LifecyclePolicy, TaskSpec
from muster.resources.duration import parse_duration_s
from muster.resources.pods import resource_names
from muster.runtime.workload import template_of
from muster.volcano.tasks import total_replicas
from webhook.validate.gpus import check_gpus


def check_pods(job: Job) -> Iterator[FieldError]:
    """How many pods there are: all of them start together, or may have to."""
    before = len(job.spec.tasks)
    for index, task in enumerate(job.spec.tasks):
        for error in PODS.exceeded(f"spec.tasks[{index}].replicas", task.replicas):
            before = index
            yield error
    total = total_replicas(job.spec)
    if before == len(job.spec.tasks) and total > PODS.value:
        yield FieldError("spec.tasks", f"must have at most {PODS.value} {PODS.unit} (limit {PODS.name!r})", total)


def check_amounts_of(job: Job) -> Iterator[FieldError]:
    """Everything else that cannot change later, and what a Job may do how often and for how long."""
    spec = job.spec
    yield from TASKS.exceeded_by("spec.tasks", len(spec.tasks))
    yield from VOLUMES.exceeded_by("spec.volumes", len(spec.volumes))
    yield from RETRIES.exceeded("spec.maxRetry", spec.max_retry)
    yield from SECONDS.exceeded("spec.ttlSecondsAfterFinished", spec.ttl_seconds_after_finished or 0)
    yield from _check_policies(spec.policies, "spec.policies")
    for index, task in enumerate(spec.tasks):
        yield from _check_task(task, f"spec.tasks[{index}]")


def _check_task(task: TaskSpec, path: str) -> Iterator[FieldError]:
    yield from RETRIES.exceeded(f"{path}.maxRetry", task.max_retry)
    yield from _check_policies(task.policies, f"{path}.policies")
    pod, _, _ = template_of(task.template)
    yield from check_gpus(task.template, f"{path}.template")
    yield from RESOURCES.exceeded_by(f"{path}.template.spec.containers", len(resource_names(pod)))


def _check_policies(policies: list[LifecyclePolicy], path: str) -> Iterator[FieldError]:
    yield from POLICIES.exceeded_by(path, len(policies))
    for index, policy in enumerate(policies):
        try:
            seconds = parse_duration_s(policy.timeout or "0")
        except ValueError:
            continue  # told where policies are checked
        yield from SECONDS.exceeded(f"{path}[{index}].timeout", int(seconds))
