"""A server over TLS answers clients of the authorities that its files name, and takes up new files while it runs."""

import asyncio
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from http.client import HTTPSConnection
from pathlib import Path
from unittest.mock import Mock

import pytest
from asgi_world import answering
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from starlette.requests import Request
from starlette.types import ASGIApp
from structlog.testing import capture_logs

from certs.authority import Authority
from muster.process.serve import Threaded, listen
from muster.process.tls import FileError, Files, ServerTLS, send_end

CLOSED = r"(?i)ssl|eof|reset|alert|broken|closed"
OURS, OTHERS = Authority.create("ours"), Authority.create("others")


async def hello(_: Request) -> str:
    """Answers at once."""
    return "hello"


class World:
    """A folder with the files of a server and its clients, and the server."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.files = Files(folder / "tls.crt", folder / "tls.key", folder / "ca.crt")
        OURS.save(folder)
        self.rotate("first")
        for name, authority in (("client", OURS), ("other", OTHERS)):
            authority.issue("kube-scheduler", client=True).save(folder, name)
        OURS.issue("a-server", server=True).save(folder, "server")
        OURS.issue("late", client=True, life=timedelta(days=-1)).save(folder, "expired")
        self.tls = ServerTLS(self.files)
        self._servers: list[Threaded] = []

    def serve(self, app: ASGIApp) -> None:
        """Starts it."""
        listening = listen("127.0.0.1", 0)
        self.port = listening.getsockname()[1]
        self._servers.append(Threaded("server", app, [listening], self.tls))
        self._servers[-1].start()

    def end(self) -> None:
        """Ends it."""
        for server in self._servers:
            server.stop()

    def rotate(self, common_name: str, authority: Authority = OURS) -> None:
        """A new certificate for the server: the key first, so for a moment it does not fit."""
        authority.issue(common_name, ips=["127.0.0.1"], server=True).save(self.folder)

    def context(self, client: str = "client") -> ssl.SSLContext:
        """The TLS of a client with the certificate of this name, or none."""
        context = ssl.create_default_context(cadata=(OURS.cert_pem + OTHERS.cert_pem).decode())
        if client:
            context.load_cert_chain(self.folder / f"{client}.crt", self.folder / f"{client}.key")
        return context

    def connect(self, client: str = "client") -> HTTPSConnection:
        """A new connection."""
        connection = HTTPSConnection("127.0.0.1", self.port, context=self.context(client), timeout=20)
        connection.connect()
        return connection

    def ask(self, connection: HTTPSConnection) -> bytes:
        """The answer to one request."""
        connection.request("POST", "/", b"{}")
        return connection.getresponse().read()

    def seen(self, client: str = "client") -> str:
        """The name in the certificate that a new connection is shown; it asks something, too."""
        connection = self.connect(client)
        try:
            certificate = x509.load_der_x509_certificate(connection.sock.getpeercert(binary_form=True) or b"")
            assert self.ask(connection) == b"hello"
        finally:
            connection.close()
        return str(certificate.subject.get_attributes_for_oid(x509.NameOID.COMMON_NAME)[0].value)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """Nothing is served yet; what is ends with the test."""
    world = World(tmp_path)
    yield world
    world.end()


def test_a_client_of_the_authority_is_answered(world: World) -> None:
    """Over TLS 1.3."""
    world.serve(answering(hello))
    connection = world.connect()
    assert connection.sock.version() == "TLSv1.3"
    assert world.ask(connection) == b"hello"
    connection.close()


@pytest.mark.parametrize("client", ["", "other", "server", "expired"])
def test_others_are_not(world: World, client: str) -> None:
    """No certificate, one of another authority, a server's, and one that has expired."""
    asked = []

    async def app(request: Request) -> str:
        asked.append(request)
        return await hello(request)

    world.serve(answering(app))
    with pytest.raises(OSError, match=CLOSED):
        world.ask(world.connect(client))
    assert not asked


def test_an_old_version_of_tls_is_refused(world: World) -> None:
    """Where clients show certificates it is 1.3."""
    context = world.context()
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    world.serve(answering(hello))
    with socket.create_connection(("127.0.0.1", world.port), timeout=20) as plain, pytest.raises(OSError, match=CLOSED):
        context.wrap_socket(plain, server_hostname="127.0.0.1")


def test_without_an_authority_everybody_is_answered(world: World) -> None:
    """The webhook's default, as API servers have no certificate for webhooks unless given one. TLS 1.2 is enough."""
    world.tls = ServerTLS(Files(world.files.cert, world.files.key))
    world.serve(answering(hello))
    context = world.context("")
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    connection = HTTPSConnection("127.0.0.1", world.port, context=context, timeout=20)
    assert world.ask(connection) == b"hello"
    connection.close()


def test_a_call_that_is_held_survives_a_new_certificate(world: World) -> None:
    """It is answered over its connection, while new ones are shown the new certificate."""
    held, let_go = threading.Event(), threading.Event()

    async def app(request: Request) -> str:
        if not held.is_set():
            held.set()
            await asyncio.to_thread(let_go.wait)
        return await hello(request)

    world.serve(answering(app))
    with ThreadPoolExecutor(1) as pool:
        connection = world.connect()
        answer = pool.submit(world.ask, connection)
        assert held.wait(20)
        for name in ("second", "third"):
            world.rotate(name)
            assert world.seen() == name
        let_go.set()
        assert answer.result(20) == b"hello"
        assert world.ask(connection) == b"hello"
        connection.close()


def test_another_authority_for_clients(world: World) -> None:
    """Its clients are answered from the next connection on, and those of the one before are not any more."""
    world.serve(answering(hello))
    known = world.connect()
    assert world.ask(known) == b"hello"
    world.files.client_ca.write_bytes(OTHERS.cert_pem)  # type: ignore[union-attr] # there is one
    assert world.seen("other") == "first"
    with pytest.raises(OSError, match=CLOSED):
        world.seen("client")
    assert world.ask(known) == b"hello", "a connection that there is stays for its time"
    known.close()


def test_a_session_is_not_taken_up_again(world: World) -> None:
    """Else a client whose authority has gone would get in without its certificate being looked at."""
    world.serve(answering(hello))
    context = world.context()

    def meet(session: ssl.SSLSession | None) -> ssl.SSLSocket:
        with socket.create_connection(("127.0.0.1", world.port), timeout=20) as plain:
            client = context.wrap_socket(plain, server_hostname="127.0.0.1", session=session)
            client.sendall(b"GET / HTTP/1.1\r\nHost: test\r\n\r\n")
            assert client.recv(65536).startswith(b"HTTP/1.1 200")
        return client

    first = meet(None)
    assert not (first.session and first.session.has_ticket)
    assert not meet(first.session).session_reused


def test_files_that_cannot_be_used_leave_what_there_was(world: World) -> None:
    """And say so once, not to each client; the connection after the right ones are there has them."""
    world.serve(answering(hello))
    assert world.seen() == "first"
    with capture_logs() as lines:
        for broken in filter(None, world.files):
            before = broken.read_bytes()
            broken.write_bytes(b"nonsense")
            lines.clear()
            assert [world.seen() for _ in range(3)] == ["first"] * 3
            assert [line["event"] for line in lines] == ["the new certificate is not usable yet"]
            broken.write_bytes(before)
        world.files.cert.unlink()
        assert world.seen() == "first"
        world.rotate("second")
        assert world.seen() == "second"


def test_files_that_are_made_later(world: World) -> None:
    """The controller makes its own certificate: until then handshakes fail, and nothing else."""
    kept = {file: file.read_bytes() for file in world.files if file}
    for file in kept:
        file.unlink()
    world.serve(answering(hello))
    with pytest.raises(OSError, match=CLOSED):
        world.seen()
    assert world.tls.ends_s() == 0
    for file, content in kept.items():
        file.write_bytes(content)
    assert world.seen() == "first"


def key_of_another(files: Files) -> None:
    """A good key that does not fit."""
    files.key.write_bytes(OURS.issue("another").key_pem)


def encrypted_key(files: Files) -> None:
    """A key with a password, for which nothing can ask."""
    key = serialization.load_pem_private_key(files.key.read_bytes(), password=None)
    protection = serialization.BestAvailableEncryption(b"secret")
    files.key.write_bytes(key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, protection))


@pytest.mark.parametrize(("spoil", "why"), [
    (lambda files: files.cert.write_text("nonsense"), r"tls.crt and .*tls.key are not a certificate and its key"),
    (lambda files: files.key.write_text("nonsense"), r"tls.crt and .*tls.key are not a certificate and its key"),
    (lambda files: files.cert.unlink(), r"tls.crt and .*tls.key are not .*No such file"),
    (lambda files: files.client_ca.write_text("nonsense"), r"ca.crt: the file contains no certificate"),
    (key_of_another, r"tls.crt and .*tls.key are not .*mismatch"),
    (encrypted_key, r"tls.crt and .*tls.key are not .*not encrypted"),
])  # fmt: skip
def test_files_that_never_could_be_used_are_told(world: World, spoil: Callable[[Files], None], why: str) -> None:
    """Each with its name, before anything listens; nothing of the key is in it."""
    spoil(world.files)
    with pytest.raises(FileError, match=why) as error:
        world.tls.read_files()
    assert "PRIVATE" not in str(error.value)


def test_it_tells_when_what_it_shows_ends(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of new files too, before anybody has connected; files that cannot be read leave the old certificate."""
    world.tls.read_files()
    first_s = world.tls.ends_s()
    OURS.issue("server", server=True, life=timedelta(days=1)).save(world.folder)
    later_s = world.tls.ends_s()
    assert first_s - later_s > 300 * 86400
    world.files.cert.write_text("nonsense")
    assert world.tls.ends_s() == later_s
    metric = Mock()
    monkeypatch.setattr("muster.process.tls.Gauge", metric)
    send_end(world.tls)
    metric.return_value.set_function.assert_called_once_with(world.tls.ends_s)
