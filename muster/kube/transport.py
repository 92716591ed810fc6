"""HTTP exchanges with the API server: aiohttp's connections, with credentials, time limits, errors and metrics.

This module does not retry requests, because only the caller knows whether a retry is harmless. (aiohttp retries a GET
or DELETE only if a reused connection is broken.)
"""

import asyncio
import io
import socket
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from functools import cache
from urllib.parse import urlencode

import aiohttp
from prometheus_client import Counter, Histogram
from yarl import URL

from muster.kube.config import ClientConfig
from muster.kube.errors import TooLarge, Unreachable, error_of, warnings_of

REQUESTS = Counter(
    "muster_kube_requests_total",
    "Requests to the API server, by verb, resource and status code; code 0 means no response.",
    ["verb", "resource", "code"],
)
REQUEST_SECONDS = Histogram(
    "muster_kube_request_seconds",
    "Seconds from a request to its response (watches: to the start of the stream), by verb and resource.",
    ["verb", "resource"],
    buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10),
)
JSON = "application/json"
MOST_BYTES = 32 * 1024 * 1024
"""Maximum size of a response or a line of a watch; the API server accepts objects of a few megabytes."""
BROKEN = (aiohttp.ClientError, OSError, UnicodeError)
"""Errors that mean that the connection failed before or during a response."""

_CONNECT_S = 5.0
_KEPT_S = 60.0
"""Time after which an idle connection is closed."""
_CREDENTIALS_S = 10.0
"""Time after which the value of the Authorization header is determined again."""
_FIRST_ERROR = 400
_SHOWN_CHARS = 500
_MOST_AT_ONCE_BYTES = 1024 * 1024
"""Maximum size of a request body that is passed to aiohttp as bytes. A larger body is passed as a file, so that the
event loop is not blocked."""
# prometheus_client computes a key of the labels under a lock at each call
_requests = cache(REQUESTS.labels)
_seconds = cache(REQUEST_SECONDS.labels)
_keepers: set[asyncio.Task[None]] = set()
"""Strong references to the tasks that keep sessions open. An event loop alone does not protect waiting tasks from
garbage collection."""


class Transport:
    """Sender of requests to one API server, on one event loop; it converts error responses into exceptions."""

    def __init__(
        self,
        config: ClientConfig,
        *,
        user_agent: str = "muster",
        connections: int = 64,
        timeout_s: float = 10.0,
        on_warning: Callable[[str], None] | None = None,
    ) -> None:
        self.timeout_s = timeout_s
        self._config = config
        self._on_warning = on_warning
        self._clock: tuple[str, float] | None = None
        self._headers = {"User-Agent": user_agent, "Accept": JSON, "Accept-Encoding": "identity"}
        self._proxy, self._to_proxy = _proxy(config.proxy)
        if config.server.startswith("http:"):  # the proxy reads the request itself
            self._headers |= self._to_proxy
        self._credentials = _CachedHeader(config.authorization)
        self._slots = asyncio.Semaphore(connections)
        self._session: aiohttp.ClientSession | None = None
        self._keeper: asyncio.Task[None] | None = None

    def server_time_s(self) -> float | None:
        """Return the API server's clock, in seconds since the epoch, exact to a second; None before any response."""
        if self._clock is None:
            return None
        date, received_at = self._clock
        try:
            return parsedate_to_datetime(date).timestamp() + time.monotonic() - received_at
        except (ValueError, OverflowError):
            return None

    async def exchange(
        self,
        method: str,
        path: str,
        *,
        verb: str = "",
        resource: str = "raw",
        body: bytes | None = None,
        content_type: str = JSON,
        accept: str = JSON,
        query: Mapping[str, str] | None = None,
        timeout_s: float | None = None,
    ) -> bytes:
        """Send one request and return the response body; raises an `APIError`."""
        headers = {"Accept": accept} if body is None else {"Accept": accept, "Content-Type": content_type}
        limit_s = self.timeout_s if timeout_s is None else timeout_s
        async with self._slots, _sending(f"{method} {path}", verb or method.lower(), resource, limit_s) as asked:
            answer = await self._send(method, path, query, headers, body)
            async with answer:
                asked.code = answer.status
                data = await _rest(answer, asked.where)
            self._judge(answer, data, asked.where)
            return data

    async def stream(
        self, path: str, *, resource: str, query: Mapping[str, str], silence_s: float | None = None
    ) -> aiohttp.ClientResponse:
        """Return a started response, which the caller must read and close; raises an `APIError`.

        Reading the response raises TimeoutError if no data arrives for `silence_s`.
        """
        async with _sending(f"GET {path}", "watch", resource, self.timeout_s) as asked:
            answer = await self._send("GET", path, query, {}, silence_s=silence_s)
            asked.code = answer.status
            try:
                refusal = await _rest(answer, asked.where) if answer.status >= _FIRST_ERROR else b""
                self._judge(answer, refusal, asked.where)
            except BaseException:
                answer.close()
                raise
            return answer

    def close(self) -> None:
        """Close all connections soon, on the event loop; calls in progress fail with `Unreachable`."""
        keeper, self._keeper, self._session = self._keeper, None, None
        if keeper is not None:
            keeper.cancel()

    async def _send(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None,
        headers: dict[str, str],
        body: bytes | None = None,
        *,
        silence_s: float | None = None,
    ) -> aiohttp.ClientResponse:
        """Return the response once its first part has arrived; the caller limits the time of the request."""
        headers = self._headers | headers
        if authorization := await self._credentials.header():
            headers["Authorization"] = authorization
        target = self._config.server + path
        if " " in target or not target.isprintable():  # it may come from a manifest, and would split the request line
            raise ValueError("a request with a forbidden line break or space")
        return await self._open().request(
            method,
            URL(f"{target}?{urlencode(query)}" if query else target, encoded=True),
            data=io.BytesIO(body) if body and len(body) > _MOST_AT_ONCE_BYTES else body,
            headers=headers,
            proxy_headers=self._to_proxy,
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_S, sock_read=silence_s),
            allow_redirects=False,
            server_hostname=self._config.server_name,
        )

    def _open(self) -> aiohttp.ClientSession:
        """Return the HTTP session of the running event loop, which is created on first use."""
        if self._session is None:
            connector = aiohttp.TCPConnector(
                limit=0, keepalive_timeout=_KEPT_S, ssl=self._config.tls or True, socket_factory=_watched_socket
            )
            self._session = aiohttp.ClientSession(
                connector=connector, proxy=self._proxy, cookie_jar=aiohttp.DummyCookieJar(), auto_decompress=False
            )
            self._keeper = asyncio.get_running_loop().create_task(_keep(self._session), name="connections")
            _keepers.add(self._keeper)
            self._keeper.add_done_callback(_keepers.discard)
        return self._session

    def _judge(self, answer: aiohttp.ClientResponse, data: bytes, where: str) -> None:
        """Record the API server's clock and its warnings, and raise the error if the request was rejected."""
        headers = answer.headers
        if date := headers.get("Date"):
            self._clock = (date, time.monotonic())
        if self._on_warning:
            for text in warnings_of(headers.getall("Warning", ())):
                self._on_warning(text)
        if answer.status >= _FIRST_ERROR:
            raise error_of(answer.status, data, where=where, retry_after=headers.get("Retry-After"))


class _CachedHeader:
    """Cache of the Authorization header. A thread determines its value, because this may require running a program.

    All calls wait for the same run of the program. A call that times out does not cancel the run, so that a hanging
    program is not started again by each call.
    """

    def __init__(self, ask: Callable[[], str] | None) -> None:
        self._ask = ask
        self._asking: asyncio.Task[str] | None = None
        self._header: str | None = None
        self._fresh_until = float("-inf")

    async def header(self) -> str | None:
        """Return the current value of the Authorization header; None if requests need no such header."""
        if self._ask is None or time.monotonic() < self._fresh_until:
            return self._header
        if self._asking is None:
            self._asking = asyncio.create_task(asyncio.to_thread(self._ask), name="credentials")
            self._asking.add_done_callback(self._answered)
        # return the response itself: a caller just before `_answered` stores it would otherwise have no connection
        return await asyncio.shield(self._asking)

    def _answered(self, asking: "asyncio.Task[str]") -> None:
        self._asking = None
        if not asking.cancelled() and asking.exception() is None:
            self._header = asking.result()
            self._fresh_until = time.monotonic() + _CREDENTIALS_S


def _proxy(url: str | None) -> tuple[URL | None, dict[str, str]]:
    """Return a proxy's URL and, separately, its headers, because aiohttp's errors would show a password in the URL."""
    proxy = URL(url) if url else None
    if proxy is None or not proxy.user:
        return proxy, {}
    basic = aiohttp.encode_basic_auth(proxy.user, proxy.password or "")
    return proxy.with_user(None), {"Proxy-Authorization": basic}


async def _keep(session: aiohttp.ClientSession) -> None:
    """Keep a session open until this task is cancelled; the end of an event loop cancels all its tasks."""
    async with session:
        await asyncio.get_running_loop().create_future()


async def _rest(answer: aiohttp.ClientResponse, where: str) -> bytes:
    """Return the response body; raise `TooLarge` and close the connection if the body is too large."""
    pieces, size_bytes = [], 0
    while piece := await answer.content.readany():
        pieces.append(piece)
        size_bytes += len(piece)
        if size_bytes > MOST_BYTES:
            answer.close()
            raise TooLarge(f"a response of more than {MOST_BYTES >> 20} MiB", status=answer.status, where=where)
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def _watched_socket(address: aiohttp.AddrInfoType) -> socket.socket:
    """Create a socket that detects within a minute that its peer has vanished, even on a stream without data."""
    family, kind, protocol, *_ = address
    made = socket.socket(family, kind, protocol)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3)):
        if hasattr(socket, name):  # macOS uses another name for the first option
            made.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
    return made


@dataclass(slots=True)
class _SentRequest:
    """Data about one request, for its metrics; `code` is the status of the response once the response has arrived."""

    where: str
    code: int = 0


@asynccontextmanager
async def _sending(where: str, verb: str, resource: str, timeout_s: float) -> AsyncIterator[_SentRequest]:
    """Limit the time of a request, count the request, and raise `Unreachable` for each failure of the connection."""
    started = time.perf_counter()
    sent = _SentRequest(where)
    try:
        async with asyncio.timeout(timeout_s):
            yield sent
    except BROKEN as error:
        sent.code = 0
        message = f"no answer from the API server: {sentence(error, timeout_s)}"
        raise Unreachable(message, reason=type(error).__name__, where=where) from error
    finally:
        _requests(verb, resource, sent.code).inc()
        _seconds(verb, resource).observe(time.perf_counter() - started)


def sentence(error: BaseException, timeout_s: float = 0.0) -> str:
    """Return a sentence about one of the errors `BROKEN`."""
    if isinstance(error, aiohttp.ClientHttpProxyError):
        return f"the proxy does not connect to the server: {error.status} {error.message}"
    if isinstance(error, aiohttp.ClientResponseError):
        return f"no HTTP answer: {error.message.partition(':')[0]}"  # in that case the message quotes the response
    if isinstance(error, aiohttp.ServerDisconnectedError):
        return "the connection ended before the response"
    if isinstance(error, TimeoutError) and not str(error):
        return f"no response within {timeout_s:g} s"
    return str(error)[:_SHOWN_CHARS] or type(error).__name__
