"""One HTTP exchange with the API server: connections, credentials, time limits, errors, metrics.

Nothing is retried here: whoever asks knows whether asking twice is harmless.
"""

import asyncio
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from email.utils import parsedate_to_datetime
from functools import cache
from urllib.parse import urlencode, urlsplit

from muster.kube.answer import Answer, Headers
from muster.kube.config import Config, anonymous
from muster.kube.connections import Connections, Request
from muster.kube.errors import Unreachable, error_of
from muster.kube.metrics import REQUEST_SECONDS, REQUESTS

JSON = "application/json"

_CONNECT_TIMEOUT_S = 5.0
_CREDENTIALS_S = 5.0
"""How long an Authorization header is sent before it is asked for again; it has its own idea of when it is stale."""
_FIRST_ERROR = 400
# prometheus_client makes a key of labels under a lock, each time it is asked
_requests = cache(REQUESTS.labels)
_seconds = cache(REQUEST_SECONDS.labels)
# 299 - "what is wrong"; the text is quoted, and sent as UTF-8 where HTTP knows only Latin-1.
_WARNING = re.compile(r'299 \S+ "((?:[^"\\]|\\.)*)"')
_ESCAPED = re.compile(r"\\(.)")


class Transport:
    """Sends requests to one API server, and says what the answers mean. Used on one loop.

    At most `connections` are sent at once, the others wait for their turn. `on_warning` is told what the API server
    warns of, also when it refuses; without it, nobody looks.
    """

    def __init__(
        self, config: Config, *, user_agent: str, connections: int, on_warning: Callable[[str], None] | None = None
    ) -> None:
        self._on_warning = on_warning
        self._heard: tuple[str, float] | None = None
        self._prefix = urlsplit(config.server).path.rstrip("/")
        self._headers = {"user-agent": user_agent, "accept": JSON}
        self._credentials = _Credentials(config.authorization)
        self._connections = Connections(config, connections)

    def server_time_s(self) -> float | None:
        """What the server's clock says, in seconds since the epoch, give or take one; None before its first answer."""
        if self._heard is None:
            return None
        date, heard_at = self._heard
        try:
            return parsedate_to_datetime(date).timestamp() + time.monotonic() - heard_at
        except (ValueError, OverflowError):
            return None

    async def exchange(
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
        where = f"{method} {path}"
        request = await self._request(method, path, query, body, content_type)
        async with self._connections.turns:
            with measured(where, verb, resource) as asked:
                answer = await self._connections.exchange(request, min(timeout_s, _CONNECT_TIMEOUT_S), timeout_s)
                asked.code = answer.status
                self._judge(where, answer.status, answer.headers, answer.data)
                return answer.data

    async def stream(self, path: str, *, resource: str, query: Mapping[str, str], timeout_s: float) -> Answer:
        """An answer that has begun within `timeout_s`, to be read and closed; raises the `APIError` that fits."""
        where = f"GET {path}"
        request = await self._request("GET", path, query, None, "")
        with measured(where, "watch", resource) as asked:
            answer = await self._connections.stream(request, min(timeout_s, _CONNECT_TIMEOUT_S), timeout_s)
            asked.code = answer.status
            try:
                async with asyncio.timeout(timeout_s):
                    refusal = await answer.rest() if answer.status >= _FIRST_ERROR else b""
                self._judge(where, answer.status, answer.headers, refusal)
            except BaseException:
                answer.close()
                raise
            return answer

    def close(self) -> None:
        """Closes idle connections; requests under way go on."""
        self._connections.close()

    async def _request(
        self, method: str, path: str, query: Mapping[str, str] | None, body: bytes | None, content_type: str
    ) -> Request:
        more = {"content-type": content_type} if body is not None else {}
        if authorization := await self._credentials.header():
            more["authorization"] = authorization
        target = self._prefix + path
        return Request(method, f"{target}?{urlencode(query)}" if query else target, body, {**self._headers, **more})

    def _judge(self, where: str, status: int, headers: Headers, data: bytes) -> None:
        """Notes what every answer tells, and raises the error that it stands for, if it does."""
        if date := headers.get("date"):
            self._heard = (date, time.monotonic())
        if self._on_warning:
            for text in warnings_of(headers.get_all("warning")):
                self._on_warning(text)
        if status >= _FIRST_ERROR:
            raise error_of(status, data, where=where, retry_after=headers.get("retry-after"))


class _Credentials:
    """The Authorization header. It is asked for in a thread: a program may have to be run for it."""

    def __init__(self, ask: Callable[[], str | None]) -> None:
        self._ask = ask
        self._asking = asyncio.Lock()
        self._header: str | None = None
        self._fresh_until = float("inf") if ask is anonymous else float("-inf")

    async def header(self) -> str | None:
        """Its value now; None where it is not needed."""
        if time.monotonic() >= self._fresh_until:
            async with self._asking:
                if time.monotonic() >= self._fresh_until:  # who waited for another's question has its answer
                    self._header = await asyncio.to_thread(self._ask)
                    self._fresh_until = time.monotonic() + _CREDENTIALS_S
        return self._header


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
    except (OSError, UnicodeError) as error:
        result.code = 0
        message = f"no answer from the API server: {str(error) or type(error).__name__}"
        raise Unreachable(message, reason=type(error).__name__, where=where) from error
    finally:
        _requests(verb, resource, result.code).inc()
        _seconds(verb, resource).observe(time.perf_counter() - started)


def warnings_of(headers: Iterable[str]) -> Iterator[str]:
    """The sentences in the Warning headers of an answer."""
    for header in headers:
        for quoted in _WARNING.findall(header):
            yield _ESCAPED.sub(r"\1", quoted).encode("latin-1").decode(errors="replace")
