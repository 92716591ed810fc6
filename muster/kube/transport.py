"""One HTTP exchange with the API server: pool, credentials, time limits, errors, metrics.

Nothing is retried here: whoever asks knows whether asking twice is harmless.
"""

import re
import socket
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from email.utils import parsedate_to_datetime
from functools import partial
from http.client import HTTPException
from typing import TypeVar
from urllib.parse import urlencode, urlsplit

import urllib3

from muster.kube.config import Config
from muster.kube.connections import Answer, Connections, Pool, Request, SocketOptions
from muster.kube.errors import Unreachable, error_of
from muster.kube.metrics import REQUEST_SECONDS, REQUESTS

JSON = "application/json"

_CONNECT_TIMEOUT_S = 5.0
# Small requests go out at once, and a peer that vanished without a word is noticed after 30 + 3 * 10 s.
_SOCKET_OPTIONS: SocketOptions = [
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

A = TypeVar("A", bound=Answer | urllib3.BaseHTTPResponse)


class Transport:
    """Sends requests over kept-alive connections. Thread safe.

    `on_warning` is told what the API server warns of, also when it refuses; without it, nobody looks.
    """

    def __init__(
        self, config: Config, *, user_agent: str, pool_size: int, on_warning: Callable[[str], None] | None = None
    ) -> None:
        self._on_warning = on_warning
        self._heard: tuple[str, float] | None = None
        self._authorization = config.authorization
        self._prefix = urlsplit(config.server).path.rstrip("/")
        self._headers = {"user-agent": user_agent, "accept": JSON}
        self._pool = Pool(config, _SOCKET_OPTIONS, pool_size)
        self._connections: Connections | Pool = (
            self._pool if config.proxy else Connections(config, _SOCKET_OPTIONS, pool_size)
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
            method, self._url(path, query), body, self._headers_for(content_type if body is not None else "")
        )
        connect_timeout_s = min(timeout_s, _CONNECT_TIMEOUT_S)

        def send() -> Answer | urllib3.BaseHTTPResponse:
            return self._connections.exchange(request, connect_timeout_s, timeout_s)

        return self._answer(send, f"{method} {path}", verb, resource).data

    def stream(
        self, path: str, *, resource: str, query: Mapping[str, str], timeout_s: float, silence_s: float | None
    ) -> urllib3.BaseHTTPResponse:
        """Opens a stream within `timeout_s`. Reading raises after `silence_s` without a byte: nobody is there."""
        request = Request("GET", self._url(path, query), None, self._headers_for(""))
        send = partial(self._pool.open, request, min(timeout_s, _CONNECT_TIMEOUT_S), timeout_s, stream=True)
        answer = self._answer(send, f"GET {path}", "watch", resource)
        sock = getattr(answer.connection, "sock", None)
        if sock is not None:
            sock.settimeout(silence_s)
        return answer

    def server_time_s(self) -> float | None:
        """What the server's clock says, in seconds since the epoch, give or take one; None before its first answer."""
        if self._heard is None:
            return None
        date, heard_at = self._heard
        try:
            return parsedate_to_datetime(date).timestamp() + time.monotonic() - heard_at
        except (ValueError, OverflowError):
            return None

    def close(self) -> None:
        """Closes idle connections; requests under way go on."""
        self._connections.close()
        self._pool.close()

    def _url(self, path: str, query: Mapping[str, str] | None) -> str:
        return f"{self._prefix}{path}?{urlencode(query)}" if query else self._prefix + path

    def _headers_for(self, content_type: str) -> dict[str, str]:
        more = {"content-type": content_type} if content_type else {}
        authorization = self._authorization()
        return {**self._headers, **more, **({"authorization": authorization} if authorization else {})}

    def _answer(self, send: Callable[[], A], where: str, verb: str, resource: str) -> A:
        started = time.perf_counter()
        code = 0
        try:
            answer = send()
            code = answer.status
            if date := answer.headers.get("date"):
                self._heard = (date, time.monotonic())
            if self._on_warning:
                for text in warnings_of(answer.headers.get_all("warning") or ()):
                    self._on_warning(text)
            if code >= _FIRST_ERROR:
                raise error_of(code, answer.data, where=where, retry_after=answer.headers.get("retry-after"))
        except (urllib3.exceptions.HTTPError, HTTPException, OSError, UnicodeError) as error:
            code = 0
            message = f"no answer from the API server: {error}"
            raise Unreachable(message, reason=type(error).__name__, where=where) from error
        finally:
            REQUESTS.labels(verb, resource, str(code)).inc()
            REQUEST_SECONDS.labels(verb, resource).observe(time.perf_counter() - started)
        return answer


def warnings_of(headers: Iterable[str]) -> Iterator[str]:
    """The sentences in the Warning headers of an answer."""
    for header in headers:
        for quoted in _WARNING.findall(header):
            yield _ESCAPED.sub(r"\1", quoted).encode("latin-1").decode(errors="replace")
