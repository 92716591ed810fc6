"""The envelope: an AdmissionReview's bytes in, a verdict, bytes out.

A body that is not a review is a `BadReviewError`, to which the API server applies the failure policy (Fail). A handler
that fails is answered with `allowed: false`: the webhook fails closed, and the reason stands in its log, not its
answer.

A review has the time that its URL gives it. A later answer is of no use, as the client has its error, and look-ups for
it would take the time of the next review.
"""

import re
import time
from base64 import b64encode
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import Any, Protocol, Self, TypeVar

import msgspec

from muster.api.fields import FieldError, Findings
from muster.api.kubernetes import admission, meta
from muster.kube.codec import decoder
from muster.kube.errors import Unreachable
from webhook.patch import Operation, Patch, Why

T = TypeVar("T")
K = TypeVar("K", bound="_HasSpec")

MAX_BODY_BYTES = 5 * 1024 * 1024
"""The API server takes an object of 3 MiB and stores one of 1.5, and the review of an update has both. Below that the
largest objects could be neither changed nor deleted."""
CONTENT_TYPE = "application/json"
API_VERSION = "admission.k8s.io/v1"
DEFAULT_S = 10.0
LOOKUP_S = 4.0
"""The most for one look-up: a review may need two."""
MARGIN_S = 0.5
"""Kept back for the answer itself."""
_MOST_CHARS = 32_768
"""Of the errors in an answer."""
MOST_WARNINGS = 100
"""Of an answer: more need not be computed."""
_MOST_OF_A_WARNING = 1_000
"""Characters. The API server passes on 4,096 bytes of them in all."""
_UNITS_S = {"ms": 0.001, "s": 1.0, "m": 60.0}
_TIMEOUT = re.compile(r"(?:^|&)timeout=([0-9]+)(ms|s|m)(?:&|$)", re.ASCII)
_end: ContextVar[float] = ContextVar("end of the review")

_REASONS = {
    HTTPStatus.SERVICE_UNAVAILABLE: "ServiceUnavailable",
    HTTPStatus.BAD_REQUEST: "BadRequest",
    HTTPStatus.TOO_MANY_REQUESTS: "TooManyRequests",
}
_REVIEW = msgspec.json.Decoder(admission.AdmissionReview)


@dataclass(frozen=True, slots=True)
class ReviewVerdict:
    """The decision of a handler: errors refuse, a patch changes, warnings are shown to the user either way."""

    errors: Sequence[FieldError] = ()
    patch: Sequence[Operation] = ()
    warnings: Sequence[str] = ()
    reasons: Sequence[Why] = ()
    """One for each operation of the patch."""
    refusal: HTTPStatus = HTTPStatus.UNPROCESSABLE_ENTITY
    """The code of a refusal; clients of Kubeflow Trainer expect FORBIDDEN from a webhook."""

    @classmethod
    def of(cls, patch: Patch, warnings: Sequence[str] = ()) -> Self:
        """Admit the object with this patch."""
        return cls(patch=patch.operations, reasons=patch.reasons, warnings=warnings)

    @classmethod
    def found(cls, findings: Findings) -> Self:
        """Refuse the object for these errors, and show these warnings."""
        return cls(errors=findings.errors, warnings=findings.warnings)

    @property
    def outcome(self) -> str:
        """One word for metrics and logs."""
        return "denied" if self.errors else "patched" if self.patch else "allowed"


Handler = Callable[[admission.AdmissionRequest], ReviewVerdict]


class BadReviewError(Exception):
    """The body is not an AdmissionReview that can be answered; the message says why."""


class _HasSpec(Protocol):
    """An object with a spec."""

    metadata: meta.ObjectMeta
    spec: Any


class MalformedError(Exception):
    """The object in the review does not have the shape of its kind; the message says where."""


def read(body: bytes) -> admission.AdmissionRequest:
    """Return the request in a review; raises `BadReviewError`."""
    try:
        review = _REVIEW.decode(body)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        raise BadReviewError(f"the body is not an AdmissionReview: {error}") from error
    if (review.api_version, review.kind) != (API_VERSION, "AdmissionReview"):
        raise BadReviewError(f"expected {API_VERSION} AdmissionReview, got {review.api_version} {review.kind}")
    if review.request is None or not review.request.uid:
        raise BadReviewError("the review has no request with a uid")
    return review.request


def reviewer_of(kind: type[K], check: Callable[[K], Findings]) -> Handler:
    """Return the handler for a kind whose objects are checked alone, on CREATE and UPDATE.

    An update is admitted unchecked if the spec stays, or the object is being deleted.
    """

    def review(request: admission.AdmissionRequest) -> ReviewVerdict:
        reviewed = decode(request.object, kind)
        if request.operation == "UPDATE" and (
            reviewed.metadata.deletion_timestamp or decode(request.old_object, kind).spec == reviewed.spec
        ):
            return ReviewVerdict()
        return ReviewVerdict.found(check(reviewed))

    return review


def decode(raw: msgspec.Raw, kind: type[T]) -> T:
    """Return the object of a review as a `kind`; raises `MalformedError`.

    A field with null counts as absent, as for the API server: it keeps `annotations: null` of a custom object that was
    applied with an empty map.
    """
    try:
        return decoder(kind).decode(raw)
    except msgspec.ValidationError as error:
        if b"null" not in bytes(raw):
            raise MalformedError(str(error)) from error
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        raise MalformedError(str(error)) from error
    try:
        return decoder(kind).decode(msgspec.json.encode(without_nulls(msgspec.json.decode(raw))))
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        raise MalformedError(str(error)) from error


def without_nulls(node: Any) -> Any:
    """Return a copy of JSON without the members of objects that are null."""
    if isinstance(node, dict):
        return {key: without_nulls(member) for key, member in node.items() if member is not None}
    return [without_nulls(each) for each in node] if isinstance(node, list) else node


def generic(raw: msgspec.Raw) -> dict[str, Any]:
    """Return the object of a review as plain JSON; raises `MalformedError` if it is not a JSON object."""
    return decode(raw, dict[str, Any])


def answer(request: admission.AdmissionRequest, verdict: ReviewVerdict) -> bytes:
    """Return the review with the verdict, for the API server."""
    warnings = [warning[:_MOST_OF_A_WARNING] for warning in verdict.warnings[:MOST_WARNINGS]] or None
    response = admission.AdmissionResponse(uid=request.uid, allowed=not verdict.errors, warnings=warnings)
    if verdict.errors:
        response.status = _refusal(request, verdict)
    elif verdict.patch:
        response.patch = b64encode(msgspec.json.encode(verdict.patch)).decode()
        response.patch_type = "JSONPatch"
    return _encode(response)


def failure(request: admission.AdmissionRequest, code: HTTPStatus, message: str) -> bytes:
    """Return the review that refuses because there is no decision."""
    status = admission.ReviewStatus(message=message, reason=_REASONS.get(code, "InternalError"), code=code)
    return _encode(admission.AdmissionResponse(uid=request.uid, allowed=False, status=status))


def _refusal(request: admission.AdmissionRequest, verdict: ReviewVerdict) -> admission.ReviewStatus:
    """Return all errors, once as one message and once as causes that clients can show field by field.

    Of very many, or very long ones, as much as fits in `_MOST_CHARS`: a text of megabytes is not read.
    """
    code = verdict.refusal
    shown, left = _shown(verdict.errors)
    causes = [
        admission.StatusCause(reason=f"FieldValue{error.reason}", message=error.cause, field=error.path)
        for error in shown
    ]
    details = admission.StatusDetails(
        name=request.name, group=request.kind.group, kind=request.kind.kind, causes=causes
    )
    message = "; ".join(map(str, shown)) + (f"; and {left} more errors" if left else "")
    reason = "Forbidden" if code == HTTPStatus.FORBIDDEN else "Invalid"
    return admission.ReviewStatus(message=message, reason=reason, code=code, details=details)


def _shown(errors: Sequence[FieldError]) -> tuple[list[FieldError], int]:
    """Return the errors that are shown, and the number of others; a single one that is too long is cut."""
    shown: list[FieldError] = []
    chars = 0
    for error in errors:
        chars += len(str(error))
        if chars > _MOST_CHARS:
            break
        shown.append(error)
    if not shown:
        first = errors[0]
        half = _MOST_CHARS // 2
        shown = [replace(first, path=first.path[:half], message=first.message.strip()[:half])]
    return shown, len(errors) - len(shown)


def _encode(response: admission.AdmissionResponse) -> bytes:
    return msgspec.json.encode(admission.AdmissionReview(response=response))


@contextmanager
def deadline(query: str) -> Iterator[None]:
    """Set the end of a review while it lasts, from the query of its URL (`timeout=10s`)."""
    match = _TIMEOUT.search(query)
    given = float(match[1]) * _UNITS_S[match[2]] if match else DEFAULT_S
    token = _end.set(time.monotonic() + min(given, DEFAULT_S))
    try:
        yield
    finally:
        _end.reset(token)


def time_left(longest_s: float = LOOKUP_S) -> float:
    """Return the timeout of a look-up, at most `longest_s`; raises Unreachable when no time is left for one."""
    end = _end.get(None)
    left = longest_s if end is None else end - time.monotonic() - MARGIN_S
    if left <= 0:
        raise Unreachable("no time is left for a look-up", where="review")
    return min(left, longest_s)
