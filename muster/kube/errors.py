"""What can go wrong when talking to an API server.

Exception
├── ConfigurationError      where the server is, or who we are, cannot be found out
└── APIError                a request did not succeed
    ├── Unreachable         no answer: network, time limit, TLS (status 0)
    ├── Undecodable         an answer that is not what the API promises (status 200)
    │   └── TooLarge        an answer of more bytes than are read
    ├── BadRequest          400
    ├── Unauthorized        401
    ├── Forbidden           403
    ├── NotFound            404
    ├── Conflict            409, or 422 in a patch: the object or its UID is not the one that was meant
    ├── AlreadyExists       409, the name is taken
    ├── Gone                410, the resource version or page is too old: list again
    ├── Invalid             422
    ├── TooManyRequests     429, and evictions that a disruption budget holds back
    └── ServerError         5xx
"""

# ruff: noqa: N818 - the names are the API server's own words for these answers

from typing import Any

import msgspec

from muster.api.kubernetes.meta import Status

_OVER_QUOTA = "exceeded quota"


class ConfigurationError(Exception):
    """No usable kubeconfig or service account; the message says which and what to do."""


class APIError(Exception):
    """A request that did not succeed.

    `status` is the HTTP code (0 without an answer), `reason` the API server's word for it, `message` its sentence and
    `where` the request. `retry_after_s` is how long the server wishes to be left alone, and `details` are what it says
    field by field, if it does.
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

    def __str__(self) -> str:
        what = " ".join(part for part in (str(self.status or ""), self.reason) if part)
        return ": ".join(part for part in (self.where, what, self.message) if part)


class Unreachable(APIError):
    """The API server did not answer."""


class Undecodable(APIError):
    """The API server's answer does not have the promised shape."""


class TooLarge(Undecodable):
    """The API server's answer has more bytes than are read."""


class BadRequest(APIError):
    """The request makes no sense to the API server."""


class Unauthorized(APIError):
    """The API server does not know who asks."""


class Forbidden(APIError):
    """We may not do that."""


class NotFound(APIError):
    """No such object, or no such kind."""


class Conflict(APIError):
    """The object has changed, or is another one than meant."""


class AlreadyExists(APIError):
    """The name is taken: by an earlier try of ours, or by somebody else's object."""


class Gone(APIError):
    """The resource version or continue token is too old."""


class Invalid(APIError):
    """The object breaks a rule; the message names the fields."""


class TooManyRequests(APIError):
    """Not now: the server is busy, or a disruption budget forbids an eviction."""


class ServerError(APIError):
    """The API server failed; the same request may succeed in a moment."""


def over_quota(error: APIError) -> bool:
    """Whether the object was refused only because a ResourceQuota of its namespace is used up now."""
    return isinstance(error, Forbidden) and _OVER_QUOTA in error.message


_BY_REASON: dict[str, type[APIError]] = {"AlreadyExists": AlreadyExists, "Expired": Gone, "Gone": Gone}
_BY_STATUS: dict[int, type[APIError]] = {
    400: BadRequest,
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    410: Gone,
    422: Invalid,
    429: TooManyRequests,
}
_SERVER_ERROR = 500
_SHOWN_CHARS = 500


def error_of(status: int, body: bytes, *, where: str = "", retry_after: str | None = None) -> APIError:
    """The error that an answer stands for; a body that is no Status (a proxy's, say) becomes the message."""
    try:
        answer = msgspec.json.decode(body, type=Status)
    except (msgspec.DecodeError, RecursionError):
        answer = Status(message=body[:_SHOWN_CHARS].decode(errors="replace").strip())
    code = status or answer.code
    kind = _BY_REASON.get(answer.reason) or _BY_STATUS.get(code)
    if kind is None:
        kind = ServerError if code >= _SERVER_ERROR else APIError
    if kind is Invalid and _is_another(answer):
        kind = Conflict
    return kind(
        answer.message,
        status=code,
        reason=answer.reason,
        where=where,
        retry_after_s=float(retry_after) if retry_after and retry_after.isascii() and retry_after.isdigit() else None,
        details=answer.details,
    )


def _is_another(answer: Status) -> bool:
    """Whether a patch that names a UID has met another object: to the API server that is a change of a fixed field."""
    causes = (answer.details or {}).get("causes") or []
    return any(cause.get("field") == "metadata.uid" for cause in causes)
