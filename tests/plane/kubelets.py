"""A kubelet as far as the API server asks one for logs: simulated nodes have none."""

import contextlib
import ssl
import threading
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from certs.authority import Authority
from muster.api.kubernetes.core import NODES
from muster.kube.client import Client

LINES = b"a step\nanother\n"


class Kubelet:
    """What it was asked for, and where it listens."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.asked: list[str] = []


@contextlib.contextmanager
def kubelet(folder: Path) -> Iterator[Kubelet]:
    """Serves the same two lines as the log of every container."""
    Authority.create("kubelet").issue("kubelet", ips=("127.0.0.1",), server=True).save(folder)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "tls.crt", folder / "tls.key")
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        """One request."""

        def do_GET(self) -> None:
            """Logs, whatever is asked."""
            asked.append(self.path)
            self.send_response(200)
            self.send_header("Content-Type", "text/plain")
            self.send_header("Content-Length", str(len(LINES)))
            self.end_headers()
            self.wfile.write(LINES)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name is http.server's
            """The test looks at what was asked."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    one = Kubelet(server.server_port)
    one.asked = asked
    try:
        yield one
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@contextlib.contextmanager
def serve_all_nodes(client: Client, one: Kubelet) -> Iterator[None]:
    """Has the API server ask this kubelet for the logs of every node, and afterwards kwok again."""
    nodes = {node["metadata"]["name"]: node["status"] for node in client.list(replace(NODES, type=dict[str, Any]))}
    addresses = [{"type": "InternalIP", "address": "127.0.0.1"}]
    status = {"addresses": addresses, "daemonEndpoints": {"kubeletEndpoint": {"Port": one.port}}}
    for name in nodes:
        client.merge_patch(NODES, name, {"status": status}, subresource="status")
    try:
        yield
    finally:
        for name, before in nodes.items():
            known = {"addresses": before["addresses"], "daemonEndpoints": before["daemonEndpoints"]}
            client.merge_patch(NODES, name, {"status": known}, subresource="status")
