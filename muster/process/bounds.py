"""Limits for clients: the time for a request and a response, the size of a header, the number of connections.

Without these limits, uvicorn waits for a client without a deadline, and accepts a header of any size. A request, a
response and a connection each have a deadline, which further bytes do not extend.
"""

import asyncio
import collections
from typing import cast

from prometheus_client import Counter, Gauge
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from muster.process.counters import from_zero

REQUEST_S = 10.0
"""Maximum time from the first byte of a request to the last."""
ANSWER_S = 10.0
"""Maximum time for a client to receive a response, counted from the moment when the server must wait for the client.
Over TLS, uvloop buffers the whole response, so the limit for idle connections applies to the client instead."""
LINGER_S = 0.3
"""Time for which a stopping server keeps idle connections open, so that it still answers a request that is already on
its way. A server that must lose no request drains first (`muster.process.draining`)."""
AGE_S = 3600.0
"""Age at which a connection is closed after its next response, so that its client must present its certificate
again."""
HEADER_BYTES = 64 * 1024
HEADER_FIELDS = 100
CONNECTIONS = 1000
"""Maximum number of connections without a complete request. Above the maximum, the client address with the most
connections loses its oldest connection, so that no client can shut out another. Connections with a request in progress
do not count, because kube-scheduler has one for each waiting member of a gang."""
_CHECKS = 50
"""Number of counts of all connections per `CONNECTIONS` new connections; more frequent counts would cost too much
time."""

OPEN = Gauge("muster_server_connections", "Open client connections of all servers of the process")
DROPPED = Counter(
    "muster_server_connections_dropped_total",
    "Connections that were closed, by reason: a slow request, a slow reader of the answer, or too many connections",
    ["reason"],
)
from_zero(DROPPED, ("request", "answer", "connections"))


class BoundedConnection(HttpToolsProtocol):
    """A uvicorn connection with the limits of this module."""

    begun_at_s = 0.0
    _in_header = False
    _header_bytes = 0
    """Size in bytes of the header fields that have been received completely."""
    _unread_bytes = 0
    """Size in bytes of received data that is only a part of a header field."""
    _request: asyncio.TimerHandle | None = None
    _answer: asyncio.TimerHandle | None = None
    _leaving = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as uvicorn has it
        """Start the timer for a connection's first request; uvicorn itself has a timer only for later requests."""
        super().connection_made(transport)
        OPEN.inc()
        self.begun_at_s = self.loop.time()
        self.timeout_keep_alive_task = self.loop.call_later(self.timeout_keep_alive, self.timeout_keep_alive_handler)
        beyond = len(self.connections) - CONNECTIONS
        if beyond > 0 and beyond % max(1, CONNECTIONS // _CHECKS) == 0:
            self._make_room()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop all timers."""
        super().connection_lost(exc)
        OPEN.dec()
        _stop(self._request)
        _stop(self._answer)

    def data_received(self, data: bytes) -> None:
        """Refuse an endless header once it exceeds the limit by more than the length of one read."""
        header = self.headers
        super().data_received(data)
        if self._in_header and self.headers is header:
            self._unread_bytes += len(data)
            if self._unread_bytes > HEADER_BYTES and not self.transport.is_closing():
                self.send_400_response(f"the header is longer than {HEADER_BYTES} bytes")

    def on_message_begin(self) -> None:
        """Start the timer of a request."""
        super().on_message_begin()
        self._in_header, self._header_bytes, self._unread_bytes = True, 0, 0
        self._request = self.loop.call_later(REQUEST_S, self.drop, "request")

    def on_header(self, name: bytes, value: bytes) -> None:
        """Refuse a header that is too long or has too many fields; the parser responds to the error with status 400."""
        super().on_header(name, value)
        self._header_bytes += len(name) + len(value)
        if self._header_bytes > HEADER_BYTES or len(self.headers) > HEADER_FIELDS:
            raise ValueError(f"the header exceeds {HEADER_BYTES} bytes or {HEADER_FIELDS} fields")

    def on_headers_complete(self) -> None:
        """Make this request the connection's last one if the connection is too old, or if the server is stopping."""
        self._in_header = False
        super().on_headers_complete()
        if self._leaving or self._draining or self.loop.time() > self.begun_at_s + AGE_S:
            self.cycle.keep_alive = False

    def on_message_complete(self) -> None:
        """Stop the timer of a request, because the request is complete."""
        super().on_message_complete()
        _stop(self._request)

    def timeout_keep_alive_handler(self) -> None:
        """End an idle connection, even if its client has not received its last response."""
        self.transport.abort()

    def pause_writing(self) -> None:
        """Start the timer of a response, because the client does not receive it fast enough."""
        super().pause_writing()
        self._answer = self.loop.call_later(ANSWER_S, self.drop, "answer")

    def resume_writing(self) -> None:
        """Stop the timer of a response, because the client has received enough of the response."""
        super().resume_writing()
        _stop(self._answer)

    def announce_end(self) -> None:
        """Ask the client to close the connection after the response in progress, if it has not been sent yet.

        All responses of a draining server to later requests ask for this as well.
        """
        if not self._is_idle and not self.cycle.response_started:
            self.cycle.keep_alive = False

    def shutdown(self) -> None:
        """Close the connection after its current response or, if no request is in progress, after a short time."""
        self._leaving = True
        if self._is_idle:
            self.loop.call_later(LINGER_S, self._leave)
        else:
            super().shutdown()

    @property
    def peer(self) -> str:
        """The address of the client; empty if it is unknown."""
        return self.client[0] if self.client else ""

    @property
    def waits_for_client(self) -> bool:
        """True while the connection has no complete request."""
        return self._is_idle or self.cycle.more_body

    def drop(self, reason: str) -> None:
        """Close the connection at once, and count it in the metric with this reason."""
        DROPPED.labels(reason).inc()
        self.transport.abort()

    @property
    def _draining(self) -> bool:
        return getattr(self.server_state, "draining", False)

    @property
    def _is_idle(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    def _leave(self) -> None:
        if self._is_idle:
            self.transport.abort()  # closing the connection over TLS would wait for the client

    def _make_room(self) -> None:
        all_of_them = cast("set[BoundedConnection]", self.connections)
        waiting = [each for each in all_of_them if each.waits_for_client and not each.transport.is_closing()]
        counts = collections.Counter(each.peer for each in waiting)
        for _ in range(len(waiting) - CONNECTIONS):
            others = (each for each in waiting if each is not self)
            most = max(others, key=lambda each: (counts[each.peer], -each.begun_at_s))
            waiting.remove(most)
            counts[most.peer] -= 1
            most.drop("connections")


def _stop(timer: asyncio.TimerHandle | None) -> None:
    if timer:
        timer.cancel()
