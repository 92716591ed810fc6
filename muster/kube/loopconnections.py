"""Connections of an event loop to one server: kept while they are good, never more than so many."""

import asyncio
from collections import deque
from typing import NamedTuple
from urllib.parse import urlsplit

from muster.kube.config import Config
from muster.kube.connections import Request, SocketOptions
from muster.kube.exchange import Exchange, Received, head_of

_PORTS = {"http": 80, "https": 443}


class _Target(NamedTuple):
    host: str
    port: int
    header: str
    """What requests call the server."""


class LoopConnections:
    """At most `most` connections, with one request at a time over each; `turns` are taken before a request is sent.

    Used on one loop. What goes wrong is an OSError, and ends the connection; so does giving up.
    """

    def __init__(self, config: Config, options: SocketOptions, most: int) -> None:
        parts = urlsplit(config.server)
        port = parts.port or _PORTS[parts.scheme]
        host = parts.hostname or ""
        shown = f"[{host}]" if ":" in host else host
        self._target = _Target(host, port, shown if port == _PORTS[parts.scheme] else f"{shown}:{port}")
        self._tls = config.tls
        self._server_name = (config.server_name or host) if config.tls else None
        self._options = options
        self.turns = asyncio.Semaphore(most)
        self._idle: deque[Exchange] = deque()

    async def exchange(self, request: Request, connect_timeout_s: float, timeout_s: float) -> Received:
        """Sends a request, whose turn it must be, and reads the whole answer within `timeout_s`."""
        head = head_of(request.method, request.url, self._target.header, request.headers.items(), request.body)
        try:
            async with asyncio.timeout(timeout_s):
                return await self._send(head, request.body, connect_timeout_s)
        except TimeoutError as error:  # it says nothing by itself
            raise TimeoutError(str(error) or f"no answer within {timeout_s:g} s") from error

    def close(self) -> None:
        """Closes idle connections; exchanges under way go on."""
        while self._idle:
            self._idle.pop().abort()

    async def _send(self, head: bytes, body: bytes | None, connect_timeout_s: float) -> Received:
        connection = self._take() or await self._connect(connect_timeout_s)
        try:
            answer = await connection.send(head, body)
        except BaseException:
            connection.abort()
            raise
        if connection.usable:
            self._idle.append(connection)
        return answer

    def _take(self) -> Exchange | None:
        """The connection that was used last, unless it has ended: the loop knows at once when one does."""
        while self._idle:
            connection = self._idle.pop()
            if connection.usable:
                return connection
        return None

    async def _connect(self, timeout_s: float) -> Exchange:
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(timeout_s):
                transport, connection = await loop.create_connection(
                    Exchange, self._target.host, self._target.port, ssl=self._tls, server_hostname=self._server_name
                )
        except TimeoutError as error:
            raise TimeoutError(str(error) or f"no connection within {timeout_s:g} s") from error
        sock = transport.get_extra_info("socket")
        for option in self._options:
            sock.setsockopt(*option)
        return connection
