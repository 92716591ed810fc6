"""The API server's own verdict on the pod templates of a Job: one pod of each is tried, its errors get the task's path.

Nothing of pod validation is written a second time, and what the cluster's policies say of such pods (Pod Security,
limits, other webhooks) is heard too. A quota that is used up now is no mistake of the Job's: its pods will wait.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, get_args

import structlog

from muster.api import names
from muster.api.batch import Job, TaskSpec
from muster.api.fields import FieldError, Findings, Reason
from muster.kube.errors import APIError, Forbidden
from webhook.dryrun import DryRuns
from webhook.objects.documents import mapping

log = structlog.get_logger()

_REASON_PREFIX = "FieldValue"
_QUOTA = "exceeded quota"
_NO_DRY_RUN = "does not support dry run"
_NOT_ALLOWED = 'cannot create resource "pods"'
_NO_CLASS = "no PriorityClass with name"


@dataclass(frozen=True, slots=True)
class ToldError(FieldError):
    """An error in the API server's words."""

    @property
    def cause(self) -> str:
        """The API server's words as they came: they say already what is wrong with which value."""
        return self.message


def check_templates(job: Job, namespace: str, dry_runs: DryRuns) -> Findings:
    """What the API server would say to the pods of this Job; raises APIError if it could not be asked."""
    findings = Findings()
    for index, task in enumerate(job.spec.tasks):
        path = f"spec.tasks[{index}].template"
        refusal = dry_runs.attempt(sample(job, task), namespace)
        if refusal is None:
            continue
        if isinstance(refusal, Forbidden) and _NOT_ALLOWED in refusal.message:
            raise refusal  # it is Muster that may not, not the user
        if isinstance(refusal, Forbidden) and _QUOTA in refusal.message:
            findings.warnings.append(f"{path}: pods would have to wait now: {refusal.message}")
        elif _NO_DRY_RUN in refusal.message:
            log.warning("a template could not be tried", namespace=namespace, job=job.metadata.name, why=str(refusal))
        else:
            findings.errors += _errors(refusal, path)
    return findings


def check_priority(job: Job, namespace: str, dry_runs: DryRuns) -> Iterator[FieldError]:
    """An error if there is no such PriorityClass: no pod of the Job could be created any more.

    One pod tells; what else would be said of it today is no matter of the priority. Raises APIError if the API server
    could not be asked.
    """
    name = job.spec.priority_class_name
    if not name or not job.spec.tasks:
        return
    yield from missing_class("spec.priorityClassName", name, sample(job, job.spec.tasks[0]), namespace, dry_runs)


def missing_class(
    path: str, name: str, pod: Mapping[str, Any], namespace: str, dry_runs: DryRuns
) -> Iterator[FieldError]:
    """An error at this path if pods like this one cannot have this PriorityClass, because there is none."""
    refusal = dry_runs.attempt({**pod, "spec": {**pod["spec"], "priorityClassName": name}}, namespace)
    if refusal and _NO_CLASS in refusal.message:
        message = f"{_NO_CLASS} {name} was found, so no pod could be created; `kubectl get priorityclasses` lists them"
        yield FieldError(path, message, name, "NotFound")


def sample(job: Job, task: TaskSpec) -> dict[str, Any]:
    """A pod of this task as far as the template says; it opts out of Muster, so that trying it asks nobody here."""
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
            "annotations": metadata.get("annotations") or {},
            **({"finalizers": metadata["finalizers"]} if metadata.get("finalizers") else {}),
        },
        "spec": spec,
    }


def _errors(refusal: APIError, path: str) -> Iterator[FieldError]:
    """One error for each field that the API server names, or one for the whole template."""
    causes = (refusal.details or {}).get("causes") or []
    fields = [cause for cause in causes if cause.get("field")]
    for cause in fields:
        word = str(cause.get("reason", "")).removeprefix(_REASON_PREFIX)
        reason: Reason = word if word in get_args(Reason) else "Invalid"  # type: ignore[assignment]  # one of them
        field, message = cause["field"], cause.get("message") or refusal.message
        where = f"{path}.{field}" if field.startswith(("spec", "metadata")) else f"{path}.spec.{field}"
        yield ToldError(where, message, reason=reason)
    if not fields:
        yield ToldError(path, f"the API server refuses such pods: {refusal.message}", reason="Forbidden")
