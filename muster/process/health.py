"""Health and metrics of a process, on a plain HTTP port of its own; on loopback also its /debug."""

import threading
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

import structlog
from prometheus_client import REGISTRY, CollectorRegistry
from prometheus_client.exposition import choose_encoder

from muster.process.debug import Debug
from muster.process.loopback import host_of, is_loopback

log = structlog.get_logger()
LOOPBACK = "127.0.0.1"
_EVERYWHERE = ("", "0.0.0.0", "::")  # noqa: S104 - where one listens on all addresses, and none is left for loopback alone

Check = Callable[[], str | None]
"""None when all is well, else one sentence: why the process is not ready."""


_POLL_S = 0.1  # how soon the server's thread notices that it shall stop


CLIENT_TIMEOUT_S = 10.0
"""How long a client of the status port may be silent; each has a thread of its own."""


class Health:
    """The readiness checks of a process; it is ready when none of them objects."""

    def __init__(self) -> None:
        self._checks: dict[str, Check] = {}

    def add_check(self, name: str, check: Check) -> None:
        """Adds a check; it is called on each probe, so it must be quick and must not raise."""
        self._checks[name] = check

    def ready(self) -> dict[str, str]:
        """Name → reason of each check that objects; empty when the process is ready."""
        reasons = {name: check() for name, check in self._checks.items()}
        return {name: reason for name, reason in reasons.items() if reason is not None}


class StatusServer:
    """Serves /metrics, /healthz (the process answers) and /readyz (it can do its work) from a daemon thread.

    /debug is served on loopback only: where `host` is another address, of one interface, a second server on the
    loopback's port of the same number has it (`kubectl port-forward` arrives there). Start it after a fork, never
    before: threads don't survive one, and metrics belong to the process that counts. Port 0 takes a free one; `port`
    tells which.
    """

    def __init__(
        self,
        port: int,
        health: Health,
        registry: CollectorRegistry = REGISTRY,
        host: str = LOOPBACK,
        debug: Debug | None = None,
    ) -> None:
        self._address = (host, port)
        self._health = health
        self._registry = registry
        self._debug = debug
        self._running: list[tuple[ThreadingHTTPServer, threading.Thread]] = []

    @property
    def port(self) -> int:
        """The port that is listened on; the wanted one before `start`."""
        return self._running[0][0].server_port if self._running else self._address[1]

    def start(self) -> None:
        """Binds the port (OSError if it is taken) and starts to answer."""
        host = self._address[0]
        self._serve(self._address)
        log.info("status server started", host=host, port=self.port)
        if self._debug and not is_loopback(host) and host not in _EVERYWHERE:
            try:
                self._serve((LOOPBACK, self.port))
            except OSError as error:  # on a node's own network somebody else may have it
                log.warning("there is no /debug", host=LOOPBACK, port=self.port, why=str(error))

    def stop(self) -> None:
        """Ends the threads and frees the port; harmless when it was not started."""
        for server, thread in self._running:
            server.shutdown()
            server.server_close()
            thread.join()
        self._running.clear()

    def _serve(self, address: tuple[str, int]) -> None:
        """One more server; only one on loopback knows of /debug."""
        server = ThreadingHTTPServer(address, self._handler(self._debug if is_loopback(address[0]) else None))
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, args=(_POLL_S,), name="status", daemon=True)
        thread.start()
        self._running.append((server, thread))

    def _handler(self, debug: Debug | None) -> type[BaseHTTPRequestHandler]:
        health, registry = self._health, self._registry

        class Handler(BaseHTTPRequestHandler):
            """One request to the status port."""

            timeout = CLIENT_TIMEOUT_S

            def do_GET(self) -> None:
                """Answers the three paths and, on loopback, those of /debug; everything else with 404."""
                path = urlsplit(self.path).path
                if path == "/metrics":
                    encode, content_type = choose_encoder(self.headers.get("Accept", ""))
                    self._reply(HTTPStatus.OK, encode(registry), content_type)
                elif path == "/healthz":
                    self._reply(HTTPStatus.OK, b"ok\n")
                elif path == "/readyz":
                    reasons = health.ready()
                    text = "".join(f"{name}: {reason}\n" for name, reason in reasons.items()) or "ok\n"
                    self._reply(HTTPStatus.SERVICE_UNAVAILABLE if reasons else HTTPStatus.OK, text.encode())
                elif debug and self._is_local() and (page := debug.page(path)):
                    self._reply(HTTPStatus.OK, page[1], page[0])
                else:
                    self._reply(HTTPStatus.NOT_FOUND, b"not found; there are /metrics, /healthz and /readyz\n")

            def _is_local(self) -> bool:
                """Whether the caller names this machine, as no web page of a browser here can."""
                return is_loopback(host_of(self.headers.get("Host", ""))) and "Origin" not in self.headers

            def _reply(self, status: HTTPStatus, body: bytes, content_type: str = "text/plain; charset=utf-8") -> None:
                self.send_response(status)
                self.send_header("Content-Type", content_type)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name is http.server's
                """Probes come every few seconds; they are not worth a line."""

        return Handler
