"""Trials of pods: the API server's own verdict on the pods of an object before they exist.

No rule of pod validation is written twice, and the cluster's policies (Pod Security, limits, other webhooks) are heard
too. A quota that is used up now is no mistake of the object: its pods will wait.

Pods are tried with Muster's rights. So the policies and quotas of a namespace are quoted only to users who could try a
pod there themselves; others learn that such pods are refused, and the events of their Job do not say more either.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from copy import copy
from dataclasses import dataclass
from typing import Any, get_args

import msgspec
import structlog

from muster.api.fields import FieldError, Findings, Reason
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


def shape(pod: Mapping[str, Any]) -> bytes:
    """Return a key that is equal for pods that differ in nothing but their name."""
    metadata = {key: value for key, value in pod["metadata"].items() if key != "generateName"}
    return msgspec.json.encode([metadata, pod["spec"]], order="deterministic")


def attempts(pods: Sequence[Mapping[str, Any]], namespace: str, dry_runs: DryRuns) -> list[APIError | None]:
    """Return the refusal of each pod, a few calls at a time, each within the deadline of the review."""
    if len(pods) <= 1:
        return [dry_runs.attempt(pod, namespace) for pod in pods]
    with ThreadPoolExecutor(min(_AT_ONCE, len(pods)), thread_name_prefix="dry-run") as pool:
        # The deadline is a context variable of this thread, so each call gets a copy of the context.
        calls = [pool.submit(copy_context().run, dry_runs.attempt, pod, namespace) for pod in pods]
        return [call.result() for call in calls]


def nameless(refusal: APIError, task: str) -> APIError:
    """Return the refusal without the name that the API server made up for the pod.

    It is another one each time, so that the same refusal would be news whenever something is tried again.
    """
    made_up = re.compile(rf'"{re.escape(task)}-[a-z0-9]{{5}}"')
    same = copy(refusal)
    same.message = made_up.sub(f'"{task}"', refusal.message)
    return same


def quoted(refusal: APIError, path: str, namespace: str, may_know: MayKnow) -> Findings:
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


def missing_class(
    path: str, name: str, pod: Mapping[str, Any], namespace: str, dry_runs: DryRuns
) -> Iterator[FieldError]:
    """Yield an error at this path if there is no PriorityClass of this name; `pod` is tried with it."""
    refusal = dry_runs.attempt({**pod, "spec": {**pod["spec"], "priorityClassName": name}}, namespace)
    if refusal and _NO_CLASS in refusal.message:
        message = f"{_NO_CLASS} {name} was found, so no pod could be created; `kubectl get priorityclasses` lists them"
        yield FieldError(path, message, name, "NotFound")


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
