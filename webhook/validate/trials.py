"""Dry runs of pods: the API server's own verdict on the pods of an object before they exist.

Thanks to dry runs, Muster does not repeat the API server's rules for valid pods in its own code. Dry runs also apply
the cluster's policies (Pod Security, limits, other webhooks). An exhausted quota is not an error of the object: its
pods will wait.

Dry runs use Muster's rights. Therefore, messages about a namespace's policies and quotas are quoted only to users with
the right to create pods there. All other users are informed only that such pods are refused, as they would be by the
Events of their Job.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from copy import copy
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, get_args

import msgspec
import structlog

from muster.api import names
from muster.api.fields import FieldError, Findings, Reason
from muster.api.kubernetes import admission, core, reviews
from muster.api.muster.creator import passed_on
from muster.api.unchecked import mapping
from muster.kube.errors import APIError, Forbidden, over_quota
from muster.volcano.manifests import Manifest
from webhook.apiserver import DryRuns, Rights
from webhook.senders import is_known

log = structlog.get_logger()

_NO_DRY_RUN = "does not support dry run"
_NOT_ALLOWED = 'cannot create resource "pods"'
_NO_CLASS = re.compile(r"no PriorityClass with name (\S+) was found")
_OPT_IN = frozenset({names.QUEUE, names.FRAMEWORK, names.GANG})

MAX_TRIED = 8
"""Maximum number of pod templates of one object that are tested by dry runs. Two rounds of parallel dry runs end within
the time limit of a review."""
_AT_ONCE = 4

_ADVICE = {
    True: "`kubectl auth can-i create pods -n {}`: a user with this right is shown the reason",
    False: "create such a pod with `kubectl create --dry-run=server -n {}`: a user with this right is shown the reason",
}
"""Advice on how to find the reason for a rejection; the key is True if the sender of the review is known."""

MayKnow = Callable[[], bool]
"""Function that returns True if the user may create pods in the namespace. The function is called only if an error
message would quote the namespace's policies or quotas."""


def may_create_pods(request: admission.AdmissionRequest, rights: Rights | None) -> bool:
    """Return True if the user may create pods; False if the review, and thus the user, may be forged."""
    action = reviews.ResourceAttributes(verb="create", resource=core.PODS.plural, namespace=request.namespace)
    return rights is None or (is_known() and rights.allows(request.user_info, action))


@dataclass(frozen=True, slots=True)
class QuotedError(FieldError):
    """An error that quotes the API server's message."""

    @property
    def cause(self) -> str:
        """The API server's message, which names the value and the problem."""
        return self.message


@dataclass(frozen=True, slots=True)
class Trial:
    """A pod for a dry run, and the fields of the user's object from which the pod is built."""

    pod: Manifest
    path: str
    """Field of the user's object to which a refusal of the whole pod belongs."""
    added: str
    """Field of the user's object that is responsible for parts of the pod which the user did not write."""
    own: Callable[[str], str | None]
    """Function that returns the user's own field for a field of the pod, or None if the user did not write the
    field."""


def pod_to_try(template: Mapping[str, Any], name: str, spec: Mapping[str, Any] | None = None) -> Manifest:
    """Return a pod from a template, with `spec` if it is given.

    The pod opts out of Muster, so that its dry run causes no further review.
    """
    metadata = mapping(template.get("metadata"))
    labels = {key: value for key, value in mapping(metadata.get("labels")).items() if key not in _OPT_IN}
    return {
        "metadata": {
            "generateName": f"{name}-",
            "labels": {**labels, names.MANAGED: "false"},
            "annotations": passed_on({}, mapping(metadata.get("annotations"))),
            **({"finalizers": metadata["finalizers"]} if metadata.get("finalizers") else {}),
        },
        "spec": dict(mapping(template.get("spec")) if spec is None else spec),
    }


def check_trials(trials: Iterable[Trial], namespace: str, dry_runs: DryRuns, may_know: MayKnow) -> Findings:
    """Return the API server's verdict on the first few different pods, with a warning about untested pods.

    Pods are generated one at a time and compared by their digests, because plugins make pods large.
    """
    tried: dict[bytes, list[Trial]] = {}
    untried: list[str] = []
    for trial in trials:
        key = _shape(trial.pod)
        if key in tried:
            tried[key].append(trial)
        elif len(tried) < MAX_TRIED:
            tried[key] = [trial]
        else:
            untried.append(trial.path)
    refusals = _attempts([alike[0].pod for alike in tried.values()], namespace, dry_runs)
    findings = Findings()
    for refusal, alike in zip(refusals, tried.values(), strict=True):
        if refusal:
            quoted = _nameless(refusal, alike[0].pod)
            for trial in alike:
                findings.add(_quoted(quoted, trial, namespace, may_know))
    if untried:
        findings.warnings.append(
            f"{untried[0]}: {len(untried)} pod templates were not tested: each test needs a call to the API "
            f"server, and at most {MAX_TRIED} different templates of an object are tested. Events will report "
            "errors in the other templates"
        )
    return findings


def _shape(pod: Mapping[str, Any]) -> bytes:
    """Return a digest of a pod without its name, to find pods that differ only in their names."""
    metadata = {key: value for key, value in pod["metadata"].items() if key != "generateName"}
    return sha256(msgspec.json.encode([metadata, pod["spec"]], order="deterministic")).digest()


def _attempts(pods: Sequence[Mapping[str, Any]], namespace: str, dry_runs: DryRuns) -> list[APIError | None]:
    """Return the API server's rejection of each pod; None for a pod that it would admit.

    A few dry runs are made in parallel, all of them within the deadline of the review.
    """
    if len(pods) <= 1:
        return [dry_runs.attempt(pod, namespace) for pod in pods]
    with ThreadPoolExecutor(min(_AT_ONCE, len(pods)), thread_name_prefix="dry-run") as pool:
        # The deadline is a context variable of this thread, so each call gets a copy of the context.
        calls = [pool.submit(copy_context().run, dry_runs.attempt, pod, namespace) for pod in pods]
        return [call.result() for call in calls]


def _nameless(refusal: APIError, pod: Mapping[str, Any]) -> APIError:
    """Return the refusal without the random suffix of the name that the API server has generated for the pod.

    With the suffix, every retry would report the same refusal as a new refusal.
    """
    name = pod["metadata"]["generateName"].removesuffix("-")
    made_up = re.compile(rf'"{re.escape(name)}-[a-z0-9]{{5}}"')
    same = copy(refusal)
    same.message = made_up.sub(f'"{name}"', refusal.message)
    return same


def _quoted(refusal: APIError, trial: Trial, namespace: str, may_know: MayKnow) -> Findings:
    """Return the part of a refusal that the user is allowed to see."""
    message = refusal.message
    if _NO_DRY_RUN in message:
        log.warning("a template could not be tested", namespace=namespace, template=trial.path, why=str(refusal))
        return Findings()
    if missing := _NO_CLASS.search(message):  # reveals nothing about the namespace
        return Findings([_no_class(trial.own("spec.priorityClassName") or trial.added, missing[1])])
    if not isinstance(refusal, Forbidden):
        return Findings([*_errors(refusal, trial)])
    if _NOT_ALLOWED in message:
        raise refusal  # Muster lacks the right, not the user
    why = "" if may_know() else _ADVICE[is_known()].format(namespace)
    if over_quota(refusal):
        waits = f", because of a quota of the namespace; {why}" if why else f": {message}"
        return Findings(warnings=[f"{trial.path}: the API server would not create these pods now{waits}"])
    hidden = FieldError(trial.path, f"the namespace does not admit such pods; {why}", reason="Forbidden")
    return Findings([hidden] if why else [*_errors(refusal, trial)])


def _errors(refusal: APIError, trial: Trial) -> Iterator[FieldError]:
    """Yield an error for each field that the API server names, or one error for the whole template."""
    causes = (refusal.details or {}).get("causes") or []
    fields = [cause for cause in causes if cause.get("field")]
    for cause in fields:
        word = str(cause.get("reason", "")).removeprefix("FieldValue")
        reason: Reason = word if word in get_args(Reason) else "Invalid"  # type: ignore[assignment]  # one of them
        field, message = cause["field"], cause.get("message") or str(refusal)
        field = field if field.startswith(("spec", "metadata")) else f"spec.{field}"
        where = trial.own(field)
        yield QuotedError(where or trial.added, message if where else f"{field} of its pods: {message}", reason=reason)
    if not fields:
        yield QuotedError(trial.path, f"the API server refuses such pods: {refusal.message}", reason="Forbidden")


_STEP = re.compile(r"\.?([^.\[\]]+)|\[([^\]]*)\]")


def translated(field: str, made: Any, given: Any) -> str | None:
    """Return the path in the user's part of a pod (`given`) that corresponds to a field of the generated pod (`made`).

    List indexes may differ, because plugins also add entries at the beginning of lists. Return None for a field that
    the user did not write.
    """
    result = ""
    for step in _STEP.finditer(field):
        if isinstance(made, list) and (step[2] or "").isdigit():
            entry = made[int(step[2])] if int(step[2]) < len(made) else None
            own = given if isinstance(given, list) else []
            place = next((index for index, each in enumerate(own) if each == entry or _same(each, entry)), None)
            if place is None:
                return None
            made, given = entry, own[place]
            result += f"[{place}]"
        else:
            made, given = (
                each.get(step[1] or step[2]) if isinstance(each, Mapping) else None for each in (made, given)
            )
            result += step[0]
    return None if given is None and made is not None else result


def _same(given: Any, made: Any) -> bool:
    """Return True for two entries of a list that have the same name."""
    return (
        isinstance(given, Mapping) and isinstance(made, Mapping) and given.get("name") == made.get("name") is not None
    )


def missing_class(path: str, name: str, namespace: str, dry_runs: DryRuns) -> Iterator[FieldError]:
    """Yield an error at this path if no PriorityClass has this name, because no pod could be created."""
    spec = {"containers": [{"name": "any", "image": "any"}], "priorityClassName": name}
    refusal = dry_runs.attempt(pod_to_try({"spec": spec}, "priority"), namespace)
    if refusal and _NO_CLASS.search(refusal.message):
        yield _no_class(path, name)


def _no_class(path: str, name: str) -> FieldError:
    why = f"no PriorityClass with name {name} was found"
    message = f"{why}, so no pod could be created; `kubectl get priorityclasses` lists them"
    return FieldError(path, message, name, "NotFound")
