"""The API server's own verdict on the pod templates of a Job: one pod of each is tried, its errors get the task's path.

No rule of pod validation is written twice, and the cluster's policies (Pod Security, limits, other webhooks) are heard
too. A quota that is used up now is no mistake of the Job: its pods will wait.

Pods are tried with Muster's rights. So the policies and quotas of a namespace are quoted only to users who could try a
pod there themselves. Others learn that such pods are refused, and the events of their Job do not say more either.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from copy import copy
from dataclasses import dataclass
from itertools import islice
from typing import Any, get_args

import msgspec
import structlog

from muster.api import names
from muster.api.fields import FieldError, Findings, Reason
from muster.api.muster.creator import passed_on
from muster.api.unchecked import mapping
from muster.api.volcano.batch import Job, TaskSpec
from muster.kube.errors import APIError, Forbidden, over_quota
from webhook.apiserver import DryRuns
from webhook.senders import is_known

log = structlog.get_logger()

_NO_DRY_RUN = "does not support dry run"
_NOT_ALLOWED = 'cannot create resource "pods"'
_NO_CLASS = "no PriorityClass with name"

MAX_TRIED = 8
"""Templates of one Job that are tried: two rounds of calls end within a review."""
_AT_ONCE = 4

_ADVICE = {
    True: "`kubectl auth can-i create pods -n {}`: a user who may gets the reason",
    False: "try such a pod by `kubectl create --dry-run=server -n {}`: a user who may create it gets the reason",
}
"""By the sender's being known."""

MayKnow = Callable[[], bool]
"""True if the user may create pods in the namespace; called only where a refusal would quote the namespace."""


@dataclass(frozen=True, slots=True)
class QuotedError(FieldError):
    """An error in the API server's words."""

    @property
    def cause(self) -> str:
        """The API server's words as they came: they name the value and what is wrong with it."""
        return self.message


def check_templates(job: Job, namespace: str, dry_runs: DryRuns, may_know: MayKnow = lambda: True) -> Findings:
    """Return the API server's verdict on the first of the Job's different templates, with a warning of the rest."""
    samples = [sample(job, task) for task in job.spec.tasks]
    shapes = [_shape(pod) for pod in samples]
    first: dict[bytes, dict[str, Any]] = {}
    for shape, pod in zip(shapes, samples, strict=True):
        first.setdefault(shape, pod)
    tried = dict(islice(first.items(), MAX_TRIED))
    refusals = dict(zip(tried, _try([*tried.values()], namespace, dry_runs), strict=True))
    findings = Findings()
    for index, shape in enumerate(shapes):
        refusal = refusals.get(shape)
        if refusal:
            refusal = _nameless(refusal, job.spec.tasks[index].name)
            findings.add(_quoted(refusal, f"spec.tasks[{index}].template", namespace, may_know))
    untried = [index for index, shape in enumerate(shapes) if shape not in refusals]
    if untried:
        findings.warnings.append(
            f"spec.tasks[{untried[0]}].template: the templates of {len(untried)} tasks were not tried: of a Job only "
            f"{MAX_TRIED} different ones are, as each takes a call. If they are wrong, the Job's events will say so"
        )
    return findings


def _shape(pod: Mapping[str, Any]) -> bytes:
    """Return a key that is equal for pods that differ in nothing but their name."""
    metadata = {key: value for key, value in pod["metadata"].items() if key != "generateName"}
    return msgspec.json.encode([metadata, pod["spec"]], order="deterministic")


def _try(pods: Sequence[Mapping[str, Any]], namespace: str, dry_runs: DryRuns) -> list[APIError | None]:
    """Return the refusal of each pod, a few calls at a time, each within the deadline of the review."""
    if len(pods) <= 1:
        return [dry_runs.attempt(pod, namespace) for pod in pods]
    with ThreadPoolExecutor(min(_AT_ONCE, len(pods)), thread_name_prefix="dry-run") as pool:
        # The deadline is a context variable of this thread, so each call gets a copy of the context.
        calls = [pool.submit(copy_context().run, dry_runs.attempt, pod, namespace) for pod in pods]
        return [call.result() for call in calls]


def _nameless(refusal: APIError, task: str) -> APIError:
    """Return the refusal without the name that the API server made up for the pod.

    It is another one each time, so that the same refusal would be news whenever something is tried again.
    """
    made_up = re.compile(rf'"{re.escape(task)}-[a-z0-9]{{5}}"')
    same = copy(refusal)
    same.message = made_up.sub(f'"{task}"', refusal.message)
    return same


def _quoted(refusal: APIError, path: str, namespace: str, may_know: MayKnow) -> Findings:
    """Return a refusal as far as the user may read it."""
    if _NO_DRY_RUN in refusal.message:
        log.warning("a template could not be tried", namespace=namespace, template=path, why=str(refusal))
        return Findings()
    if not isinstance(refusal, Forbidden):
        return Findings([*_errors(refusal, path)])
    if _NOT_ALLOWED in refusal.message:
        raise refusal  # Muster lacks the right, not the user
    quota = over_quota(refusal)
    # A missing PriorityClass is a matter of the cluster, not of the namespace.
    if not (_NO_CLASS in refusal.message or may_know()):
        ask = _ADVICE[is_known()].format(namespace)
        if quota:
            return Findings(warnings=[f"{path}: pods would have to wait now, for a quota of the namespace; {ask}"])
        message = f"the namespace does not admit such pods; {ask}"
        return Findings([FieldError(path, message, reason="Forbidden")])
    if quota:
        return Findings(warnings=[f"{path}: pods would have to wait now: {refusal.message}"])
    return Findings([*_errors(refusal, path)])


def check_priority(job: Job, namespace: str, dry_runs: DryRuns) -> Iterator[FieldError]:
    """Check by one pod that the PriorityClass exists, without which no pod of the Job could be created any more."""
    name = job.spec.priority_class_name
    if name and job.spec.tasks:
        yield from missing_class("spec.priorityClassName", name, sample(job, job.spec.tasks[0]), namespace, dry_runs)


def missing_class(
    path: str, name: str, pod: Mapping[str, Any], namespace: str, dry_runs: DryRuns
) -> Iterator[FieldError]:
    """Yield an error at this path if there is no PriorityClass of this name; `pod` is tried with it."""
    refusal = dry_runs.attempt({**pod, "spec": {**pod["spec"], "priorityClassName": name}}, namespace)
    if refusal and _NO_CLASS in refusal.message:
        message = f"{_NO_CLASS} {name} was found, so no pod could be created; `kubectl get priorityclasses` lists them"
        yield FieldError(path, message, name, "NotFound")


def sample(job: Job, task: TaskSpec) -> dict[str, Any]:
    """Return a pod of this task as far as the template says; it opts out of Muster, so that no review follows."""
    template = task.template
    metadata, spec = mapping(template.get("metadata")), dict(mapping(template.get("spec")))
    ours = {names.QUEUE, names.FRAMEWORK, names.GANG}
    labels = {key: value for key, value in mapping(metadata.get("labels")).items() if key not in ours}
    if job.spec.priority_class_name and not spec.get("priorityClassName"):
        spec["priorityClassName"] = job.spec.priority_class_name
    return {
        "metadata": {
            "generateName": f"{task.name}-",
            "labels": {**labels, names.MANAGED: "false"},
            "annotations": passed_on({}, mapping(metadata.get("annotations"))),
            **({"finalizers": metadata["finalizers"]} if metadata.get("finalizers") else {}),
        },
        "spec": spec,
    }


def _errors(refusal: APIError, path: str) -> Iterator[FieldError]:
    """Yield an error for each field that the API server names, or one for the whole template."""
    causes = (refusal.details or {}).get("causes") or []
    fields = [cause for cause in causes if cause.get("field")]
    for cause in fields:
        word = str(cause.get("reason", "")).removeprefix("FieldValue")
        reason: Reason = word if word in get_args(Reason) else "Invalid"  # type: ignore[assignment]  # one of them
        field, message = cause["field"], cause.get("message") or refusal.message
        where = f"{path}.{field}" if field.startswith(("spec", "metadata")) else f"{path}.spec.{field}"
        yield QuotedError(where, message, reason=reason)
    if not fields:
        yield QuotedError(path, f"the API server refuses such pods: {refusal.message}", reason="Forbidden")
