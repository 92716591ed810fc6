"""One of granian's embedded servers on a socket that it is given, and the requests and answers of an app behind it.

`muster.process.embedded` has servers take turns on a socket; nothing else starts one.
"""

import asyncio
import os
import socket
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple, Protocol

import structlog
from granian.constants import HTTPModes, Interfaces, SSLProtocols, TaskImpl
from granian.http import HTTP1Settings, HTTP2Settings
from granian.log import LogLevels
from granian.net import SocketHolder  # type: ignore[attr-defined] # granian does not say that it is for others
from granian.server.embed import Server

from muster.process.tls import Files, Material

log = structlog.get_logger()

MOST_CALLS = 40_000
"""Calls that are worked on at once; more wait in the socket. As many go over one connection of HTTP/2."""
BACKLOG = 4096
_IDLE_MS = 120_000
"""Go clients keep idle connections for 90 s; whoever closes first must not be the server."""
_BODY_BYTES = 16 * 1024 * 1024
_BODY_S = 10.0
_LOGGING: dict[str, Any] = {"incremental": True, "formatters": {}, "handlers": {}, "loggers": {"_granian": {}}}
"""Leaves all logging as it is, so that the server's own messages go the way of all others."""


class Headers(Protocol):
    """A request's headers; names are in lower case."""

    def get(self, name: str, default: str = "", /) -> str:
        """The first header of this name."""

    def __contains__(self, name: object, /) -> bool: ...


class Refused(Exception):  # noqa: N818 - it is an answer, not a failure
    """The body is not read; `answer` is what the client is told."""

    def __init__(self, status: HTTPStatus, why: str) -> None:
        super().__init__(why)
        self.answer = Answer(status, f"{why}\n".encode(), "text/plain; charset=utf-8")


class Answer(NamedTuple):
    """What the client gets."""

    status: HTTPStatus
    body: bytes
    content_type: str = "application/json"


class Request(NamedTuple):
    """One request. `host` is how the client calls this server; `body` reads it, once, and may raise `Refused`."""

    method: str
    path: str
    host: str
    headers: Headers
    body: Callable[[], Awaitable[bytes]]


App = Callable[[Request], Awaitable[Answer]]


class _Server(Server):
    """granian's server on a socket that it is given, instead of one of its own."""

    def __init__(self, app: App, sock: socket.socket, tls: Files | None) -> None:
        host, port = sock.getsockname()[:2]
        super().__init__(
            Target(app),
            address=host,
            port=port,
            interface=Interfaces.RSGI,
            http=HTTPModes.auto,
            task_impl=TaskImpl.asyncio,
            websockets=False,
            backlog=BACKLOG,
            backpressure=MOST_CALLS,
            http1_settings=HTTP1Settings(header_read_timeout=_IDLE_MS),
            http2_settings=HTTP2Settings(max_concurrent_streams=MOST_CALLS),
            log_level=LogLevels.error,
            log_dictconfig=_LOGGING,
            ssl_cert=tls.cert if tls else None,
            ssl_key=tls.key if tls else None,
            ssl_protocol_min=SSLProtocols.tls13,
            ssl_ca=tls.client_ca if tls else None,
            ssl_client_verify=tls is not None,
        )
        self._socket = sock

    def _init_shared_socket(self) -> None:
        # It closes what it is given.
        holder: Any = SocketHolder  # its types are those of an earlier version
        self._shd = holder(os.dup(self._socket.fileno()), False, BACKLOG)  # noqa: FBT003 - it is not a Unix socket


class Serving:
    """One server, from its making on; `task` ends with it. OSError if its files cannot be written."""

    def __init__(self, app: App, sock: socket.socket, material: Material | None) -> None:
        self._folder: TemporaryDirectory[str] | None = None
        tls = None
        if material:
            self._folder, tls = material.written()
        self._server = _Server(app, sock, tls)
        self.task: asyncio.Task[None] = asyncio.create_task(self._server.serve())

    def leave(self) -> None:
        """Accepts nothing any more; it ends when all calls that it has are answered."""
        self._server.stop()  # type: ignore[no-untyped-call]

    def forget(self) -> None:
        """Removes its files."""
        if self._folder:
            self._folder.cleanup()


class Target:
    """The app as granian calls it (RSGI)."""

    def __init__(self, app: App) -> None:
        self._app = app

    async def __rsgi__(self, scope: Any, protocol: Any) -> None:
        headers = scope.headers

        async def body() -> bytes:
            _check_length(headers.get("content-length", ""))
            try:
                async with asyncio.timeout(_BODY_S):
                    content: bytes = await protocol()
                    return content
            except TimeoutError:
                raise Refused(HTTPStatus.REQUEST_TIMEOUT, "the body did not come in time") from None

        # HTTP/2 has an authority instead of the header
        host = scope.authority or headers.get("host", "")
        try:
            answer = await self._app(Request(scope.method, scope.path, host, headers, body))
        except Refused as refused:
            answer = refused.answer
        except Exception:
            log.exception("a request was not answered", path=scope.path)
            answer = Answer(HTTPStatus.INTERNAL_SERVER_ERROR, b"see the log\n", "text/plain; charset=utf-8")
        protocol.response_bytes(answer.status.value, [("content-type", answer.content_type)], answer.body)


def _check_length(header: str) -> None:
    """A body whose length is not said, or is too much, is not read."""
    if not header.isdecimal() or not header.isascii():
        raise Refused(HTTPStatus.LENGTH_REQUIRED, "say the length of the body, as Content-Length")
    if len(header) > len(str(_BODY_BYTES)) or int(header) > _BODY_BYTES:
        raise Refused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"the body has more than {_BODY_BYTES} bytes")
