"""One of granian's servers over TLS, on a socket that it is given, and the requests and answers of an app behind it.

`muster.process.embedded` has servers take turns on a socket; nothing else starts one.
"""

import asyncio
import os
import socket
from typing import Any

from granian.constants import HTTPModes, Interfaces, SSLProtocols, TaskImpl
from granian.http import HTTP1Settings, HTTP2Settings
from granian.log import LogLevels
from granian.net import SocketHolder  # type: ignore[attr-defined] # granian does not say that it is for others
from granian.server.embed import Server

from muster.process import calls
from muster.process.calls import BACKLOG, IDLE_S, App, Request, answered, check_length, too_slow
from muster.process.tls import Material
from muster.process.tlsfiles import Files

MOST_CALLS = 40_000
"""Calls that are worked on at once; more wait in the socket. As many go over one connection of HTTP/2."""
_LOGGING: dict[str, Any] = {"incremental": True, "formatters": {}, "handlers": {}, "loggers": {"_granian": {}}}
"""Leaves all logging as it is, so that the server's own messages go the way of all others."""


class _Server(Server):
    """granian's server on a socket that it is given, instead of one of its own."""

    def __init__(self, app: App, sock: socket.socket, tls: Files) -> None:
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
            http1_settings=HTTP1Settings(header_read_timeout=round(IDLE_S * 1000)),
            http2_settings=HTTP2Settings(max_concurrent_streams=MOST_CALLS),
            log_level=LogLevels.error,
            log_dictconfig=_LOGGING,
            ssl_cert=tls.cert,
            ssl_key=tls.key,
            ssl_protocol_min=SSLProtocols.tls13,
            ssl_ca=tls.client_ca,
            ssl_client_verify=True,
        )
        self._socket = sock

    def _init_shared_socket(self) -> None:
        # It closes what it is given.
        holder: Any = SocketHolder  # its types are those of an earlier version
        self._shd = holder(os.dup(self._socket.fileno()), False, BACKLOG)  # noqa: FBT003 - it is not a Unix socket


class Serving:
    """One server, from its making on; `task` ends with it. OSError if its files cannot be written."""

    def __init__(self, app: App, sock: socket.socket, material: Material) -> None:
        self._folder, tls = material.written()
        self._server = _Server(app, sock, tls)
        self.task: asyncio.Task[None] = asyncio.create_task(self._server.serve())

    def leave(self) -> None:
        """Accepts nothing any more; it ends when all calls that it has are answered."""
        self._server.stop()  # type: ignore[no-untyped-call]

    def forget(self) -> None:
        """Removes its files."""
        self._folder.cleanup()


class Target:
    """The app as granian calls it (RSGI)."""

    def __init__(self, app: App) -> None:
        self._app = app

    async def __rsgi__(self, scope: Any, protocol: Any) -> None:
        headers = scope.headers

        async def body() -> bytes:
            check_length(headers.get("content-length", ""))
            try:
                async with asyncio.timeout(calls.BODY_S):
                    content: bytes = await protocol()
                    return content
            except TimeoutError:
                raise too_slow() from None

        # HTTP/2 has an authority instead of the header
        host = scope.authority or headers.get("host", "")
        answer = await answered(self._app, Request(scope.method, scope.path, host, headers, body))
        protocol.response_bytes(answer.status.value, [("content-type", answer.content_type)], answer.body)
