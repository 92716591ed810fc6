"""An HTTP server on loopback and a kubeconfig for it, for tests of clients."""

from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import yaml


@contextmanager
def serving(handler: type[BaseHTTPRequestHandler], kubeconfig: Path) -> Iterator[None]:
    """Serves with this handler, and writes a kubeconfig that names the server; ends it afterwards."""
    http = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    http.daemon_threads = True
    Thread(target=http.serve_forever, daemon=True).start()
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
