"""Server of a Flask app with gunicorn: a master process, and one uvicorn worker with some threads for the app.

The master only holds the socket, and restarts a worker that has died; all state and all threads are in the worker.
Therefore `on_worker_start` starts threads, caches and the status port after the fork.
"""

import asyncio
import ctypes
import logging
import math
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from io import BytesIO
from typing import Any

import flask
from a2wsgi.wsgi import build_environ
from gunicorn.app.base import BaseApplication
from gunicorn.arbiter import Arbiter
from gunicorn.glogging import Logger
from starlette.middleware.body_limit import RequestBodyLimitMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.routing import Router
from starlette.types import Receive, Scope, Send
from uvicorn_worker import UvicornWorker
from werkzeug.wrappers import Response

from muster.api.base import prepare
from muster.kube.loop import prefer_the_loop
from muster.process import serve as servers
from muster.process.draining import DrainingServer
from muster.process.memory import freeze
from muster.process.tls import Files, ServerTLS, send_end

LARGE_BYTES = 64 * 1024
LARGE_AT_ONCE = 8
"""Maximum number of large request bodies that are read at the same time. Without the limit, clients could fill the
memory with incomplete requests."""


class ThreadedApp:
    """The Flask app as an ASGI app: one of the threads processes a request once the request is complete."""

    def __init__(self, app: flask.Flask, threads: int) -> None:
        self._app = app
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="app")
        self._large = asyncio.Semaphore(LARGE_AT_ONCE)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        try:
            body = await self._body(Request(scope, receive))
        except ClientDisconnect:
            return
        loop = asyncio.get_running_loop()
        status, headers, content = await loop.run_in_executor(self._pool, self._answer, scope, body)
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": content})

    async def _body(self, request: Request) -> bytes:
        if "transfer-encoding" not in request.headers and int(request.headers.get("content-length", 0)) <= LARGE_BYTES:
            return await request.body()
        async with self._large:
            return await request.body()

    def _answer(self, scope: Any, body: bytes) -> tuple[int, list[tuple[bytes, bytes]], bytes]:
        response = Response.from_app(self._app, build_environ(scope, BytesIO(body)), buffered=True)  # type: ignore[arg-type]
        headers = [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in response.headers]
        return response.status_code, headers, response.get_data()


_STOP_S = 5
"""Maximum time for `on_worker_stop`, in addition to the time for requests in progress."""
_PR_SET_PDEATHSIG = 1
_MEMORY = "/dev/shm"  # noqa: S108 - a folder whose files are never written to a disk


def serve(
    app: flask.Flask,
    *,
    host: str,
    port: int,
    threads: int,
    name: str,
    files: Files,
    drain_s: float = 0.0,
    on_worker_start: Callable[[], None] = lambda: None,
    on_worker_stop: Callable[[], None] = lambda: None,
) -> None:
    """Serve over TLS until SIGTERM, then end the process with SystemExit (0 after an orderly stop).

    Raises FileError if the TLS `files` cannot be used. Changes of the files apply to new connections. `on_worker_start`
    runs in the worker before the first request and must not block; if it raises, the process ends with an error. After
    SIGTERM, the worker serves for up to `drain_s` seconds more, until clients have closed their connections.
    `on_worker_stop` runs in a thread of the worker after its last request.
    """
    servers.allow_descriptors()
    tls = ServerTLS(files)
    tls.read_files()
    send_end(tls)
    settings: dict[str, Any] = {
        "bind": f"{host}:{port}",
        "backlog": servers.BACKLOG,
        "certfile": str(files.cert),  # for gunicorn's own messages; the worker uses `tls`
        "keyfile": str(files.key),
        "worker_class": _worker(servers.settings(tls) | {"lifespan": "on"}, drain_s),
        "workers": 1,
        "graceful_timeout": math.ceil(drain_s) + servers.GRACE_S + _STOP_S,
        # The liveness probe decides about a worker that seems to hang; gunicorn would kill the worker, which loses its
        # caches.
        "timeout": 0,
        "control_socket_disable": True,
        "proc_name": name,
        "logger_class": _Log,
        "post_worker_init": lambda worker: _tie(worker.ppid),
    }
    if os.access(_MEMORY, os.W_OK):  # gunicorn creates a private file for its heartbeat here
        settings["worker_tmp_dir"] = _MEMORY
    _Application(lambda: _in_worker(app, threads, on_worker_start, on_worker_stop), settings).run()


def _worker(settings: dict[str, Any], drain_s: float) -> type[UvicornWorker]:
    """Return the class of the worker: uvicorn's, with a server that drains after SIGTERM."""

    class Worker(UvicornWorker):  # type: ignore[misc] # it ships no types
        CONFIG_KWARGS = settings

        async def _serve(self) -> None:
            self.config.app = self.wsgi
            server = DrainingServer(self.config, drain_s)
            self._install_sigquit_handler()
            await server.serve(sockets=self.sockets)
            if not server.started:
                sys.exit(Arbiter.WORKER_BOOT_ERROR)

    return Worker


def _in_worker(app: flask.Flask, threads: int, on_start: Callable[[], None], on_stop: Callable[[], None]) -> Router:
    """Return the app, wrapped in the form in which the worker serves it."""

    @asynccontextmanager
    async def life(_: Router) -> AsyncIterator[None]:
        logging.getLogger("uvicorn.error").propagate = True  # the worker has set up its own handler
        prepare()
        prefer_the_loop()
        freeze()  # a collection of all modules' objects would stop the worker for 50 ms
        on_start()
        yield
        await asyncio.to_thread(on_stop)

    bounded = RequestBodyLimitMiddleware(ThreadedApp(app, threads), app.config["MAX_CONTENT_LENGTH"])
    return Router(default=bounded, lifespan=life)


def _tie(master_pid: int) -> None:
    """Make the kernel end the worker when its master ends.

    Otherwise, the worker of a killed master would continue to run for some seconds alongside the new worker.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != master_pid:
            raise RuntimeError("the master process is already gone")


class _Log(Logger):  # type: ignore[misc] # gunicorn ships no types
    """Adapter that sends gunicorn's own messages to the common log; there is no access log."""

    def setup(self, cfg: Any) -> None:
        """Install none of gunicorn's own handlers."""
        self.cfg = cfg
        self._access_log_enabled = False
        self.error_log.propagate = True
        self.error_log.setLevel(logging.NOTSET)


class _Application(BaseApplication):  # type: ignore[misc] # gunicorn ships no types
    """gunicorn application whose settings come only from code: not from files, the command line or the environment."""

    def __init__(self, load: Callable[[], Any], settings: Mapping[str, Any]) -> None:
        self._load = load
        self._settings = settings
        super().__init__()

    def load_config(self) -> None:
        """Store the given settings unchanged."""
        for key, value in self._settings.items():
            self.cfg.set(key, value)

    def load(self) -> Any:
        """Create the app in the worker."""
        return self._load()
