"""gunicorn's threaded worker, made safe against connections on which nobody asks anything.

Go clients dial a connection more than they need, finish its handshake and keep it for later. gunicorn's own worker
would leave one of its few threads waiting for the first request on each of them; four such connections, and nobody is
answered any more. Here a connection without a request waits with the others, and over TLS no read waits for ever.
"""

import selectors
import socket
import ssl
from typing import Any

from gunicorn.workers import gthread

READ_TIMEOUT_S = 10.0
"""How long a client may keep a thread waiting for the next bytes of a handshake or a request that it has begun."""
FIRST_BYTES_S = 0.05
"""How long a thread waits for a request on a connection that has just been opened; then the poller takes over."""
LINGER_S = 0.3
"""How long idle connections stay open after SIGTERM: a request that is on its way on one of them is still answered."""

gthread.STOP_KEEPALIVE_LINGER = LINGER_S


class Worker(gthread.ThreadWorker):  # type: ignore[misc] # gunicorn ships no types
    """One process, a few threads; see the module."""

    def handle(self, conn: Any) -> Any:
        """One request in a thread. A connection without any is handed back to the poller."""
        if not conn.initialized:
            if not conn.wait_for_data(FIRST_BYTES_S):
                return gthread._DEFER  # noqa: SLF001 - its word for "wait with the others"; a test notices if it goes
            try:
                conn.init()
            except OSError as error:  # ssl.SSLError is one
                self.log.debug("no handshake with %s: %s", conn.client, error)
                return False
            if not _has_request(conn.sock):
                return gthread._DEFER  # noqa: SLF001 - as above
        return super().handle(conn)

    def _cap_keepalive(self, deadline: float) -> None:
        """After SIGTERM: connections that never brought a request go with the idle ones."""
        super()._cap_keepalive(deadline)
        for conn in self.pending_conns:
            conn.timeout = min(conn.timeout, deadline)

    def wait_for_and_dispatch_events(self, timeout: float) -> None:
        """After SIGTERM it looks more often, so that the end of the linger is noticed."""
        super().wait_for_and_dispatch_events(timeout if self.alive else min(timeout, LINGER_S / 3))


class PatientSocket(ssl.SSLSocket):
    """A TLS socket for which "blocking" means to wait for `READ_TIMEOUT_S`, not for ever."""

    def setblocking(self, flag: bool) -> None:  # noqa: FBT001 - the signature of socket.setblocking
        """See socket.setblocking."""
        self.settimeout(READ_TIMEOUT_S if flag else 0.0)

    def do_handshake(self, block: bool = False) -> None:  # noqa: FBT001, FBT002 - the signature of ssl.SSLSocket
        """See ssl.SSLSocket.do_handshake."""
        self.settimeout(READ_TIMEOUT_S)
        super().do_handshake(block)


def _has_request(sock: socket.socket) -> bool:
    """Whether the first bytes of a request are there, or come at once."""
    if isinstance(sock, ssl.SSLSocket) and sock.pending():
        return True
    with selectors.DefaultSelector() as selector:
        selector.register(sock, selectors.EVENT_READ)
        return bool(selector.select(FIRST_BYTES_S))
