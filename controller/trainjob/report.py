"""The status server: trainers tell over HTTPS how far they are, and it is written to `status.trainerStatus`.

Every replica of the controller answers, leader or not: a report is a review of its token and one write. Kubeflow's SDK
calls it with `update_trainjob_status`.
"""

import json
import ssl
import threading
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socket import socket
from typing import Any, Final

import structlog
from msgspec import to_builtins

from controller.trainjob.rules.reports import (
    FIELD_MANAGER,
    MAX_BYTES,
    RefusedError,
    admit,
    answer,
    read,
    target_of,
    token_of,
)
from muster.api.kubeflow.trainer import TRAIN_JOBS
from muster.api.kubernetes.authentication import TOKEN_REVIEWS
from muster.kube.client import Client
from muster.kube.errors import APIError

JSON = dict[str, Any]
log = structlog.get_logger(__name__)
AT_ONCE: Final = 32
"""Connections at a time; others are closed, and the SDK reports again with its next step."""
CLIENT_TIMEOUT_S: Final = 10.0
_POLL_S: Final = 0.1
_DRAINED_BYTES: Final = 1 << 20
"""So much of what is too long is read all the same: a client that still sends would not see the answer."""
_CALL_S: Final = 5.0


class Reports:
    """Takes a report: path, Authorization header and body."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def answer(self, path: str, authorization: str, body: bytes) -> tuple[HTTPStatus, JSON]:
        """The same, as HTTP says it."""
        try:
            return HTTPStatus.OK, self.take(path, authorization, body)
        except RefusedError as refused:
            return refused.status, answer(refused)
        except APIError as error:
            known = error.status in {HTTPStatus.NOT_FOUND, HTTPStatus.UNPROCESSABLE_ENTITY}
            if not known:
                log.warning("report not written", path=path, why=str(error))
            status = HTTPStatus(error.status) if known else HTTPStatus.INTERNAL_SERVER_ERROR
            message = error.message if known else "the report cannot be written for now"
            return status, answer(RefusedError(status, message))

    def take(self, path: str, authorization: str, body: bytes) -> JSON:
        """Writes what is reported, and gives it back; RefusedError if it is not taken."""
        target = target_of(path)
        spec = {"token": token_of(authorization), "audiences": [target.audience]}
        admit(self._client.create(TOKEN_REVIEWS, {"metadata": {}, "spec": spec}, timeout_s=_CALL_S).status, target)
        told = read(body)
        if told is None:
            return {}
        manifest = {
            "apiVersion": TRAIN_JOBS.api_version,
            "kind": TRAIN_JOBS.kind,
            "metadata": {"name": target.name, "namespace": target.namespace},
            "status": {"trainerStatus": to_builtins(told)},
        }
        self._client.apply(TRAIN_JOBS, manifest, field_manager=FIELD_MANAGER, subresource="status", timeout_s=_CALL_S)
        return {"trainerStatus": to_builtins(told)}


class ReportServer:
    """Serves reports from daemon threads. `context` gives the TLS context for the next connection."""

    def __init__(self, reports: Reports, host: str, port: int, context: Callable[[], ssl.SSLContext]) -> None:
        self._reports = reports
        self._address = (host, port)
        self._context = context
        self._server: _Server | None = None

    def start(self) -> None:
        """Binds the port (OSError if it is taken) and starts to answer."""
        self._server = _Server(self._address, _handler(self._reports, self._context))
        threading.Thread(target=self._server.serve_forever, args=(_POLL_S,), name="reports", daemon=True).start()
        log.info("status server of TrainJobs started", host=self._address[0], port=self._server.server_port)

    def stop(self) -> None:
        """Frees the port; harmless when it was not started."""
        if self._server:
            self._server.shutdown()
            self._server.server_close()
            self._server = None


class _Server(ThreadingHTTPServer):
    """A thread for each connection, and a bound to their number: whoever keeps one open keeps it for a while only."""

    daemon_threads = True

    def __init__(self, *args: Any) -> None:
        self._free = threading.BoundedSemaphore(AT_ONCE)
        super().__init__(*args)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Hands the connection to a thread, or closes it."""
        if self._free.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """What the thread does."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that is gone, or speaks no TLS, is not worth a traceback."""


def _handler(reports: Reports, context: Callable[[], ssl.SSLContext]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        """One report."""

        timeout = CLIENT_TIMEOUT_S
        request: socket

        def setup(self) -> None:
            """TLS first, in the thread of the connection: a slow client holds up nobody else."""
            self.request.settimeout(CLIENT_TIMEOUT_S)
            self.request = context().wrap_socket(self.request, server_side=True)
            super().setup()

        def finish(self) -> None:
            """The socket that TLS was put on is another one than the server closes."""
            super().finish()
            self.request.close()

        def do_POST(self) -> None:
            """Answers a report."""
            try:
                body = self._body()
            except RefusedError as refused:
                self._reply(refused.status, answer(refused))
            else:
                self._reply(*reports.answer(self.path, self.headers.get("Authorization", ""), body))

        def _body(self) -> bytes:
            length = self.headers.get("Content-Length", "0")
            if not length.isdecimal() or int(length) > MAX_BYTES:
                self.rfile.read(min(int(length) if length.isdecimal() else 0, _DRAINED_BYTES))
                message = f"a report has at most {MAX_BYTES} bytes, and says how many"
                raise RefusedError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, message)
            return self.rfile.read(int(length))

        def _reply(self, status: HTTPStatus, content: JSON) -> None:
            body = json.dumps(content).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Connection", "close")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name is http.server's
            """Reports come every few seconds from everybody; they are not worth a line."""

    return Handler
