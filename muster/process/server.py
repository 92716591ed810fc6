"""Serves a Flask app with gunicorn: one worker process, a few threads, long keep-alive, TLS that notices new files.

The master process only holds the socket and starts the worker again when it dies; all state and all threads live in the
worker. So threads, caches and the status port are started by `on_worker_start`, after the fork.
"""

import ctypes
import logging
import os
import resource
import signal
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import flask
import structlog
from gunicorn.app.base import BaseApplication
from gunicorn.glogging import Logger

from muster.api.base import prepare
from muster.process.connection import Limits
from muster.process.direct import Direct
from muster.process.tls import TLSContext
from muster.process.tlsfiles import memory_folder, tell_end
from muster.process.worker import Worker

log = structlog.get_logger()

GRACEFUL_TIMEOUT_S = 5
SPARE_CONNECTIONS = 200
"""Connections beside those that threads work for: idle ones, and those whose request is not whole yet."""
_PR_SET_PDEATHSIG = 1


def serve(
    app: flask.Flask,
    *,
    host: str,
    port: int,
    threads: int,
    name: str,
    cert_file: str | Path | None = None,
    key_file: str | Path | None = None,
    client_ca_file: str | Path | None = None,
    on_worker_start: Callable[[], None] | None = None,
    on_worker_stop: Callable[[], None] | None = None,
    graceful_timeout_s: int = GRACEFUL_TIMEOUT_S,
    limits: Limits | None = None,
    direct: Direct | None = None,
) -> None:
    """Serves until SIGTERM, then ends the process with SystemExit (0 after an orderly stop).

    With certificate files it speaks TLS and takes up new files with the next connection; with `client_ca_file` too, it
    answers only clients that have a certificate of that authority. `on_worker_start` runs in the
    worker before the first request and must not block; if it raises, the process ends with an error. `on_worker_stop`
    runs in the worker after its last request. `limits` are what one client, and all together, may take. `direct` is
    asked before the app, in the same threads, and answers what it knows without it.
    """
    limits = limits or Limits(connections=threads + SPARE_CONNECTIONS)
    _allow_descriptors()
    settings: dict[str, Any] = {
        "bind": f"{host}:{port}",
        "worker_class": type("Worker", (Worker,), {"limits": limits, "direct": direct and staticmethod(direct)}),
        "workers": 1,
        "threads": threads,
        "worker_connections": limits.connections + threads,
        "keepalive": max(1, round(limits.idle_s)),
        "graceful_timeout": graceful_timeout_s,
        # A worker that seems to hang is judged by the liveness probe; gunicorn would kill it and lose its caches.
        "timeout": 0,
        "control_socket_disable": True,
        "proc_name": name,
        "logger_class": _Log,
        "post_worker_init": lambda worker: _worker_started(worker.ppid, on_worker_start),
        "worker_exit": lambda _arbiter, _worker: on_worker_stop() if on_worker_stop else None,
    }
    if memory := memory_folder():  # gunicorn makes a private file there for its heartbeat; a disk could stall it
        settings["worker_tmp_dir"] = memory
    if cert_file and key_file:
        context = TLSContext(Path(cert_file), Path(key_file), Path(client_ca_file) if client_ca_file else None)
        context.get()  # a bad pair fails here, before anything runs
        tell_end(context.ends_s)
        settings |= {
            "certfile": str(cert_file),
            "keyfile": str(key_file),
            "ssl_context": lambda _config, _default: context.get(),
        }
    _Server(app, settings).run()


def _allow_descriptors() -> None:
    """Takes as many file descriptors as the process may have: each connection is one, and the usual start is 1,024."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def _worker_started(master_pid: int, on_worker_start: Callable[[], None] | None) -> None:
    """Ties the worker's life to its master's, then starts what the app needs."""
    if sys.platform == "linux":
        # Without this a worker whose master was killed would live on for seconds, beside its successor.
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != master_pid:
            raise RuntimeError("the master process is gone already")
    prepare()
    if on_worker_start:
        on_worker_start()


class _Log(Logger):  # type: ignore[misc] # gunicorn ships no types
    """Sends gunicorn's own messages the way of all logs; there is no access log (each app logs what it decides)."""

    def setup(self, cfg: Any) -> None:
        """Instead of gunicorn's own handlers: none."""
        self.cfg = cfg
        self._access_log_enabled = False
        self.error_log.propagate = True
        self.error_log.setLevel(logging.NOTSET)


class _Server(BaseApplication):  # type: ignore[misc] # gunicorn ships no types
    """gunicorn with settings from code only: no files, no command line, no environment."""

    def __init__(self, app: flask.Flask, settings: Mapping[str, Any]) -> None:
        self._app = app
        self._settings = settings
        super().__init__()

    def load_config(self) -> None:
        """Takes the settings as they are."""
        for key, value in self._settings.items():
            self.cfg.set(key, value)

    def load(self) -> flask.Flask:
        """The WSGI app, in the worker."""
        return self._app
