"""Connections of an event loop to one server: kept while they are good, never more than so many."""

import asyncio
from collections import deque
from collections.abc import Mapping
from typing import NamedTuple

from muster.kube.answer import Answer, Headers
from muster.kube.config import Config
from muster.kube.dial import Dialer
from muster.kube.exchange import Exchange, head_of


class Request(NamedTuple):
    """One HTTP request; `path` has its query."""

    method: str
    path: str
    body: bytes | None
    headers: Mapping[str, str]


class Received(NamedTuple):
    """An answer, read to its end."""

    status: int
    headers: Headers
    data: bytes


class Connections:
    """At most `most` connections, with one request at a time over each; `turns` are taken before a request is sent.

    Streams have connections of their own, which do not count. Used on one loop. What goes wrong is an OSError, and ends
    the connection; so does giving up.
    """

    def __init__(self, config: Config, most: int) -> None:
        self._dialer = Dialer(config)
        self.turns = asyncio.Semaphore(most)
        self._idle: deque[Exchange] = deque()

    async def exchange(self, request: Request, connect_timeout_s: float, timeout_s: float) -> Received:
        """Sends a request, whose turn it must be, and reads the whole answer within `timeout_s`."""
        head = self._head_of(request)
        try:
            async with asyncio.timeout(timeout_s):
                return await self._send(head, request.body, connect_timeout_s)
        except TimeoutError as error:  # it says nothing by itself
            raise TimeoutError(str(error) or f"no answer within {timeout_s:g} s") from error

    async def stream(self, request: Request, connect_timeout_s: float, timeout_s: float) -> Answer:
        """Sends a request over a connection of its own; the answer begins within `timeout_s`, and is to be closed."""
        head = self._head_of(request)
        try:
            async with asyncio.timeout(timeout_s):
                connection = await self._dialer.connect(connect_timeout_s)
                try:
                    return await connection.send(head, request.body)
                except BaseException:
                    connection.abort()
                    raise
        except TimeoutError as error:
            raise TimeoutError(str(error) or f"no answer within {timeout_s:g} s") from error

    def close(self) -> None:
        """Closes idle connections; exchanges under way go on."""
        while self._idle:
            self._idle.pop().abort()

    def _head_of(self, request: Request) -> bytes:
        dialer = self._dialer
        headers = (*request.headers.items(), *dialer.headers.items())
        return head_of(request.method, dialer.url(request.path), dialer.host, headers, request.body)

    async def _send(self, head: bytes, body: bytes | None, connect_timeout_s: float) -> Received:
        connection = self._take() or await self._dialer.connect(connect_timeout_s)
        try:
            answer = await connection.send(head, body)
            received = Received(answer.status, answer.headers, await answer.rest())
        except BaseException:
            connection.abort()
            raise
        if connection.usable:
            self._idle.append(connection)
        return received

    def _take(self) -> Exchange | None:
        """The connection that was used last, unless it has ended: the loop knows at once when one does."""
        while self._idle:
            connection = self._idle.pop()
            if connection.usable:
                return connection
        return None
