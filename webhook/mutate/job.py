"""Defaults of a Volcano Job, so that every reader finds the same values written down."""

from typing import Any

import msgspec

from muster.api import names
from muster.api.admission import AdmissionRequest
from muster.api.batch import Job, TaskSpec
from muster.api.core import PodSpec
from webhook.mutate.mark import mark
from webhook.patch import Operation, Patch, Why
from webhook.review import Handler, MalformedError, Verdict, generic

DEFAULT_MAX_RETRY = 3
_DEFAULT = Why("left out", "default")
_IMPLIED = Why("another plugin cannot do without", "spec.plugins")
NEEDS_SERVICE = ("tensorflow", "mpi", "pytorch", "ray")


def reviewer(*, marks: bool = False) -> Handler:
    """The handler for Volcano Jobs, on CREATE: defaults, and with `marks` markers of the pods that Muster places.

    An object that does not have a Job's shape is let through unchanged: the API server checks it against the CRD's
    schema next and names every wrong field, which is more than we could.
    """

    def review(request: AdmissionRequest) -> Verdict:
        try:
            document = generic(request.object)
            job = msgspec.convert(_with_names(document), Job)
            patch = defaulted(job, document)
            if marks:
                _mark(job, patch)
        except (MalformedError, msgspec.ValidationError):
            return Verdict()
        return Verdict(patch=patch.operations, reasons=patch.reasons)

    return review


def _mark(job: Job, patch: Patch) -> None:
    for index, task in enumerate(job.spec.tasks):
        spec = task.template.get("spec") or {}
        pod = msgspec.convert(spec, PodSpec)  # so that nobody below stumbles over its shape
        if (pod.scheduler_name or job.spec.scheduler_name or names.VOLCANO_SCHEDULER) in names.SCHEDULERS:
            mark(spec, patch, "spec", "tasks", index, "template", "spec")


def _with_names(document: dict[str, Any]) -> dict[str, Any]:
    """The document without empty task names: the schema knows no such name, but they are ours to fill in."""
    spec = document.get("spec")
    tasks = spec.get("tasks") if isinstance(spec, dict) else None
    if not isinstance(spec, dict) or not isinstance(tasks, list):
        return document
    named = [
        {key: value for key, value in task.items() if (key, value) != ("name", "")} if isinstance(task, dict) else task
        for task in tasks
    ]
    return {**document, "spec": {**spec, "tasks": named}}


def defaults(job: Job, document: dict[str, Any]) -> list[Operation]:
    """Operations that write down what is missing; none when nothing is."""
    return defaulted(job, document).operations


def defaulted(job: Job, document: dict[str, Any]) -> Patch:
    """What is missing, written down; without operations when nothing is."""
    patch = Patch(document)
    spec = job.spec
    if not spec.queue:
        patch.set("spec", "queue", value=names.DEFAULT_QUEUE, why=_DEFAULT)
    if not spec.scheduler_name:
        patch.set("spec", "schedulerName", value=names.VOLCANO_SCHEDULER, why=_DEFAULT)
    if not spec.max_retry:
        patch.set("spec", "maxRetry", value=DEFAULT_MAX_RETRY, why=_DEFAULT)
    for index, task in enumerate(spec.tasks):
        _default_task(patch, index, task)
    total = sum(minimum(task) for task in spec.tasks)
    if not spec.min_available and total:
        patch.set("spec", "minAvailable", value=total, why=Why("the sum over the tasks", "default"))
    for plugin, arguments in _implied_plugins(spec.plugins).items():
        patch.set("spec", "plugins", plugin, value=arguments, why=_IMPLIED)
    return patch


def minimum(task: TaskSpec) -> int:
    """How many pods of a task must be there: what it says, else its whole minimum of partitions, else all."""
    if task.min_available is not None:
        return task.min_available
    partitions = task.partition_policy
    if partitions and partitions.min_partitions > 0:
        return partitions.min_partitions * partitions.partition_size
    return task.replicas


def _default_task(patch: Patch, index: int, task: TaskSpec) -> None:
    path = ("spec", "tasks", index)
    if not task.name:
        patch.set(*path, "name", value=f"default{index}", why=_DEFAULT)
    if task.min_available is None:
        patch.set(*path, "minAvailable", value=minimum(task), why=Why("all of its pods, or its partitions", "default"))
    if not task.max_retry:
        patch.set(*path, "maxRetry", value=DEFAULT_MAX_RETRY, why=_DEFAULT)
    pod = task.template.get("spec")
    if isinstance(pod, dict) and pod.get("hostNetwork") is True and not pod.get("dnsPolicy"):
        patch.set(
            *path,
            "template",
            "spec",
            "dnsPolicy",
            value="ClusterFirstWithHostNet",
            why=Why("it is on the host's network", "default"),
        )


def _implied_plugins(plugins: dict[str, list[str]]) -> dict[str, list[str]]:
    """Plugins that the given ones cannot work without."""
    implied: dict[str, list[str]] = {}
    if any(name in plugins for name in NEEDS_SERVICE) and "svc" not in plugins:
        implied["svc"] = []
    if "mpi" in plugins and "ssh" not in plugins:
        implied["ssh"] = []
    return implied
