"""Dry runs of the first pod of each task of a Job, as plugins shape the pod; errors get the path of the task."""

from collections.abc import Iterator, Sequence
from contextlib import suppress

from msgspec import structs

from muster.api.fields import FieldError, Findings
from muster.api.limits import PODS, TASKS
from muster.api.unchecked import mapping
from muster.api.volcano.batch import Job, TaskSpec
from muster.volcano.manifests import Manifest, containers
from muster.volcano.plugins.base import JobPlugin, PluginError
from muster.volcano.plugins.registry import plugins_for
from muster.volcano.pods import complete_pod
from muster.volcano.tasks import PodSlot, total_replicas
from webhook.apiserver import DryRuns
from webhook.validate.trials import MayKnow, Trial, check_trials, missing_class, pod_to_try, translated

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
