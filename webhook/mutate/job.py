"""Defaults of a Volcano Job, so that every reader finds the same values written down."""

from collections.abc import Sequence
from typing import Any

import msgspec

from muster.api import names
from muster.api.kubernetes.admission import AdmissionRequest
from muster.api.kubernetes.core import PodSpec
from muster.api.volcano.batch import Job, TaskSpec
from muster.volcano.defaults import max_retry, queue_of, scheduler_of, task_max_retry, task_name
from muster.volcano.plugins.registry import required
from muster.volcano.tasks import minimum, total_minimum
from webhook.config import ResourceGroup
from webhook.lookup import Namespaces
from webhook.mutate.optin import set_queue
from webhook.mutate.reapply import Reapply, keep_record, remember, restore
from webhook.mutate.resourcegroup import assign_groups, group_of_template
from webhook.mutate.scheduling import mark
from webhook.objects.canonical import same
from webhook.objects.documents import find
from webhook.patch import Patch, Why
from webhook.review import Handler, MalformedError, Verdict, generic

_DEFAULT = Why("left out", "default")
_IMPLIED = Why("another plugin cannot do without", "spec.plugins")
_LAST_APPLIED = ("metadata", "annotations", names.LAST_APPLIED)


def reviewer(
    namespaces: Namespaces | None = None, *, marks: bool = False, groups: Sequence[ResourceGroup] = ()
) -> Handler:
    """The handler for Volcano Jobs: defaults, `groups`, and with `marks` markers of the pods that Muster places.

    A Job without a queue takes that of its namespace, if `namespaces` are known.

    On CREATE whatever is missing is added; on UPDATE what creation had added and the update leaves out, since
    `kubectl apply` and `replace` send lists as the user wrote them. So a manifest can be applied again.

    An object that does not have a Job's shape is let through unchanged: the API server checks it against the CRD's
    schema next and names every wrong field, which is more than we could.
    """

    def review(request: AdmissionRequest) -> Verdict:
        try:
            document = generic(request.object)
            job = _read(document)
            old = generic(request.old_object) if request.operation == "UPDATE" else None
            if old is not None and job.metadata.deletion_timestamp:
                return Verdict()
            patch = _completed(job, document, old, request.namespace, groups, marks=marks)
            if namespaces:
                set_queue(job, old, request.namespace, namespaces, patch)
        except (MalformedError, msgspec.ValidationError):
            return Verdict()
        return Verdict(patch=patch.operations, reasons=patch.reasons)

    return review


def _read(document: dict[str, Any]) -> Job:
    return msgspec.convert(_with_names(document), Job)


def _completed(
    job: Job,
    document: dict[str, Any],
    old: dict[str, Any] | None,
    namespace: str,
    groups: Sequence[ResourceGroup],
    *,
    marks: bool,
) -> Patch:
    """Everything that is written into a Job; `old` is what an update replaces."""
    if old is not None and same(old, document):
        patch = Patch(document)
        keep_record(document, old, patch)
        return patch
    patch = defaulted(job, document, old)
    assign_groups(job, groups, namespace, patch, old)
    if marks:
        _mark(job, groups, namespace, patch)
    if old is None:
        remember(job, document, patch)
    else:
        keep_record(document, old, patch)
        restore(job, old, patch)
    return patch


def _mark(job: Job, groups: Sequence[ResourceGroup], namespace: str, patch: Patch) -> None:
    for index, task in enumerate(job.spec.tasks):
        spec = task.template.get("spec") or {}
        pod = msgspec.convert(spec, PodSpec)  # so that nobody below stumbles over its shape
        group = group_of_template(task.template, groups, namespace)
        chosen = (group.scheduler_name if group else "") or pod.scheduler_name or scheduler_of(job.spec)
        if chosen in names.SCHEDULERS:
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


def defaulted(job: Job, document: dict[str, Any], old: dict[str, Any] | None = None) -> Patch:
    """What is missing, written down; without operations when nothing is. `old` is what an update replaces."""
    patch = Patch(document) if old is None else Reapply(document, old)
    spec = job.spec
    if not spec.queue:
        patch.set("spec", "queue", value=queue_of(spec), why=_DEFAULT)
    if not spec.scheduler_name:
        patch.set("spec", "schedulerName", value=scheduler_of(spec), why=_DEFAULT)
    if not spec.max_retry:
        patch.set("spec", "maxRetry", value=max_retry(spec), why=_DEFAULT)
    for index, task in enumerate(spec.tasks):
        _default_task(patch, index, task)
    total = total_minimum(spec)
    if _leaves_minimum(document, old, total):
        patch.set("spec", "minAvailable", value=total, why=Why("the sum over the tasks", "default"))
    for plugin in required(spec.plugins):
        patch.set("spec", "plugins", plugin, value=[], why=_IMPLIED)
    return patch


def _leaves_minimum(document: dict[str, Any], old: dict[str, Any] | None, total: int) -> bool:
    """Whether the Job's minimum is ours to write. One that an update gives is kept, also 0, with one exception.

    `kubectl apply` keeps a minimum that its manifest does not have. One that was the sum over the tasks, and that no
    client has set, stays the sum over the tasks: a gang that grows starts as a whole, and one that shrinks can start.
    """
    given = find(document, ("spec", "minAvailable"))
    if given is None or given == total:
        return given is None
    if old is None:
        return not given
    kept = given == find(old, ("spec", "minAvailable")) and not _says_minimum(document)
    return kept and given == total_minimum(_read(old).spec)


def _says_minimum(document: dict[str, Any]) -> bool:
    """Whether some client has set the minimum.

    The API server notes who sets a field, not who says again what admission has filled in: kubectl notes that.
    """
    managers = find(document, ("metadata", "managedFields"))
    if isinstance(managers, list) and any(
        find(each, ("fieldsV1", "f:spec", "f:minAvailable")) is not None for each in managers
    ):
        return True
    return find(_last_applied(document), ("spec", "minAvailable")) is not None


def _last_applied(document: dict[str, Any]) -> Any:
    """The manifest that `kubectl apply` has sent; None without one that can be read."""
    try:
        return msgspec.json.decode(find(document, _LAST_APPLIED) or "null")
    except (TypeError, msgspec.DecodeError):
        return None


def _default_task(patch: Patch, index: int, task: TaskSpec) -> None:
    path = ("spec", "tasks", index)
    if not task.name:
        patch.set(*path, "name", value=task_name(index, task), why=_DEFAULT)
    if task.min_available is None:
        patch.set(*path, "minAvailable", value=minimum(task), why=Why("all of its pods, or its partitions", "default"))
    if not task.max_retry:
        patch.set(*path, "maxRetry", value=task_max_retry(task), why=_DEFAULT)
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
