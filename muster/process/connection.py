"""One connection of a client, from its handshake to its last answer, without ever waiting for the client.

`advance` does what can be done now and returns. What is left is done when the socket is ready again, or never: each
state has a deadline, counted from when it was entered and not from the last byte, so that a client that sends one byte
now and then gains nothing.
"""

import socket
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from selectors import EVENT_READ, EVENT_WRITE
from typing import Any, cast

from muster.process.framing import Frame, RefusedRequest

_PIECE = 64 * 1024
Address = Any
"""As the socket module has it: a tuple that depends on the family."""


class State(Enum):
    """What a connection waits for; the value is a label of the metrics."""

    HANDSHAKE = "handshake"
    IDLE = "idle"
    """The next request, of which nothing has come yet."""
    READING = "request"
    """The rest of a request."""
    WORKING = "working"
    """A thread that answers."""
    WRITING = "answer"
    """The client, to take the answer."""
    CLOSING = "closing"
    """The client, to close: were we first, it might lose the end of our answer."""
    CLOSED = "closed"


@dataclass(frozen=True, slots=True)
class Limits:
    """What a client may take: seconds per state, bytes, and connections per process."""

    handshake_s: float = 10.0
    request_s: float = 10.0
    answer_s: float = 10.0
    closing_s: float = 1.0
    idle_s: float = 120.0  # Go clients keep idle connections for 90 s; whoever closes first must not be the server
    body_bytes: int = 16 * 1024 * 1024
    unfinished_bytes: int = 64 * 1024 * 1024
    """Of all requests together that are not whole yet."""
    connections: int = 1000

    def seconds(self, state: State) -> float:
        """How long a connection may be in a state."""
        return {
            State.HANDSHAKE: self.handshake_s,
            State.IDLE: self.idle_s,
            State.READING: self.request_s,
            State.WRITING: self.answer_s,
            State.CLOSING: self.closing_s,
        }.get(state, float("inf"))


class Outbox:
    """What gunicorn writes an answer to in place of a socket; the bytes go out when the client takes them."""

    def __init__(self) -> None:
        self.data = bytearray()

    def sendall(self, data: bytes) -> None:
        """See socket.sendall."""
        self.data += data

    def send(self, data: bytes) -> int:
        """See socket.send."""
        self.data += data
        return len(data)

    def gettimeout(self) -> float:
        """See socket.gettimeout: it never waits."""
        return 0.0

    def shutdown(self, how: int) -> None:
        """As of a socket that is closed already: the connection itself is closed by who waits for it."""
        raise OSError(how)

    def close(self) -> None:
        """See socket.close; as `shutdown`."""


class Connection:
    """A client's connection; used by one thread at a time. `context` is for TLS."""

    def __init__(
        self,
        sock: socket.socket,
        client: Address,
        server: Address,
        *,
        limits: Limits,
        monotonic_s: Callable[[], float],
        context: ssl.SSLContext | None = None,
    ) -> None:
        sock.settimeout(0.0)
        self.sock = sock
        if context is not None:
            self.sock = context.wrap_socket(sock, server_side=True, do_handshake_on_connect=False)
        self.client = client
        self.server = server
        self.wants = EVENT_READ
        """What the socket must be ready for before `advance` is called again."""
        self.received = bytearray()
        self.outbox = Outbox()
        self._limits = limits
        self._monotonic_s = monotonic_s
        self._frame = Frame(limits.body_bytes)
        self._length = 0
        self._stays_open = False
        self.state = State.IDLE if context is None else State.HANDSHAKE
        self._enter(self.state)

    def advance(self) -> None:
        """Goes on as far as it can without waiting."""
        try:
            while self._step():
                pass
        except BlockingIOError:
            self.wants = EVENT_WRITE if self.state is State.WRITING else EVENT_READ
        except ssl.SSLWantReadError:
            self.wants = EVENT_READ
        except ssl.SSLWantWriteError:
            self.wants = EVENT_WRITE
        except OSError:  # ssl.SSLError is one; whoever is not there any more needs no answer
            self.state = State.CLOSED

    def take_request(self) -> bytes:
        """The bytes of the request that is whole; what the client has sent after it stays."""
        request = bytes(memoryview(self.received)[: self._length])
        del self.received[: self._length]
        self._frame = Frame(self._limits.body_bytes)
        return request

    def answer(self, *, stays_open: bool) -> None:
        """Sends what is in the outbox, as far as the client takes it at once; then goes on, or ends."""
        self._stays_open = stays_open
        self._enter(State.WRITING)
        self.advance()

    def close(self) -> None:
        """Ends it now, whatever is under way."""
        self.state = State.CLOSED
        self.sock.close()

    def _enter(self, state: State) -> None:
        self.state = state
        self.deadline = self._monotonic_s() + self._limits.seconds(state)

    def _step(self) -> bool:
        """One state's work; whether there may be more to do at once. Raises what a socket raises that has to wait."""
        match self.state:
            case State.HANDSHAKE:
                cast("ssl.SSLSocket", self.sock).do_handshake()
                self._enter(State.IDLE)
            case State.IDLE:
                if not self.received:
                    self._receive()
                if self.state is State.IDLE:
                    self._enter(State.READING)
            case State.READING:
                self._read()
            case State.WRITING:
                self._write()
            case State.CLOSING:
                self._receive()
                self.received.clear()
                return False  # what comes is thrown away, a piece at a time
            case _:
                return False
        return True

    def _receive(self) -> None:
        piece = self.sock.recv(_PIECE)
        if piece:
            self.received += piece
        else:
            self.state = State.CLOSED

    def _read(self) -> None:
        try:
            length = self._frame.length(self.received)
        except RefusedRequest as refused:
            self.outbox.sendall(refused.answer())
            self._stays_open = False
            self._enter(State.WRITING)
            return
        if length is None:
            self._receive()
        else:
            self._length = length
            self._enter(State.WORKING)

    def _write(self) -> None:
        data = self.outbox.data
        while data:
            del data[: self.sock.send(data)]
        if self._stays_open:
            self._enter(State.IDLE)
        else:
            self.sock.shutdown(socket.SHUT_WR)
            self._enter(State.CLOSING)
