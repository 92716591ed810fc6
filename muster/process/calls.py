"""What an app in this process's own event loop gets and gives, whatever server it comes through."""

from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import NamedTuple, Protocol

import structlog

log = structlog.get_logger()

BACKLOG = 4096
"""Connections that wait to be accepted."""
IDLE_S = 120.0
"""How long an idle connection is kept. Go's clients keep theirs for 90 s, and the server must not be the first."""
BODY_S = 10.0
"""How long a request may take to arrive."""
_BODY_BYTES = 16 * 1024 * 1024


class Headers(Protocol):
    """A request's headers; names are in lower case."""

    def get(self, name: str, default: str, /) -> str:
        """The first header of this name."""

    def __contains__(self, name: object, /) -> bool: ...


class Answer(NamedTuple):
    """What the client gets."""

    status: HTTPStatus
    body: bytes
    content_type: str = "application/json"


class Refused(Exception):  # noqa: N818 - it is an answer, not a failure
    """The body is not read; `answer` is what the client is told."""

    def __init__(self, status: HTTPStatus, why: str) -> None:
        super().__init__(why)
        self.answer = Answer(status, f"{why}\n".encode(), "text/plain; charset=utf-8")


class Request(NamedTuple):
    """One request. `host` is how the client calls this server; `body` reads it, once, and may raise `Refused`."""

    method: str
    path: str
    host: str
    headers: Headers
    body: Callable[[], Awaitable[bytes]]


App = Callable[[Request], Awaitable[Answer]]


async def answered(app: App, request: Request) -> Answer:
    """The app's answer; a refusal and a defect are answers, too."""
    try:
        return await app(request)
    except Refused as refused:
        return refused.answer
    except Exception:
        log.exception("a request was not answered", path=request.path)
        return Answer(HTTPStatus.INTERNAL_SERVER_ERROR, b"see the log\n", "text/plain; charset=utf-8")


def check_length(header: str) -> None:
    """A body whose length is not said, or is too much, is not read."""
    if not header.isdecimal() or not header.isascii():
        raise Refused(HTTPStatus.LENGTH_REQUIRED, "say the length of the body, as Content-Length")
    if len(header) > len(str(_BODY_BYTES)) or int(header) > _BODY_BYTES:
        raise Refused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"the body has more than {_BODY_BYTES} bytes")


def too_slow() -> Refused:
    """A request that did not arrive in time."""
    return Refused(HTTPStatus.REQUEST_TIMEOUT, f"the request did not come within {BODY_S:g} s")
