"""The API server's clock, as its answers tell it."""

import time
from http.server import BaseHTTPRequestHandler
from pathlib import Path

from loopback_server import serving

from muster.api.kubernetes.core import NAMESPACES
from muster.kube.client import Client


class Ahead(BaseHTTPRequestHandler):
    """A server whose clock is in the year 2030."""

    def do_GET(self) -> None:
        """One namespace."""
        self.send_response(200)
        self.send_header("content-length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def date_time_string(self, timestamp: float | None = None) -> str:
        """What stands in the header Date."""
        del timestamp
        return "Tue, 01 Jan 2030 00:00:00 GMT"

    def log_message(self, *_: object) -> None:
        """Silent."""


def test_the_time_of_the_api_server(tmp_path: Path) -> None:
    """It is unknown before the first answer, and goes on after the last one."""
    with serving(Ahead, tmp_path / "kubeconfig"):
        client = Client.load(tmp_path / "kubeconfig")
        assert client.server_time_s() is None
        client.get(NAMESPACES, "default")
        first = client.server_time_s()
        assert first is not None
        assert 0 <= first - 1893456000 < 60
        assert first - time.time() > 86400
        assert (client.server_time_s() or 0.0) >= first
