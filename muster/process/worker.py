"""gunicorn's threaded worker, made safe against clients that are slow, or that ask nothing.

gunicorn's own worker lets a thread wait for the handshake and the request of a client, so that as many slow clients as
there are threads stop everything. Here threads only think: one loop does everything that waits for a client, for all
connections together, and a thread is taken once a request is there as a whole (see `muster.process.connection`). Each
step of a connection has a deadline; and where there are too many connections, those go that have been at it longest.
"""

import errno
import socket
import time
from collections.abc import Iterator
from concurrent.futures import Future
from functools import partial
from typing import Any, NamedTuple

from gunicorn import http
from gunicorn import sock as gunicorn_sock
from gunicorn.workers import gthread
from prometheus_client import Counter, Gauge

from muster.process.connection import Address, Connection, Limits, Outbox, State
from muster.process.direct import Direct, post_of, response

OPEN = Gauge("muster_server_connections", "Open connections of clients")
DROPPED = Counter(
    "muster_server_connections_dropped_total",
    "Connections that were closed as the client was too slow with this state, or as there were too many",
    ["state", "reason"],
)

LINGER_S = 0.3
"""How long idle connections stay open after SIGTERM: a request that is on its way on one of them is still answered."""

_WAITING = (State.HANDSHAKE, State.READING, State.CLOSING, State.IDLE, State.WRITING)
"""In which order connections go when there are too many: first who has not asked anything yet."""
_GONE = {errno.EAGAIN, errno.EWOULDBLOCK, errno.ECONNABORTED, errno.ENOTCONN, errno.EINVAL}
_NO_DESCRIPTORS = {errno.EMFILE, errno.ENFILE}

gthread.STOP_KEEPALIVE_LINGER = LINGER_S


class _Call(NamedTuple):
    """What gunicorn's `handle_request` reads of a connection."""

    sock: Outbox
    client: Address
    server: Address


class Worker(gthread.ThreadWorker):  # type: ignore[misc] # gunicorn ships no types
    """One process: a loop for all connections, and threads for requests that are whole; see the module."""

    limits = Limits()
    direct: Direct | None = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.worker_connections = self.limits.connections + 1  # at the bound another one goes, and accepting goes on
        self._waiting: dict[State, dict[Connection, None]] = {state: {} for state in _WAITING}
        """Connections that no thread works on, in the order of their deadlines."""
        self._unfinished_bytes = 0
        OPEN.set_function(lambda: self.nr_conns)

    def accept(self, listener: socket.socket) -> None:
        """Takes in one connection."""
        try:
            sock, client = listener.accept()
        except OSError as error:
            if error.errno in _NO_DESCRIPTORS and self._drop_oldest("descriptors"):
                return
            if error.errno not in _GONE:
                raise
            return
        try:
            context = gunicorn_sock.ssl_context(self.cfg) if self.cfg.is_ssl else None
            connection = Connection(
                sock, client, listener.getsockname(), limits=self.limits, monotonic_s=time.monotonic, context=context
            )
        except OSError as error:
            self.log.debug("%s is gone already: %s", client, error)
            sock.close()
            return
        self.nr_conns += 1
        connection.advance()
        self._place(connection)
        if self.nr_conns > self.limits.connections:
            self._drop_oldest("connections")

    def handle(self, connection: Connection) -> None:
        """Answers one request, in a thread."""
        request, stays_open = None, False
        call = _Call(connection.outbox, connection.client, connection.server)
        received = connection.take_request()
        try:
            stays_open = self.alive
            if not self._answered_directly(received, connection.outbox, stays_open=stays_open):
                stays_open = False
                request = next(http.get_parser(self.cfg, iter([received]), connection.client))
                stays_open = self.handle_request(request, call)
        except StopIteration:
            pass  # it failed after it had begun to answer
        except Exception as error:  # noqa: BLE001 - gunicorn tells the client, and logs what is not the client's fault
            stays_open = False
            self.handle_error(request, call.sock, call.client, error)
        connection.answer(stays_open=stays_open)

    def _answered_directly(self, received: bytes, outbox: Outbox, *, stays_open: bool) -> bool:
        """Whether the request was answered without the app (see `muster.process.direct`)."""
        post = post_of(received) if self.direct else None
        reply = self.direct(post) if self.direct and post else None
        if reply is None:
            return False
        outbox.sendall(response(reply, stays_open=stays_open))
        return True

    def finish_request(self, connection: Connection, future: "Future[None]") -> None:
        """Takes a connection back from its thread."""
        error = None if future.cancelled() else future.exception()
        if error is not None:
            self.log.error("a request was not answered: %s", error, exc_info=error)
        if future.cancelled() or error is not None:
            connection.close()
        self._place(connection)

    def murder_keepalived(self, force: bool = False) -> None:  # noqa: FBT001, FBT002 - gunicorn's signature
        """Closes connections whose deadline is over, or all that wait."""
        now = time.monotonic()
        for connections in self._waiting.values():
            while (first := next(iter(connections), None)) and (force or first.deadline <= now):
                self._drop(first, "" if force or first.state in {State.IDLE, State.CLOSING} else "deadline")

    def murder_pending(self) -> None:
        """`murder_keepalived` does it."""

    def wait_for_and_dispatch_events(self, timeout: float) -> None:
        """After SIGTERM it looks more often, so that the end of the linger is noticed."""
        super().wait_for_and_dispatch_events(timeout if self.alive else min(timeout, LINGER_S / 3))

    def _cap_keepalive(self, deadline: float) -> None:
        """After SIGTERM nobody is waited for any longer than that."""
        for connection in self._all_waiting():
            connection.deadline = min(connection.deadline, deadline)

    def _place(self, connection: Connection) -> None:
        """Has a connection wait for its client or for a thread, whichever it needs now."""
        state = connection.state
        if state is State.CLOSED:
            connection.close()
            self.nr_conns -= 1
        elif state is State.WORKING:
            self.enqueue_req(connection)
        else:
            if not self.alive:
                connection.deadline = min(connection.deadline, time.monotonic() + LINGER_S)
            self._waiting[state][connection] = None
            self.poller.register(connection.sock, connection.wants, partial(self._ready, connection))
            self._count(len(connection.received))

    def _ready(self, connection: Connection, sock: socket.socket) -> None:
        """The client has sent something, or takes something."""
        state, wants, received = connection.state, connection.wants, len(connection.received)
        connection.advance()
        if connection.state is state:
            if connection.wants != wants:
                self.poller.modify(sock, connection.wants, partial(self._ready, connection))
            self._count(len(connection.received) - received)
        else:
            self._leave(connection, state, received)
            self._place(connection)

    def _leave(self, connection: Connection, state: State, received: int) -> None:
        self.poller.unregister(connection.sock)
        del self._waiting[state][connection]
        self._unfinished_bytes -= received

    def _count(self, received: int) -> None:
        """Notes bytes of requests that are not whole; too many of them cost who has been sending longest."""
        self._unfinished_bytes += received
        while self._unfinished_bytes > self.limits.unfinished_bytes and self._waiting[State.READING]:
            self._drop(next(iter(self._waiting[State.READING])), "bytes")

    def _drop_oldest(self, reason: str) -> bool:
        """Closes the connection that can best be done without; False if threads work for all of them."""
        oldest = next(self._all_waiting(), None)
        if oldest is not None:
            self._drop(oldest, reason)
        return oldest is not None

    def _drop(self, connection: Connection, reason: str) -> None:
        if reason:
            DROPPED.labels(connection.state.value, reason).inc()
        self._leave(connection, connection.state, len(connection.received))
        connection.close()
        self.nr_conns -= 1

    def _all_waiting(self) -> Iterator[Connection]:
        return (connection for state in _WAITING for connection in self._waiting[state])
