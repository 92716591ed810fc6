"""Errors of requests to an API server, warnings in its responses, and delays between attempts."""

# ruff: noqa: N818 - the names are the API server's own names for these responses

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import msgspec

from muster.api.kubernetes.meta import Status

_OVER_QUOTA = "exceeded quota"
_NAMESPACE_ENDS = "NamespaceTerminating"
_SILENT = re.compile(r'failed calling webhook "([^"]+)"')
"""Pattern of the API server's message about a webhook that did not respond. The message about a webhook that rejects a
request contains "denied the request" instead."""


class ConfigurationError(Exception):
    """No usable kubeconfig or service account; the message has the cause and a remedy."""


class APIError(Exception):
    """Base of the errors of a request that did not succeed.

    `status` is the HTTP code (0 without a response), and `where` describes the request. `reason` and `message` are the
    API server's. `retry_after_s` is the API server's requested delay before a retry, and `details` contains the cause
    for each field.
    """

    def __init__(
        self,
        message: str,
        *,
        status: int = 0,
        reason: str = "",
        where: str = "",
        retry_after_s: float | None = None,
        details: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.reason = reason
        self.message = message
        self.where = where
        self.retry_after_s = retry_after_s
        self.details = details

    @property
    def why(self) -> str:
        """The error's message without the API server's prefix about the webhook that rejected the request."""
        return self.message.rpartition("denied the request: ")[2]

    def __str__(self) -> str:
        what = " ".join(part for part in (str(self.status or ""), self.reason) if part)
        return ": ".join(part for part in (self.where, what, self.message) if part)


class Unreachable(APIError):
    """Status 0: no response was received, because of a network error, a timeout or a TLS error."""


class Undecodable(APIError):
    """A response that is malformed although the status is 200."""


class TooLarge(Undecodable):
    """A response that exceeds the size limit."""


class Refused(APIError):
    """4xx: the API server, a policy, a quota or a webhook rejects the object.

    The class itself is raised for the code 413 (the object is too large).
    """


class BadRequest(Refused):
    """400: the request is invalid, or a webhook has rejected the object without a status code."""


class Unauthorized(APIError):
    """401: the API server does not accept the credentials."""


class Forbidden(Refused):
    """403: the caller does not have the required right."""


class NamespaceEnds(APIError):
    """403: the namespace is being deleted, so no new objects are allowed. A retry cannot succeed."""


class NotFound(APIError):
    """404: no such object, or no such kind."""


class Conflict(APIError):
    """409, or 422 for a patch: the object has changed since it was read, or another object has its name now."""


class AlreadyExists(APIError):
    """409: an object with this name exists, from an earlier attempt or another client."""


class Gone(APIError):
    """410: the resource version or continue token has expired, so the objects must be listed again."""


class Invalid(Refused):
    """422: the object breaks a rule; the message names the fields."""


class TooManyRequests(APIError):
    """429: the server is busy, or a disruption budget forbids an eviction for now."""


class ServerError(APIError):
    """5xx: the API server failed; the same request may succeed in a moment."""


def over_quota(error: APIError) -> bool:
    """Return True if the only reason for the rejection is an exhausted ResourceQuota of the namespace."""
    return isinstance(error, Forbidden) and _OVER_QUOTA in error.message


def silent_webhook(error: APIError) -> str:
    """Return the name of the webhook that the API server could not call for a request; "" for any other error."""
    found = _SILENT.search(error.message) if isinstance(error, ServerError) else None
    return found[1] if found else ""


_BY_REASON: dict[str, type[APIError]] = {"AlreadyExists": AlreadyExists, "Expired": Gone, "Gone": Gone}
_BY_STATUS: dict[int, type[APIError]] = {
    400: BadRequest,
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    410: Gone,
    413: Refused,
    422: Invalid,
    429: TooManyRequests,
}
_SERVER_ERROR = 500
_SHOWN_CHARS = 500
# for example 299 - "what is wrong"; the text is quoted
_WARNING = re.compile(r'299 \S+ "((?:[^"\\]|\\.)*)"')
_ESCAPED = re.compile(r"\\(.)")


def error_of(status: int, body: bytes, *, where: str = "", retry_after: str | None = None) -> APIError:
    """Return the error for a response.

    If the response's body is not a Status, for example from a proxy, the body is the error's message.
    """
    try:
        answer = msgspec.json.decode(body, type=Status)
    except (msgspec.DecodeError, RecursionError):
        answer = Status(message=body[:_SHOWN_CHARS].decode(errors="replace").strip())
    code = status or answer.code
    kind = _BY_REASON.get(answer.reason) or _BY_STATUS.get(code)
    if kind is None:
        kind = ServerError if code >= _SERVER_ERROR else APIError
    causes = (answer.details or {}).get("causes") or []
    if kind is Forbidden and any(cause.get("reason") == _NAMESPACE_ENDS for cause in causes):
        kind = NamespaceEnds
    if kind is Invalid and any(cause.get("field") == "metadata.uid" for cause in causes):
        kind = Conflict  # a patch with another object's UID: for the API server, this changes an immutable field
    return kind(
        answer.message,
        status=code,
        reason=answer.reason,
        where=where,
        retry_after_s=float(retry_after) if retry_after and retry_after.isascii() and retry_after.isdigit() else None,
        details=answer.details,
    )


def warnings_of(headers: Iterable[str]) -> Iterator[str]:
    """Yield the sentences in the Warning headers of a response."""
    for header in headers:
        for quoted in _WARNING.findall(header):
            yield _ESCAPED.sub(r"\1", quoted).encode(errors="surrogateescape").decode(errors="replace")


class Backoff:
    """Delays that double from `first_s` up to `longest_s`; each delay is shortened randomly, by at most a half."""

    def __init__(self, first_s: float, longest_s: float, random: Callable[[], float]) -> None:
        self._first_s = first_s
        self._longest_s = longest_s
        self._random = random
        self._delay_s = first_s

    def next(self) -> float:
        """Return the seconds to wait now, and lengthen the next wait."""
        delay_s = self._delay_s
        self._delay_s = min(delay_s * 2, self._longest_s)
        return delay_s * (1 - self._random() / 2)

    def reset(self) -> None:
        """Start again with the delay `first_s`."""
        self._delay_s = self._first_s
