"""Health checks and metrics of a process, served over plain HTTP on a separate port; /debug only on loopback."""

import asyncio
import platform
import sys
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from http import HTTPStatus
from importlib.metadata import version
from typing import Any, Final

import msgspec
import structlog
from prometheus_client import REGISTRY, CollectorRegistry
from prometheus_client.exposition import choose_encoder
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from muster.kube.loop import background_loop
from muster.process.hosts import host_of, is_loopback
from muster.process.serve import Threaded, listen

THREADS: Final = "/debug/threads"
TASKS: Final = "/debug/tasks"
PAGES: Final = ("/debug", THREADS, TASKS)


class Debug:
    """Debug pages of one process, which show its `options`, and the numbers of objects that `sizes` returns.

    `loop` returns the event loop whose tasks are shown; by default, the loop of the API client.
    """

    def __init__(
        self,
        process: str,
        options: object,
        sizes: Callable[[], Mapping[str, int]],
        loop: Callable[[], asyncio.AbstractEventLoop] = background_loop,
    ) -> None:
        self._process = process
        self._options = options
        self._sizes = sizes
        self._loop = loop
        self._began_s = time.monotonic()

    def page(self, path: str) -> Response:
        """Return the page at this path, which must be one of `PAGES`."""
        if path in {TASKS, THREADS}:
            return PlainTextResponse(waits(self._loop()) if path == TASKS else stacks())
        text = msgspec.json.format(msgspec.json.encode(self.summary(), enc_hook=str)) + b"\n"
        return Response(text, media_type="application/json")

    def summary(self) -> dict[str, Any]:
        """Return the version, the options including the settings, and the numbers of objects; times are in seconds."""
        return {
            "process": self._process,
            "version": version("muster"),
            "python": platform.python_version(),
            "upSeconds": round(time.monotonic() - self._began_s),
            "threads": threading.active_count(),
            "options": self._options,
            "sizes": dict(self._sizes()),
            "more": [THREADS, TASKS],
        }


def stacks() -> str:
    """Return the stack of each thread, with the innermost call last."""
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    found = [
        f"{names.get(number, 'unknown')}\n{''.join(traceback.format_stack(frame))}"
        for number, frame in sys._current_frames().items()  # noqa: SLF001 - the documented way to all stacks
    ]
    return "\n".join(sorted(found))


def waits(loop: asyncio.AbstractEventLoop) -> str:
    """Return the stacks of an event loop's tasks, with the innermost call last.

    Equal stacks are listed once, with the number of their tasks.
    """
    counts = Counter("".join(_places(task.get_coro())) for task in asyncio.all_tasks(loop))
    return "\n".join(f"{count} tasks\n{place}" for place, count in counts.most_common())


def _places(awaited: Any) -> Iterator[str]:
    """Yield the frames from a coroutine to the innermost one that it awaits; other awaitables have no frames."""
    while (frame := getattr(awaited, "cr_frame", None)) is not None:
        yield f'  File "{frame.f_code.co_filename}", line {frame.f_lineno}, in {frame.f_code.co_name}\n'
        awaited = awaited.cr_await


log = structlog.get_logger()
LOOPBACK = "127.0.0.1"
_EVERYWHERE = ("", "0.0.0.0", "::")  # noqa: S104 - where one listens on all addresses, and none is left for loopback alone
_NOT_FOUND = "not found; the pages are /metrics, /healthz and /readyz\n"

Check = Callable[[], str | None]
"""Function that returns None if all is well, otherwise one sentence that explains why the process is not ready."""


class Health:
    """Health of a process: it is ready if no check fails, and alive if no liveness check fails."""

    def __init__(self) -> None:
        self._checks: dict[str, Check] = {}
        self._liveness: dict[str, Check] = {}

    def add_check(self, name: str, check: Check) -> None:
        """Add a check.

        Add a readiness check. The check is called at each probe, so it must be fast and must not raise an exception.
        """
        self._checks[name] = check

    def add_liveness_check(self, name: str, check: Check) -> None:
        """Add a check for faults that only a restart of the process can fix.

        Like any check, a liveness check must be fast and must not raise an exception.
        """
        self._liveness[name] = check

    def ready(self) -> dict[str, str]:
        """Return the reasons of failed checks, keyed by the check's name; empty if the process is ready."""
        return _objections(self._liveness | self._checks)

    def alive(self) -> dict[str, str]:
        """Return the reasons of failed liveness checks, keyed by the check's name; empty while the process is alive."""
        return _objections(self._liveness)


def _objections(checks: Mapping[str, Check]) -> dict[str, str]:
    reasons = {name: check() for name, check in checks.items()}
    return {name: reason for name, reason in reasons.items() if reason is not None}


class StatusServer:
    """Server of /metrics, /healthz (the process is alive) and /readyz (the process can work), in a daemon thread.

    /debug is served on loopback only. If `host` is the address of another interface, the server also listens on the
    same port of the loopback, where `kubectl port-forward` connects. Start the server after a fork, never before:
    threads do not survive a fork, and metrics belong to the process that counts them. With port 0, the server selects a
    free port, which `port` returns.
    """

    def __init__(
        self,
        port: int,
        health: Health,
        registry: CollectorRegistry = REGISTRY,
        host: str = LOOPBACK,
        debug: Debug | None = None,
    ) -> None:
        self._host = host
        self._debug = debug if host not in _EVERYWHERE else None
        self._app = _app(health, registry, self._debug)
        self._server: Threaded | None = None
        self.port = port

    def start(self) -> None:
        """Bind the port (OSError if it is in use) and start to serve."""
        listening = [listen(self._host, self.port)]
        self.port = listening[0].getsockname()[1]
        if self._debug and not is_loopback(self._host):
            try:
                listening.append(listen(LOOPBACK, self.port))
            except OSError as error:  # on a node's own network, another process may use the port
                log.warning("there is no /debug", host=LOOPBACK, port=self.port, why=str(error))
        self._server = Threaded("status", self._app, listening)
        self._server.start()
        log.info("status server started", host=self._host, port=self.port)

    def stop(self) -> None:
        """End the thread and free the port; do nothing if the server was not started."""
        if self._server:
            self._server.stop()
            self._server = None


def _app(health: Health, registry: CollectorRegistry, debug: Debug | None) -> Starlette:
    async def metrics(request: Request) -> Response:
        encode, content_type = choose_encoder(request.headers.get("accept", ""))
        return Response(encode(registry), headers={"content-type": content_type})

    async def healthz(_: Request) -> Response:
        return _response(health.alive())

    async def readyz(_: Request) -> Response:
        return _response(health.ready())

    def page(request: Request) -> Response:  # in a thread, because the page may wait for the loop that it describes
        if debug is None or not _is_local(request):
            raise HTTPException(HTTPStatus.NOT_FOUND)
        return debug.page(request.scope["path"])

    async def not_found(_: Request, _error: Exception) -> Response:
        return PlainTextResponse(_NOT_FOUND, HTTPStatus.NOT_FOUND)

    routes = [Route("/metrics", metrics), Route("/healthz", healthz), Route("/readyz", readyz)]
    routes += [Route(path, page) for path in PAGES]
    return Starlette(routes=routes, exception_handlers={HTTPStatus.NOT_FOUND: not_found})


def _response(reasons: Mapping[str, str]) -> Response:
    text = "".join(f"{name}: {reason}\n" for name, reason in reasons.items()) or "ok\n"
    return PlainTextResponse(text, HTTPStatus.SERVICE_UNAVAILABLE if reasons else HTTPStatus.OK)


def _is_local(request: Request) -> bool:
    """Return True for a request over loopback whose host is this machine; no web page can send such a request."""
    address = (request.scope["server"] or ("",))[0]
    named = host_of(request.headers.get("host", ""))
    return is_loopback(address) and is_loopback(named) and "origin" not in request.headers
