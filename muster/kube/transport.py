"""One HTTP exchange with the API server: pool, credentials, time limits, errors, metrics.

Nothing is retried here: whoever asks knows whether asking twice is harmless.
"""

import re
import socket
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import urlencode, urlsplit

import urllib3
from urllib3.connection import HTTPConnection

from muster.kube.config import Config
from muster.kube.errors import Unreachable, error_of
from muster.kube.metrics import REQUEST_SECONDS, REQUESTS

JSON = "application/json"

_CONNECT_TIMEOUT_S = 5.0
# A peer that vanished without a word is noticed after 30 + 3 * 10 s.
_KEEP_ALIVE: list[tuple[int, int, int]] = [
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


class Transport:
    """Sends requests over a pool of kept-alive connections. Thread safe.

    `on_warning` is told what the API server warns of, also when it refuses; without it, nobody looks.
    """

    def __init__(
        self, config: Config, *, user_agent: str, pool_size: int, on_warning: Callable[[str], None] | None = None
    ) -> None:
        self._on_warning = on_warning
        self._authorization = config.authorization
        self._prefix = urlsplit(config.server).path.rstrip("/")
        self._headers = {"user-agent": user_agent, "accept": JSON}
        options: dict[str, Any] = {
            "maxsize": pool_size,
            "socket_options": [*HTTPConnection.default_socket_options, *_KEEP_ALIVE],
        }
        if config.tls:
            options |= {"ssl_context": config.tls, "server_hostname": config.server_name}
        if config.proxy:
            self._manager: urllib3.PoolManager = urllib3.ProxyManager(config.proxy, **options)
        else:
            self._manager = urllib3.PoolManager(**options)
        self._pool = self._manager.connection_from_url(config.server)

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
        answer = self._open(
            method,
            path,
            verb=verb,
            resource=resource,
            body=body,
            content_type=content_type,
            query=query,
            timeout=urllib3.Timeout(connect=min(timeout_s, _CONNECT_TIMEOUT_S), total=timeout_s),
            stream=False,
        )
        return answer.data

    def stream(
        self, path: str, *, resource: str, query: Mapping[str, str], timeout_s: float, silence_s: float
    ) -> urllib3.BaseHTTPResponse:
        """Opens a watch within `timeout_s`; reading raises after `silence_s` without a byte: a dead peer is noticed."""
        timeout = urllib3.Timeout(connect=min(timeout_s, _CONNECT_TIMEOUT_S), total=timeout_s)
        answer = self._open("GET", path, verb="watch", resource=resource, query=query, timeout=timeout, stream=True)
        sock = getattr(answer.connection, "sock", None)
        if sock is not None:
            sock.settimeout(silence_s)
        return answer

    def close(self) -> None:
        """Closes idle connections."""
        self._manager.clear()

    def _open(
        self,
        method: str,
        path: str,
        *,
        verb: str,
        resource: str,
        body: bytes | None = None,
        content_type: str = JSON,
        query: Mapping[str, str] | None,
        timeout: urllib3.Timeout,
        stream: bool,
    ) -> urllib3.BaseHTTPResponse:
        where = f"{method} {path}"
        headers = self._headers if body is None else {**self._headers, "content-type": content_type}
        authorization = self._authorization()
        if authorization:
            headers = {**headers, "authorization": authorization}
        url = f"{self._prefix}{path}?{urlencode(query)}" if query else self._prefix + path
        started = time.perf_counter()
        code = 0
        try:
            answer = self._pool.urlopen(
                method, url, body=body, headers=headers, retries=False, redirect=False, timeout=timeout,
                preload_content=not stream, decode_content=False,
            )  # fmt: skip
            code = answer.status
            if self._on_warning:
                for text in warnings_of(answer.headers.getlist("warning")):
                    self._on_warning(text)
            if code >= _FIRST_ERROR:
                raise error_of(code, answer.data, where=where, retry_after=answer.headers.get("retry-after"))
        except (urllib3.exceptions.HTTPError, OSError) as error:
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
