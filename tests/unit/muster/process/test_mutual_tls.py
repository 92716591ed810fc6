"""The server in the event loop over TLS: it answers clients of one authority, and takes up new files while it runs."""

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from http import HTTPStatus
from http.client import HTTPSConnection
from pathlib import Path
from typing import Any

import pytest
import uvloop
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from structlog.testing import capture_logs

from certs.authority import Authority
from muster.process import embedded
from muster.process.calls import Answer, App, Request
from muster.process.embedded import Listener
from muster.process.tls import Material
from muster.process.tlsfiles import Files

OURS, OTHERS = Authority.create("ours"), Authority.create("others")


async def hello(_: Request) -> Answer:
    """Answers at once."""
    return Answer(HTTPStatus.OK, b"hello")


class World:
    """A folder with the files of a server and its clients, and its port."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.files = Files(folder / "tls.crt", folder / "tls.key", folder / "ca.crt")
        OURS.save(folder)
        self.rotate("first")
        OURS.issue("kube-scheduler", client=True).save(folder, "client")
        OTHERS.issue("kube-scheduler", client=True).save(folder, "other")
        OURS.issue("a-server", server=True).save(folder, "server")
        OURS.issue("late", client=True, life=timedelta(days=-1)).save(folder, "expired")
        with socket.create_server(("127.0.0.1", 0)) as probe:
            self.port = int(probe.getsockname()[1])

    def rotate(self, common_name: str) -> None:
        """A new certificate for the server: the key first, so for a moment it does not fit."""
        OURS.issue(common_name, ips=["127.0.0.1"], server=True).save(self.folder)

    def context(self, client: str = "client", protocols: tuple[str, ...] = ()) -> ssl.SSLContext:
        """What a client speaks that has the certificate of this name, or none."""
        context = ssl.create_default_context(cadata=OURS.cert_pem.decode())
        if client:
            context.load_cert_chain(self.folder / f"{client}.crt", self.folder / f"{client}.key")
        if protocols:
            context.set_alpn_protocols(list(protocols))
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

    def seen(self) -> str:
        """Whose certificate a new connection is shown; it asks something, too."""
        for _ in range(20):
            try:
                return self._seen()
            except (ssl.SSLEOFError, ConnectionError):
                continue  # it had come to a server that was about to leave; a client connects again
        raise AssertionError("no connection lasts")

    def _seen(self) -> str:
        connection = self.connect()
        try:
            certificate = x509.load_der_x509_certificate(connection.sock.getpeercert(binary_form=True) or b"")
            assert self.ask(connection) == b"hello"
        finally:
            connection.close()
        return str(certificate.subject.get_attributes_for_oid(x509.NameOID.COMMON_NAME)[0].value)

    @asynccontextmanager
    async def served(self, app: App = hello) -> AsyncIterator[Listener]:
        """A server that runs."""
        listener = Listener(app, host="127.0.0.1", port=self.port, tls=self.files)
        await listener.start()
        try:
            yield listener
        finally:
            await listener.stop()


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    """With a server that looks for new files often."""
    monkeypatch.setattr(embedded, "_LOOK_S", 0.01)
    return World(tmp_path)


def test_a_client_of_the_authority_is_answered(world: World) -> None:
    """Over TLS 1.3; the server offers HTTP/2 and takes it, where the client knows it."""

    def story() -> None:
        connection = world.connect()
        assert connection.sock.version() == "TLSv1.3"
        assert world.ask(connection) == b"hello"
        connection.close()
        with socket.create_connection(("127.0.0.1", world.port), timeout=20) as plain:
            context = world.context(protocols=("h2", "http/1.1"))
            with context.wrap_socket(plain, server_hostname="127.0.0.1") as connected:
                assert connected.selected_alpn_protocol() == "h2"

    async def run() -> None:
        async with world.served():
            await asyncio.to_thread(story)

    uvloop.run(run())


@pytest.mark.parametrize("client", ["", "other", "server", "expired"])
def test_others_are_not(world: World, client: str) -> None:
    """No certificate, one of another authority, a server's, and one that has expired."""

    async def run() -> None:
        asked = []

        async def app(request: Request) -> Answer:
            asked.append(request)
            return await hello(request)

        async with world.served(app):
            with pytest.raises(OSError, match=r"(?i)ssl|eof|reset|alert|broken"):
                await asyncio.to_thread(lambda: world.ask(world.connect(client)))
        assert not asked

    uvloop.run(run())


def test_an_old_version_of_tls_is_refused(world: World) -> None:
    """kube-scheduler knows 1.3."""
    context = world.context()
    context.maximum_version = ssl.TLSVersion.TLSv1_2

    def story() -> None:
        with socket.create_connection(("127.0.0.1", world.port), timeout=20) as plain:
            context.wrap_socket(plain, server_hostname="127.0.0.1")

    async def run() -> None:
        async with world.served():
            with pytest.raises(ssl.SSLError, match=r"(?i)protocol.version"):
                await asyncio.to_thread(story)

    uvloop.run(run())


def test_a_call_that_is_held_survives_a_new_certificate(world: World) -> None:
    """It is answered over its connection, which then ends, while new ones are shown the new certificate."""

    async def run() -> None:
        held, let_go = asyncio.Event(), asyncio.Event()

        async def app(request: Request) -> Answer:
            if not held.is_set():
                held.set()
                await let_go.wait()
            return await hello(request)

        async with world.served(app) as listener:
            connection = await asyncio.to_thread(world.connect)
            answer = asyncio.create_task(asyncio.to_thread(world.ask, connection))
            await held.wait()
            first_ends_s = listener.ends_s()
            for name in ("second", "third"):
                world.rotate(name)
                async with asyncio.timeout(20):
                    while await asyncio.to_thread(world.seen) != name:
                        pass
            assert listener.ends_s() >= first_ends_s
            let_go.set()
            assert await answer == b"hello"
            assert connection.sock is None or connection.sock.recv(1) == b""
            connection.close()

    uvloop.run(run())


def test_connections_do_not_stay_for_ever(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a time their clients have to show a certificate again, with the same files, too."""
    monkeypatch.setattr(embedded, "_AGE_S", 0.05)

    def story() -> None:
        connection = world.connect()
        assert connection.sock.recv(1) == b""
        connection.close()

    async def run() -> None:
        async with world.served():
            await asyncio.to_thread(story)

    uvloop.run(run())


def test_files_that_cannot_be_used_leave_what_there_was(world: World) -> None:
    """And do not end the process, as they would if granian read them."""

    async def noticed(lines: list[Any]) -> None:
        lines.clear()
        async with asyncio.timeout(20):
            while not any("not usable yet" in line["event"] for line in lines):
                assert await asyncio.to_thread(world.seen) == "first"

    async def run() -> None:
        with capture_logs() as lines:
            async with world.served():
                for broken in filter(None, world.files):
                    before = broken.read_bytes()
                    broken.write_bytes(b"nonsense")
                    await noticed(lines)
                    broken.write_bytes(before)
                world.files.cert.unlink()
                await noticed(lines)
                world.rotate("second")
                async with asyncio.timeout(20):
                    while await asyncio.to_thread(world.seen) != "second":
                        pass

    uvloop.run(run())


def weak_key(files: Files) -> None:
    """A key on a curve that not every library has."""
    files.key.write_bytes(
        ec.generate_private_key(ec.SECP521R1()).private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )


def key_of_another(files: Files) -> None:
    """A good key that does not fit."""
    files.key.write_bytes(OURS.issue("another").key_pem)


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (lambda files: files.cert.write_text("nonsense"), r"tls.crt: there is no certificate"),
        (lambda files: files.key.write_text("nonsense"), r"tls.key: it is not a private key"),
        (lambda files: files.client_ca.write_text("nonsense"), r"ca.crt: there is no certificate"),
        (key_of_another, r"tls.key: this key belongs to another certificate"),
        (weak_key, r"tls.key: take a key for P-256"),
    ],
)
def test_files_that_never_could_be_used_are_told(world: World, spoil: Callable[[Files], None], why: str) -> None:
    """Each with its name, before anything listens; nothing of the key is in it."""
    spoil(world.files)
    with pytest.raises(ValueError, match=why) as error:
        Listener(hello, host="127.0.0.1", port=world.port, tls=world.files)
    assert "PRIVATE" not in str(error.value)


def test_a_key_is_not_printed_and_its_copy_not_left(world: World) -> None:
    """What the server reads is gone when it has ended."""
    material = Material.read(world.files)
    assert "PRIVATE" not in repr(material)
    folder, files = material.written()
    assert files.key.parent.stat().st_mode & 0o077 == 0
    folder.cleanup()
    assert not files.key.exists()
