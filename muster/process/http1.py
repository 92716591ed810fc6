"""Plain HTTP/1.1 on the running loop, read by httptools (llhttp).

Everything happens on the loop's own thread. granian, which serves TLS and HTTP/2, reads in threads of its own, so that
each of its calls is handed over twice: 0.24 ms CPU for one that needs nothing, 0.08 here.

A connection's requests are answered one after the other, in their order. Who sends what is not HTTP, or too long, or
comes too slowly, is told so, and the connection ends.
"""

import asyncio
import socket
from collections import deque
from http import HTTPStatus
from typing import NamedTuple, cast

import httptools

from muster.process import calls
from muster.process.calls import BACKLOG, Answer, App, Refused, Request, answered, check_length, too_slow
from muster.process.framing import MAX_HEADER_BYTES

_MOST_WAITING = 16
"""Requests of one connection that wait for the one before; then no more of them are read."""
_LINGER_S = 2.0
"""How long a refused client may go on sending: closed at once, it would lose the answer."""


class Http1:
    """Serves an app on a listening socket, which stays the caller's; `task` ends with it."""

    def __init__(self, app: App, sock: socket.socket) -> None:
        self.app = app
        self.leaving = asyncio.Event()
        self._connections: set[_Connection] = set()
        self._gone = asyncio.Event()
        self.task = asyncio.create_task(self._serve(sock.dup()))

    def leave(self) -> None:
        """Accepts nothing any more; it ends when all calls that it has are answered."""
        self.leaving.set()

    def forget(self) -> None:
        """Nothing is left behind."""

    def opened(self, connection: "_Connection") -> None:
        """There is one more."""
        self._connections.add(connection)
        if self.leaving.is_set():
            connection.leave()

    def ended(self, connection: "_Connection") -> None:
        """It is closed, and its last request is answered."""
        self._connections.discard(connection)
        self._gone.set()

    async def _serve(self, sock: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        server = await loop.create_server(lambda: _Connection(self), sock=sock, backlog=BACKLOG)
        try:
            await self.leaving.wait()
            server.close()
            for connection in list(self._connections):
                connection.leave()
            while self._connections:
                self._gone.clear()
                await self._gone.wait()
        finally:
            server.close()
            for connection in list(self._connections):
                connection.abort()


class _Asked(NamedTuple):
    """A request that is complete, and whether the connection may have another one after it."""

    request: Request
    keep: bool


class _Connection(asyncio.Protocol):
    """One connection; the methods `on_…` are called by the parser."""

    def __init__(self, served: Http1) -> None:
        self._served = served
        self._loop = asyncio.get_running_loop()
        self._parser = httptools.HttpRequestParser(self)
        self._waiting: deque[_Asked] = deque()
        self._task: asyncio.Task[None] | None = None
        self._over = False
        """Nothing more is read."""
        self._refusal: Answer | None = None
        """What is told after the answers to what came before."""
        self._paused = False
        self._heard_at = 0.0
        self._begun = False
        """A request has begun, and is not complete."""
        self._arriving: asyncio.TimerHandle | None = None
        """Until when it must be; most come in one piece and need none."""
        self._in_head = False
        self._head_bytes = 0
        self._url = b""
        self._headers: dict[str, str] = {}
        self._body: list[bytes] = []

    # -- the connection ---------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Somebody has connected."""
        self._transport = cast("asyncio.Transport", transport)
        self._heard_at = self._loop.time()
        self._idle = self._loop.call_later(calls.IDLE_S, self._look)
        self._served.opened(self)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - why does not matter
        """He has gone. What he asked for last is still done: it may have begun."""
        self._idle.cancel()
        self._arrived()
        self._waiting.clear()
        del self._parser  # it has us, and would wait for a garbage collection with us
        if self._task:
            self._task.add_done_callback(lambda _: self._served.ended(self))
        else:
            self._served.ended(self)

    def data_received(self, data: bytes) -> None:
        """A piece of a request, or of several."""
        if self._over:
            return
        self._heard_at = self._loop.time()
        was_in_head = self._in_head
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self._over = True  # what the client wants to speak from here on
        except httptools.HttpParserError:
            self._refuse(Refused(HTTPStatus.BAD_REQUEST, "this is not HTTP/1.1, or not as it should be"))
        if was_in_head and self._in_head:
            self._head_bytes += len(data)
            if self._head_bytes > MAX_HEADER_BYTES:
                why = f"the headers have more than {MAX_HEADER_BYTES} bytes"
                self._refuse(Refused(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, why))
        if self._begun and not self._arriving:
            self._arriving = self._loop.call_later(calls.BODY_S, lambda: self._refuse(too_slow()))

    def leave(self) -> None:
        """Closes the connection when what was asked over it is answered."""
        if not self._task:
            self._transport.close()

    def abort(self) -> None:
        """Closes the connection, and gives up what was asked over it."""
        if self._task:
            self._task.cancel()
        self._transport.abort()

    def _look(self) -> None:
        """Whether anybody still uses the connection."""
        left_s = calls.IDLE_S if self._task else self._heard_at + calls.IDLE_S - self._loop.time()
        if left_s > 0:
            self._idle = self._loop.call_later(left_s, self._look)
        else:
            self._transport.close()

    # -- a request as it comes --------------------------------------------------------------------------------------

    def on_message_begin(self) -> None:
        """The first byte of it is here."""
        self._url, self._headers, self._body = b"", {}, []
        self._begun, self._in_head, self._head_bytes = True, True, 0

    def on_url(self, url: bytes) -> None:
        """Where it goes, or a piece of that."""
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header; the first of its name counts."""
        self._headers.setdefault(name.decode("latin-1").lower(), value.decode("latin-1"))

    def on_headers_complete(self) -> None:
        """Its body is next, if that may be read."""
        self._in_head = False
        length = "" if "transfer-encoding" in self._headers else self._headers.get("content-length")
        try:
            if length is not None:
                check_length(length)
        except Refused as refused:
            self._refuse(refused)
            return
        if self._headers.get("expect", "").lower() == "100-continue" and not self._task:
            self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def on_body(self, data: bytes) -> None:
        """A piece of its body."""
        if not self._over:
            self._body.append(data)

    def on_message_complete(self) -> None:
        """It is all here."""
        self._arrived()
        if self._over:
            return
        headers, content = self._headers, b"".join(self._body)

        async def body() -> bytes:
            check_length(headers.get("content-length", ""))
            return content

        path = self._url.partition(b"?")[0].decode("latin-1")
        method = self._parser.get_method().decode("latin-1")
        request = Request(method, path, headers.get("host", ""), headers, body)
        self._waiting.append(_Asked(request, self._parser.should_keep_alive()))
        if not self._task:
            self._next()
        elif len(self._waiting) > _MOST_WAITING and not self._paused:
            self._paused = True
            self._transport.pause_reading()

    def _arrived(self) -> None:
        self._begun = False
        if self._arriving:
            self._arriving.cancel()
            self._arriving = None

    # -- its answer -------------------------------------------------------------------------------------------------

    def _next(self) -> None:
        """Answers what is next, or reads on."""
        if self._waiting:
            self._task = self._loop.create_task(self._answer(self._waiting.popleft()))
        elif self._refusal:
            self._write(self._refusal, last=True)
            self._loop.call_later(_LINGER_S, self._transport.close)
        elif self._paused:
            self._paused = False
            self._transport.resume_reading()

    async def _answer(self, asked: _Asked) -> None:
        answer = await answered(self._served.app, asked.request)
        self._task = None
        if self._transport.is_closing():
            return
        over = self._over and not self._waiting and not self._refusal
        last = over or not asked.keep or self._served.leaving.is_set()
        self._write(answer, last=last, empty=asked.request.method == "HEAD")
        self._heard_at = self._loop.time()
        if last:
            self._transport.close()
        else:
            self._next()

    def _refuse(self, refused: Refused) -> None:
        if not self._over:
            self._over, self._refusal = True, refused.answer
            self._arrived()
            if not self._task:
                self._next()

    def _write(self, answer: Answer, *, last: bool, empty: bool = False) -> None:
        end = "connection: close\r\n" if last else ""
        head = (
            f"HTTP/1.1 {answer.status.value} {answer.status.phrase}\r\ncontent-type: {answer.content_type}\r\n"
            f"content-length: {len(answer.body)}\r\n{end}\r\n"
        )
        self._transport.write(head.encode("latin-1") + (b"" if empty else answer.body))
