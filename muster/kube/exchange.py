"""One HTTP/1.1 connection of an event loop: a request goes out, its answer comes back, again and again.

httptools (llhttp) reads the answers; this adds what belongs to a connection: where an answer ends, whether another one
may follow, and that nothing comes unasked. A POST costs a tenth of the CPU that it costs over http.client in a thread.
"""

import asyncio
from collections.abc import Iterable
from typing import cast

import httptools

from muster.kube.answer import Answer, BrokenAnswerError, Headers

_MOST_HEADER_BYTES = 64 * 1024
_FINAL = 200
"""Below are answers that announce the real one."""
_NO_BODY = {204, 304}


class Exchange(asyncio.Protocol):
    """One connection; one request at a time.

    Whatever goes wrong (OSError) ends it. Who gives up waiting must `abort` it: an answer may still come.
    """

    _headers: Headers

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._waiting: asyncio.Future[Answer] | None = None
        self._answer: Answer | None = None
        self._begin()

    @property
    def usable(self) -> bool:
        """Whether a request may be sent now."""
        busy = self._waiting is not None or self._answer is not None
        return self._transport is not None and not self._transport.is_closing() and not busy

    async def send(self, head: bytes, body: bytes | None) -> Answer:
        """Sends a request and waits for its answer to begin."""
        if self._transport is None or not self.usable:
            raise BrokenAnswerError("the connection is not free")
        self._begin()
        self._waiting = asyncio.get_running_loop().create_future()
        self._transport.writelines((head, body) if body else (head,))
        return await self._waiting

    def abort(self) -> None:
        """Ends the connection at once."""
        if self._transport is not None:
            self._transport.abort()

    # -- what the loop calls ----------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The connection, and TLS on it, is there."""
        self._transport = cast("asyncio.Transport", transport)  # a stream, whatever the loop calls it

    def data_received(self, data: bytes) -> None:
        """Bytes of the answer; without a request they are an end."""
        if self._waiting is None and self._answer is None:
            self.abort()
            return
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            self._fail(BrokenAnswerError(f"no HTTP answer: {error}"))

    def eof_received(self) -> None:
        """The server says no more: the end of an answer that says nowhere how long it is."""
        if self._answer is not None and self._until_end:
            self._done()

    def connection_lost(self, error: Exception | None) -> None:
        """It is over; so is what waits for an answer."""
        self._transport = None
        self._fail(error if isinstance(error, OSError) else BrokenAnswerError("the connection ended before the answer"))

    # -- what the parser calls --------------------------------------------------------------------------------------

    def on_message_begin(self) -> None:
        """An answer begins; one that nobody has asked for ends the connection."""
        if self._waiting is None:
            raise BrokenAnswerError("more than one answer")

    def on_header(self, name: bytes, value: bytes) -> None:
        """One header."""
        self._header_bytes += len(name) + len(value)
        if self._header_bytes > _MOST_HEADER_BYTES:
            raise BrokenAnswerError("the answer's headers have no end")
        self._headers.add(name, value)

    def on_headers_complete(self) -> None:
        """The answer has begun; this says how long its body is."""
        status = self._parser.get_status_code()
        if status < _FINAL or self._waiting is None or self._transport is None:
            return
        chunked = "chunked" in (self._headers.get("transfer-encoding") or "").lower()
        self._until_end = not chunked and self._headers.get("content-length") is None
        self._answer = Answer(self._transport, status, self._headers)
        waiting, self._waiting = self._waiting, None
        if not waiting.done():
            waiting.set_result(self._answer)

    def on_body(self, data: bytes) -> None:
        """A piece of the body."""
        if self._answer is not None:
            self._answer.feed(data)

    def on_message_complete(self) -> None:
        """The whole answer; or one of those that only announce it."""
        status = self._parser.get_status_code()
        if status < _FINAL:
            self._headers = Headers()
            return
        if self._until_end and status not in _NO_BODY:
            return  # the end of the connection says it
        self._stays_open = self._parser.should_keep_alive()  # only here does the parser know
        self._done()

    # -- inside -----------------------------------------------------------------------------------------------------

    def _begin(self) -> None:
        self._parser = httptools.HttpResponseParser(self)
        self._headers = Headers()
        self._header_bytes = 0
        self._until_end = self._stays_open = False

    def _done(self) -> None:
        answer, self._answer = self._answer, None
        if self._transport is not None and (not self._stays_open or self._transport.get_write_buffer_size()):
            self._transport.abort()  # a server that refuses may answer before it has read everything
        if answer is not None:
            answer.end()

    def _fail(self, error: OSError) -> None:
        waiting, self._waiting = self._waiting, None
        answer, self._answer = self._answer, None
        if waiting is not None and not waiting.done():
            waiting.set_exception(error)
        if answer is not None:
            answer.end(error)
        self.abort()


def head_of(method: str, url: str, host: str, headers: Iterable[tuple[str, str]], body: bytes | None) -> bytes:
    """A request up to its body, as bytes; ValueError for what would not arrive as it is meant."""
    lines = [f"{method} {url} HTTP/1.1", f"host: {host}", *(f"{name}: {value}" for name, value in headers)]
    if body is not None or method != "GET":
        lines.append(f"content-length: {len(body or b'')}")
    if any("\r" in line or "\n" in line or "\0" in line for line in lines) or " " in url:
        raise ValueError("a request with a line break or a space where none may be")
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")
