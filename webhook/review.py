"""The envelope of reviews: decoding AdmissionReviews and encoding verdicts.

A body that is not an AdmissionReview causes a `BadReviewError`, to which the API server applies the failure policy
(Fail). If a handler fails, the response is `allowed: false`, because the webhook fails closed. The log, not the
response, contains the cause.

The URL of a review contains the timeout. A response after the timeout is useless, because the client has already
received an error. Further look-ups would only delay the next review.
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
"""Maximum size of a request's body, in bytes. The API server accepts objects of 3 MiB and stores 1.5 MiB, and the
review of an update contains both versions. With a lower limit, clients could neither change nor delete the largest
objects."""
CONTENT_TYPE = "application/json"
UNREADABLE = (msgspec.MsgspecError, RecursionError, UnicodeDecodeError)
"""Errors that can occur while the body of a request is decoded."""
API_VERSION = "admission.k8s.io/v1"
DEFAULT_S = 10.0
LOOKUP_S = 4.0
"""Maximum time for one look-up, in seconds; a review may need two look-ups."""
MARGIN_S = 0.5
"""Time, in seconds, that remains reserved for the response."""
_MOST_CHARS = 32_768
"""Maximum length of the errors in a response."""
MOST_WARNINGS = 100
"""Maximum number of warnings in a response; further warnings are not computed."""
_MOST_OF_A_WARNING = 1_000
"""Maximum length of a warning, in characters. The API server forwards at most 4,096 bytes of warnings in total."""
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
    """The decision of a handler.

    An object with errors is refused; otherwise, the patch is applied to the object. Warnings are shown to the user in
    both cases.
    """

    errors: Sequence[FieldError] = ()
    patch: Sequence[Operation] = ()
    warnings: Sequence[str] = ()
    reasons: Sequence[Why] = ()
    """The reason for each operation of the patch, in the same order."""
    refusal: HTTPStatus = HTTPStatus.UNPROCESSABLE_ENTITY
    """The HTTP status code of a refusal; clients of Kubeflow Trainer expect FORBIDDEN from its webhook."""

    @classmethod
    def admitted_with(cls, patch: Patch, warnings: Sequence[str] = ()) -> Self:
        """Return a verdict that admits the object with this patch."""
        return cls(patch=patch.operations, reasons=patch.reasons, warnings=warnings)

    @classmethod
    def found(cls, findings: Findings) -> Self:
        """Return a verdict that refuses the object if errors were found, and shows the warnings in any case."""
        return cls(errors=findings.errors, warnings=findings.warnings)

    @property
    def outcome(self) -> str:
        """The outcome of the review as one word, for metrics and logs."""
        return "denied" if self.errors else "patched" if self.patch else "allowed"


Handler = Callable[[admission.AdmissionRequest], ReviewVerdict]


class BadReviewError(Exception):
    """Error for a body that is not a valid AdmissionReview; the message explains why."""


class _HasSpec(Protocol):
    """An object with a spec."""

    metadata: meta.ObjectMeta
    spec: Any


class MalformedError(Exception):
    """Error for a malformed object in a review; the message names the field."""


def read(body: bytes) -> admission.AdmissionRequest:
    """Return the request in a review; raise `BadReviewError` if the body is not a review."""
    try:
        review = _REVIEW.decode(body)
    except UNREADABLE as error:
        raise BadReviewError(f"the body is not an AdmissionReview: {error}") from error
    if (review.api_version, review.kind) != (API_VERSION, "AdmissionReview"):
        raise BadReviewError(f"expected {API_VERSION} AdmissionReview, got {review.api_version} {review.kind}")
    if review.request is None or not review.request.uid:
        raise BadReviewError("the review has no request with a uid")
    return review.request


def reviewer_of(kind: type[K], check: Callable[[K], Findings]) -> Handler:
    """Return the handler that validates objects of this kind by `check`, on CREATE and UPDATE.

    An update is admitted without checks if the spec is unchanged, or if the object is being deleted.
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
    """Return the object of a review, decoded as a `kind`; raise `MalformedError` if it is malformed.

    A null field counts as missing. The API server keeps `annotations: null` in a custom object that was applied with an
    empty map.
    """
    try:
        return decoder(kind).decode(raw)
    except msgspec.ValidationError as error:
        if b"null" not in bytes(raw):
            raise MalformedError(str(error)) from error
    except UNREADABLE as error:
        raise MalformedError(str(error)) from error
    try:
        return decoder(kind).decode(msgspec.json.encode(without_nulls(msgspec.json.decode(raw))))
    except UNREADABLE as error:
        raise MalformedError(str(error)) from error


def without_nulls(node: Any) -> Any:
    """Return a copy of a JSON value without fields that are null."""
    if isinstance(node, dict):
        return {key: without_nulls(member) for key, member in node.items() if member is not None}
    return [without_nulls(each) for each in node] if isinstance(node, list) else node


def generic(raw: msgspec.Raw) -> dict[str, Any]:
    """Return the object of a review as JSON; raise `MalformedError` if it is not a JSON object."""
    return decode(raw, dict[str, Any])


def answer(request: admission.AdmissionRequest, verdict: ReviewVerdict) -> bytes:
    """Return the response for the API server: the review with the handler's verdict."""
    warnings = [warning[:_MOST_OF_A_WARNING] for warning in verdict.warnings[:MOST_WARNINGS]] or None
    response = admission.AdmissionResponse(uid=request.uid, allowed=not verdict.errors, warnings=warnings)
    if verdict.errors:
        response.status = _refusal(request, verdict)
    elif verdict.patch:
        response.patch = b64encode(msgspec.json.encode(verdict.patch)).decode()
        response.patch_type = "JSONPatch"
    return _encode(response)


def failure(request: admission.AdmissionRequest, code: HTTPStatus, message: str) -> bytes:
    """Return a response that rejects an object because its handler has failed."""
    status = admission.ReviewStatus(message=message, reason=_REASONS.get(code, "InternalError"), code=code)
    return _encode(admission.AdmissionResponse(uid=request.uid, allowed=False, status=status))


def _refusal(request: admission.AdmissionRequest, verdict: ReviewVerdict) -> admission.ReviewStatus:
    """Return all errors, both as one message and as causes that clients can show per field.

    The message is truncated to `_MOST_CHARS`, because an object can have very many or very long errors.
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
    """Return the errors to show, and the number of omitted errors; a single error that is too long is truncated."""
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
    """Set the deadline of the current review, from the query of its URL (`timeout=10s`)."""
    match = _TIMEOUT.search(query)
    given = float(match[1]) * _UNITS_S[match[2]] if match else DEFAULT_S
    token = _end.set(time.monotonic() + min(given, DEFAULT_S))
    try:
        yield
    finally:
        _end.reset(token)


def time_left(longest_s: float = LOOKUP_S) -> float:
    """Return the timeout of a look-up in seconds, at most `longest_s`; raise Unreachable if no time is left."""
    end = _end.get(None)
    left = longest_s if end is None else end - time.monotonic() - MARGIN_S
    if left <= 0:
        raise Unreachable("no time is left for a look-up", where="review")
    return min(left, longest_s)
