"""One HTTP exchange with the API server: pool, credentials, time limits, errors, metrics.

Nothing is retried here: whoever asks knows whether asking twice is harmless. `Exchanges` is what both kinds have in
common: `Transport` for threads, `muster.kube.looptransport` for an event loop.
"""

import re
import socket
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from email.utils import parsedate_to_datetime
from functools import partial
from http.client import HTTPException
from typing import Protocol, TypeVar
from urllib.parse import urlencode, urlsplit

import urllib3

from muster.kube.config import Config
from muster.kube.connections import Answer, Connections, Pool, Request, SocketOptions
from muster.kube.errors import Unreachable, error_of
from muster.kube.metrics import REQUEST_SECONDS, REQUESTS

JSON = "application/json"

CONNECT_TIMEOUT_S = 5.0
# Small requests go out at once, and a peer that vanished without a word is noticed after 30 + 3 * 10 s.
SOCKET_OPTIONS: SocketOptions = [
    (socket.IPPROTO_TCP, socket.TCP_NODELAY, 1),
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    *(
        (socket.IPPROTO_TCP, getattr(socket, name), value)
        for name, value in (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3))
        if hasattr(socket, name)
    ),
]
_FIRST_ERROR = 400
# 299 - "what is wrong"; the text is quoted, and sent as UTF-8 where HTTP knows only Latin-1.
_WARNING = re.compile(r'299 \S+ "((?:[^"\\]|\\.)*)"')
_ESCAPED = re.compile(r"\\(.)")


class Headers(Protocol):
    """The headers of an answer."""

    def get(self, name: str, /) -> str | None:
        """The first of this name, which is in lower case."""

    def get_all(self, name: str, /) -> list[str] | None:
        """All of this name."""


A = TypeVar("A", bound=Answer | urllib3.BaseHTTPResponse)


class Exchanges:
    """What is in a request to one API server, and what its answer means.

    `on_warning` is told what the API server warns of, also when it refuses; without it, nobody looks.
    """

    def __init__(self, config: Config, *, user_agent: str, on_warning: Callable[[str], None] | None = None) -> None:
        self._on_warning = on_warning
        self._heard: tuple[str, float] | None = None
        self._prefix = urlsplit(config.server).path.rstrip("/")
        self._headers = {"user-agent": user_agent, "accept": JSON}

    def server_time_s(self) -> float | None:
        """What the server's clock says, in seconds since the epoch, give or take one; None before its first answer."""
        if self._heard is None:
            return None
        date, heard_at = self._heard
        try:
            return parsedate_to_datetime(date).timestamp() + time.monotonic() - heard_at
        except (ValueError, OverflowError):
            return None

    def _url(self, path: str, query: Mapping[str, str] | None) -> str:
        return f"{self._prefix}{path}?{urlencode(query)}" if query else self._prefix + path

    def _headers_for(self, content_type: str, authorization: str | None) -> dict[str, str]:
        more = {"content-type": content_type} if content_type else {}
        return {**self._headers, **more, **({"authorization": authorization} if authorization else {})}

    def _judge(self, where: str, status: int, headers: Headers, data: bytes) -> None:
        """Notes what every answer tells, and raises the error that it stands for, if it does."""
        if date := headers.get("date"):
            self._heard = (date, time.monotonic())
        if self._on_warning:
            for text in warnings_of(headers.get_all("warning") or ()):
                self._on_warning(text)
        if status >= _FIRST_ERROR:
            raise error_of(status, data, where=where, retry_after=headers.get("retry-after"))


class Measured:
    """The metrics of one request; `code` is to be set once there is an answer."""

    code = 0


@contextmanager
def measured(where: str, verb: str, resource: str) -> Iterator[Measured]:
    """Counts a request and its time, and turns what goes wrong on the way into `Unreachable`."""
    started = time.perf_counter()
    result = Measured()
    try:
        yield result
    except (urllib3.exceptions.HTTPError, HTTPException, OSError, UnicodeError) as error:
        result.code = 0
        message = f"no answer from the API server: {error}"
        raise Unreachable(message, reason=type(error).__name__, where=where) from error
    finally:
        REQUESTS.labels(verb, resource, str(result.code)).inc()
        REQUEST_SECONDS.labels(verb, resource).observe(time.perf_counter() - started)


class Transport(Exchanges):
    """Sends requests over kept-alive connections, and waits for the answers. Thread safe."""

    def __init__(
        self, config: Config, *, user_agent: str, pool_size: int, on_warning: Callable[[str], None] | None = None
    ) -> None:
        super().__init__(config, user_agent=user_agent, on_warning=on_warning)
        self._authorization = config.authorization
        self._pool = Pool(config, SOCKET_OPTIONS, pool_size)
        self._connections: Connections | Pool = (
            self._pool if config.proxy else Connections(config, SOCKET_OPTIONS, pool_size)
        )

    def exchange(
        self,
        method: str,
        path: str,
        *,
        verb: str,
        resource: str,
        body: bytes | None = None,
        content_type: str = JSON,
        query: Mapping[str, str] | None = None,
        timeout_s: float,
    ) -> bytes:
        """Sends one request and gives the body of its answer; raises the `APIError` that fits."""
        request = Request(
            method,
            self._url(path, query),
            body,
            self._headers_for(content_type if body is not None else "", self._authorization()),
        )
        connect_timeout_s = min(timeout_s, CONNECT_TIMEOUT_S)

        def send() -> Answer | urllib3.BaseHTTPResponse:
            return self._connections.exchange(request, connect_timeout_s, timeout_s)

        return self._answer(send, f"{method} {path}", verb, resource).data

    def stream(
        self, path: str, *, resource: str, query: Mapping[str, str], timeout_s: float, silence_s: float | None
    ) -> urllib3.BaseHTTPResponse:
        """Opens a stream within `timeout_s`. Reading raises after `silence_s` without a byte: nobody is there."""
        request = Request("GET", self._url(path, query), None, self._headers_for("", self._authorization()))
        send = partial(self._pool.open, request, min(timeout_s, CONNECT_TIMEOUT_S), timeout_s, stream=True)
        answer = self._answer(send, f"GET {path}", "watch", resource)
        sock = getattr(answer.connection, "sock", None)
        if sock is not None:
            sock.settimeout(silence_s)
        return answer

    def close(self) -> None:
        """Closes idle connections; requests under way go on."""
        self._connections.close()
        self._pool.close()

    def _answer(self, send: Callable[[], A], where: str, verb: str, resource: str) -> A:
        with measured(where, verb, resource) as request:
            answer = send()
            request.code = answer.status
            self._judge(where, answer.status, answer.headers, answer.data if answer.status >= _FIRST_ERROR else b"")
        return answer


def warnings_of(headers: Iterable[str]) -> Iterator[str]:
    """The sentences in the Warning headers of an answer."""
    for header in headers:
        for quoted in _WARNING.findall(header):
            yield _ESCAPED.sub(r"\1", quoted).encode("latin-1").decode(errors="replace")
