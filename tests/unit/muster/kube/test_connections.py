"""What threads get of the one client: connections are kept, ended ones are not used, and nothing waits too long."""

import socket
import ssl
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from certs.authority import Authority
from muster.api.kubernetes.core import CONFIG_MAPS
from muster.kube.client import Client
from muster.kube.config import Config
from muster.kube.errors import APIError, Unreachable


class Server(ThreadingHTTPServer):
    """Remembers from which port each request came; `ended` counts the connections that are over."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.seen: list[int] = []
        self.paths: list[str] = []
        self.arrived = threading.Semaphore(0)
        self.ended = threading.Semaphore(0)
        self.release = threading.Event()

    def handle_error(self, *_: object) -> None:
        """Clients that go away are what these tests are about."""

    def shutdown_request(self, request: object) -> None:
        """A connection is over."""
        super().shutdown_request(request)  # type: ignore[arg-type]
        self.ended.release()


class Handler(BaseHTTPRequestHandler):
    """Answers with what it got; /end ends the connection without saying so before, /wait waits.

    /early refuses without having read the body, and leaves the connection open for a while, as an API server does: what
    is sent to a closed one is answered by a reset, which may come to the client before the answer.
    """

    protocol_version = "HTTP/1.1"
    server: Server

    def do_POST(self) -> None:
        """Any request."""
        self.server.seen.append(self.client_address[1])
        self.server.paths.append(self.path)
        self.server.arrived.release()
        if self.path == "/early":
            self.send_error(413)
            self.server.release.wait(10)
            self.close_connection = True
            return
        body = self.rfile.read(int(self.headers["content-length"]))
        if self.path == "/wait":
            self.server.release.wait(10)
        self.send_response(201)
        self.send_header("content-length", str(len(body)))
        if self.path == "/last":
            self.send_header("connection", "close")
        self.end_headers()
        self.wfile.write(body)
        self.close_connection = self.path in {"/end", "/last"}

    def log_message(self, *_: object) -> None:
        """Nothing."""


@pytest.fixture
def server() -> Iterator[Server]:
    """A server on loopback."""
    with Server() as made:
        threading.Thread(target=made.serve_forever, daemon=True).start()
        yield made
        made.release.set()
        made.shutdown()


def client_of(server: Server) -> Client:
    """A client of it."""
    return Client(Config(f"http://127.0.0.1:{server.server_port}"))


def send(to: Client, path: str = "/", body: bytes = b"hello", timeout_s: float = 10.0) -> bytes:
    """One exchange."""
    return to.request("POST", path, body=body, content_type="text/plain", timeout_s=timeout_s)


@pytest.mark.parametrize("url", ["/end", "/last"])
def test_a_connection_that_the_server_has_ended_is_not_used(server: Server, url: str) -> None:
    """Whether it said so or not; the next request does not fail. One that is kept is ended by the client."""
    found = client_of(server)
    assert send(found, url) == b"hello"
    assert server.ended.acquire(timeout=10)
    assert [send(found, body=text) for text in (b"hello", b"")] == [b"hello", b""]
    assert len(set(server.seen)) == 2
    found.close()
    assert server.ended.acquire(timeout=10)


def test_a_server_that_does_not_answer(server: Server) -> None:
    """The call gives up in time, and the connection, on which an answer may still come, is not used again."""
    found = client_of(server)
    with pytest.raises(Unreachable, match=r"no answer within 0\.1 s"):
        send(found, "/wait", timeout_s=0.1)
    server.release.set()
    assert send(found, body=b"new") == b"new"


def test_what_is_told_where_nobody_listens() -> None:
    """A sentence with the method and the path."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    client = Client(Config(f"http://127.0.0.1:{port}"))
    with pytest.raises(Unreachable, match="no answer from the API server") as caught:
        client.request("GET", "/version", timeout_s=1.0)
    assert "GET /version" in str(caught.value)


def test_a_refusal_before_all_is_read(server: Server) -> None:
    """The answer counts, not that the rest cannot be sent."""
    found = client_of(server)
    with pytest.raises(APIError) as caught:
        send(found, "/early", body=b"x" * 6_000_000)
    assert caught.value.status == 413
    server.release.set()
    assert send(found) == b"hello"
    assert len(set(server.seen)) == 2


@pytest.mark.parametrize(
    ("name", "path"), [("a b", "a%20b"), ("jöb", "j%C3%B6b"), ("a/b?c", "a%2Fb%3Fc"), ("a-1", "a-1")]
)
def test_odd_names_are_asked_for(server: Server, name: str, path: str) -> None:
    """They come from users, in Commands for example; the API server says that there is no such object."""
    client_of(server).request("POST", CONFIG_MAPS.path("n", name), body=b"")
    assert server.paths == [f"/api/v1/namespaces/n/configmaps/{path}"]


def test_the_name_in_a_certificate(tmp_path: Path) -> None:
    """The server's name counts, or the one that the configuration gives in its place."""
    authority = Authority.create("test")
    authority.issue("server", dns_names=["kube.test"], server=True).save(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "tls.crt", tmp_path / "tls.key")
    trusting = ssl.create_default_context(cadata=authority.cert_pem.decode())
    with Server() as made:
        made.socket = context.wrap_socket(made.socket, server_side=True)
        threading.Thread(target=made.serve_forever, daemon=True).start()
        url = f"https://127.0.0.1:{made.server_port}"
        assert send(Client(Config(url, tls=trusting, server_name="kube.test"))) == b"hello"
        with pytest.raises(Unreachable, match="certificate verify failed"):
            send(Client(Config(url, tls=trusting)))
        made.shutdown()
