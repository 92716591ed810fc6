"""Serves coroutines over HTTP in this process's own event loop: granian's embedded server under uvloop.

A call that waits is a coroutine here and costs next to nothing while it does, where `muster.process.server` needs a
thread for it. In return nothing may block the loop: what does belongs in a thread.

The server is for one client that we trust to be quick, on loopback: there is no bound on how many connections it opens.
It is not for what strangers reach; `muster.process.server` has deadlines for each step of a connection.
"""

import asyncio
import resource
import signal
import socket
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from http import HTTPStatus
from typing import Any, NamedTuple, Protocol

import structlog
import uvloop
from granian.constants import HTTPModes, Interfaces, TaskImpl
from granian.http import HTTP1Settings, HTTP2Settings
from granian.log import LogLevels
from granian.server.embed import Server

from muster.api.base import prepare

log = structlog.get_logger()

MOST_CALLS = 40_000
"""Calls that are worked on at once; more wait in the socket."""
_BACKLOG = 4096
_LOOK_S = 0.005
_IDLE_MS = 120_000
"""Go clients keep idle connections for 90 s; whoever closes first must not be the server."""
_BODY_BYTES = 16 * 1024 * 1024
_BODY_S = 10.0
_GRACE_S = 5.0
_SWITCH_S = 0.001
"""How long another thread may keep the interpreter while the loop has something to do; Python's own is five times that.

The planner computes for long; an answer that waits for it waits in kube-scheduler, too.
"""
_LOGGING: dict[str, Any] = {"incremental": True, "formatters": {}, "handlers": {}, "loggers": {"_granian": {}}}
"""Leaves all logging as it is, so that the server's own messages go the way of all others."""


class Headers(Protocol):
    """A request's headers; names are in lower case."""

    def get(self, name: str, default: str = "", /) -> str:
        """The first header of this name."""

    def __contains__(self, name: object, /) -> bool: ...


class Refused(Exception):  # noqa: N818 - it is an answer, not a failure
    """The body is not read; `answer` is what the client is told."""

    def __init__(self, status: HTTPStatus, why: str) -> None:
        super().__init__(why)
        self.answer = Answer(status, f"{why}\n".encode(), "text/plain; charset=utf-8")


class Answer(NamedTuple):
    """What the client gets."""

    status: HTTPStatus
    body: bytes
    content_type: str = "application/json"


class Request(NamedTuple):
    """One request. `host` is how the client calls this server; `body` reads it, once, and may raise `Refused`."""

    method: str
    path: str
    host: str
    headers: Headers
    body: Callable[[], Awaitable[bytes]]


App = Callable[[Request], Awaitable[Answer]]


def run(
    app: App,
    *,
    host: str,
    port: int,
    on_start: Callable[[], None],
    on_stopping: Callable[[], None] = lambda: None,
    on_stop: Callable[[], None] = lambda: None,
    loop: asyncio.AbstractEventLoop | None = None,
) -> None:
    """Serves until SIGTERM or SIGINT; then the process may end. It runs `loop`, if given one, and closes it.

    `on_start` runs before the first request; if it raises, so does this. After the signal `on_stopping` runs on the
    loop, requests under way are answered for up to five seconds, and `on_stop` runs in a thread.
    """
    _allow_descriptors()
    prepare()
    sys.setswitchinterval(_SWITCH_S)
    with asyncio.Runner(loop_factory=lambda: loop or new_loop()) as runner:
        runner.run(_run(app, host, port, (on_start, on_stopping, on_stop)))


def new_loop() -> asyncio.AbstractEventLoop:
    """A loop for `run`: whoever shares it with the server makes it first."""
    return uvloop.new_event_loop()


class Listener:
    """A server on the running loop, from `start` to `stop`."""

    def __init__(self, app: App, *, host: str, port: int) -> None:
        self._host, self._port = host, port
        self._server = Server(
            _Target(app),
            address=host,
            port=port,
            interface=Interfaces.RSGI,
            http=HTTPModes.auto,
            task_impl=TaskImpl.asyncio,
            websockets=False,
            backlog=_BACKLOG,
            backpressure=MOST_CALLS,
            http1_settings=HTTP1Settings(header_read_timeout=_IDLE_MS),
            http2_settings=HTTP2Settings(max_concurrent_streams=MOST_CALLS),
            log_level=LogLevels.error,
            log_dictconfig=_LOGGING,
        )
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Listens; OSError if the port cannot be had, as it is taken, say."""
        await _check_free(self._host, self._port)
        self._task = asyncio.create_task(self._server.serve())
        while not self._task.done():
            with suppress(ConnectionRefusedError):
                _, writer = await asyncio.open_connection(self._host, self._port)
                writer.close()
                return
            await asyncio.sleep(_LOOK_S)
        await self._task

    async def ended(self) -> None:
        """Returns, or raises, when the server has ended by itself."""
        if self._task:
            await asyncio.shield(self._task)

    async def stop(self) -> None:
        """Accepts nothing any more, and waits a moment for what is being answered."""
        if self._task:
            self._server.signal_handler_interrupt()  # type: ignore[no-untyped-call]
            with suppress(TimeoutError):
                await asyncio.wait_for(self._task, _GRACE_S)
            self._task = None


class _Target:
    """The app as granian calls it (RSGI)."""

    def __init__(self, app: App) -> None:
        self._app = app

    async def __rsgi__(self, scope: Any, protocol: Any) -> None:
        headers = scope.headers

        async def body() -> bytes:
            _check_length(headers.get("content-length", ""))
            try:
                async with asyncio.timeout(_BODY_S):
                    content: bytes = await protocol()
                    return content
            except TimeoutError:
                raise Refused(HTTPStatus.REQUEST_TIMEOUT, "the body did not come in time") from None

        # HTTP/2 has an authority instead of the header
        host = scope.authority or headers.get("host", "")
        try:
            answer = await self._app(Request(scope.method, scope.path, host, headers, body))
        except Refused as refused:
            answer = refused.answer
        except Exception:
            log.exception("a request was not answered", path=scope.path)
            answer = Answer(HTTPStatus.INTERNAL_SERVER_ERROR, b"see the log\n", "text/plain; charset=utf-8")
        protocol.response_bytes(answer.status.value, [("content-type", answer.content_type)], answer.body)


def _check_length(header: str) -> None:
    """A body whose length is not said, or is too much, is not read."""
    if not header.isdecimal() or not header.isascii():
        raise Refused(HTTPStatus.LENGTH_REQUIRED, "say the length of the body, as Content-Length")
    if len(header) > len(str(_BODY_BYTES)) or int(header) > _BODY_BYTES:
        raise Refused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"the body has more than {_BODY_BYTES} bytes")


async def _check_free(host: str, port: int) -> None:
    """The server itself would share a port with another process, and each would get some of the calls."""
    loop = asyncio.get_running_loop()
    for family, kind, proto, _, address in await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM):
        with socket.socket(family, kind, proto) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)


async def _run(
    app: App, host: str, port: int, on: tuple[Callable[[], None], Callable[[], None], Callable[[], None]]
) -> None:
    on_start, on_stopping, on_stop = on
    loop, told = asyncio.get_running_loop(), asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, told.set)
    listener = Listener(app, host=host, port=port)
    on_start()
    try:
        await listener.start()
        log.info("serving", host=host, port=port)
        waits = [asyncio.ensure_future(told.wait()), asyncio.ensure_future(listener.ended())]
        done, _ = await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        if waits[1] in done and not told.is_set():
            raise RuntimeError("the server has ended by itself") from waits[1].exception()
    finally:
        on_stopping()
        await listener.stop()
        await asyncio.to_thread(on_stop)


def _allow_descriptors() -> None:
    """Takes as many file descriptors as the process may have: each held call of HTTP/1.1 is one."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
