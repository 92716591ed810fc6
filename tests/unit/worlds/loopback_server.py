"""An HTTP server on loopback and a kubeconfig for it, for tests of clients."""

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import yaml


class Loopback(BaseHTTPRequestHandler):
    """A handler that answers in JSON, and logs nothing; `reply` replies to every method."""

    protocol_version = "HTTP/1.1"

    def reply(self) -> None:
        """Answer the request."""
        raise NotImplementedError

    def do_GET(self) -> None:
        """Answer the request."""
        self.reply()

    do_POST = do_PATCH = do_DELETE = do_GET  # noqa: N815 - the names that http.server wants

    def answer(self, body: Any, status: int = 200, warnings: Iterable[str] = ()) -> None:
        """Send an answer; a text is sent as it is."""
        content = body.encode() if isinstance(body, str) else json.dumps(body).encode()
        self.send_response(status)
        for text in warnings:
            self.send_header("Warning", text.encode().decode("latin-1"))
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def asked(self) -> Any:
        """Read the body of the request."""
        return json.loads(self.rfile.read(int(self.headers.get("content-length", 0))) or b"null")

    def log_message(self, *_: Any) -> None:
        """Silent."""


@contextmanager
def serving(handler: type[BaseHTTPRequestHandler], kubeconfig: Path) -> Iterator[None]:
    """Serves with this handler, and writes a kubeconfig that names the server; ends it afterwards."""
    http = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    http.daemon_threads = True
    Thread(target=http.serve_forever, args=(0.02,), daemon=True).start()
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": {"server": f"http://127.0.0.1:{http.server_port}"}}],
        "users": [{"name": "u", "user": {}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
    kubeconfig.write_text(yaml.safe_dump(content), encoding="utf-8")
    try:
        yield
    finally:
        http.shutdown()
        http.server_close()
