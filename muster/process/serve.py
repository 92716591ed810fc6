"""Servers of ASGI apps with uvicorn, on an event loop in the main thread (`run`) or in a separate thread (`Threaded`).

A request that waits is a coroutine, which occupies a connection but no thread. Code on the event loop must not block
it, so blocking calls belong in a thread. `muster.process.bounds` limits clients, and `muster.process.tls` provides
encryption.
"""

import asyncio
import resource
import signal
import socket
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, Final

import structlog
import uvicorn
import uvloop
from starlette.types import ASGIApp

from muster.api.base import prepare
from muster.kube.loop import prefer_the_loop
from muster.process.bounds import BoundedConnection
from muster.process.tls import ServerTLS

log = structlog.get_logger()

IDLE_S: Final = 120
"""Time after which an idle connection is closed: longer than the 90 s of Go's clients, because the server must not
close a connection first."""
GRACE_S: Final = 5
"""Maximum time for requests in progress once the server is stopping."""
BACKLOG: Final = 4096
"""Maximum number of connections that wait to be accepted."""


def settings(tls: ServerTLS | None) -> dict[str, Any]:
    """Return the arguments of `uvicorn.Config` that all servers share."""
    return {
        "loop": "uvloop",
        "http": BoundedConnection,
        "ws": "none",
        "interface": "asgi3",
        "log_config": None,
        "log_level": "error",  # a client that sends invalid data is not worth a log line
        "access_log": False,
        "proxy_headers": False,
        "server_header": False,
        "backlog": BACKLOG,
        "timeout_keep_alive": IDLE_S,
        "timeout_graceful_shutdown": GRACE_S,
        "ssl_context_factory": (lambda _config, _default: tls.context) if tls else None,
    }


def listen(host: str, port: int) -> socket.socket:
    """Open a socket on this address, where `::` serves IPv6 and IPv4, and port 0 selects a free port.

    Return a listening socket; raises OSError if the port is in use.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    dual = family is socket.AF_INET6 and socket.has_dualstack_ipv6()
    return socket.create_server((host, port), family=family, backlog=BACKLOG, dualstack_ipv6=dual)


@asynccontextmanager
async def serving(app: ASGIApp, listening: socket.socket, tls: ServerTLS | None = None) -> AsyncIterator[Any]:
    """Serve on the running loop within an `async with` block, and finish requests in progress at its end.

    Yields the server's task.
    """
    server = _Server(uvicorn.Config(app, lifespan="off", **settings(tls)))
    task = asyncio.create_task(server.serve([listening]))
    try:
        yield task
    finally:
        server.should_exit = True
        await task


def run(
    app: ASGIApp,
    *,
    host: str,
    port: int,
    on_start: Callable[[], None],
    on_stopping: Callable[[], None] = lambda: None,
    on_stop: Callable[[], None] = lambda: None,
    loop: asyncio.AbstractEventLoop | None = None,
    tls: ServerTLS | None = None,
) -> None:
    """Serve until SIGTERM or SIGINT, in this thread, on `loop` or a new event loop.

    Raises OSError if the port cannot be opened. `on_start` runs before the first request; its exceptions are raised to
    the caller. After the signal, `on_stopping` runs on the loop. Requests in progress then get up to five seconds to
    finish, and `on_stop` runs in a thread.
    """
    allow_descriptors()
    prepare()
    prefer_the_loop()

    async def serve(listening: socket.socket) -> None:
        stopped = asyncio.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, stopped.set)
        on_start()
        log.info("serving", port=listening.getsockname()[1], tls=tls is not None)
        try:
            async with serving(app, listening, tls) as server:
                try:
                    waiting = (asyncio.ensure_future(stopped.wait()), server)
                    await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
                    if not stopped.is_set():
                        raise RuntimeError("the server ended unexpectedly")
                finally:
                    on_stopping()
        finally:
            await asyncio.to_thread(on_stop)

    with (
        listen(host, port) as listening,
        asyncio.Runner(loop_factory=lambda: loop or uvloop.new_event_loop()) as runner,
    ):
        runner.run(serve(listening))


class Threaded:
    """Server of an app in a daemon thread; the server closes its sockets at the end.

    Start this server after a fork, never before, because threads do not survive a fork.
    """

    def __init__(self, name: str, app: ASGIApp, listening: list[socket.socket], tls: ServerTLS | None = None) -> None:
        self._server = _Server(uvicorn.Config(app, lifespan="off", **settings(tls)))
        self._listening = listening
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Start the thread that serves the app."""
        self._thread.start()

    def stop(self) -> None:
        """Finish requests in progress, and close the port."""
        self._server.should_exit = True
        self._thread.join()

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(self._server.serve(self._listening))


def allow_descriptors() -> None:
    """Raise the limit of file descriptors to the maximum: each connection uses one, and the usual limit is 1,024."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


class _Server(uvicorn.Server):
    """uvicorn's server without its signal handlers, because the process handles signals."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Do nothing, so that uvicorn installs no signal handlers."""
        yield
