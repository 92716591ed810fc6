"""The API server behind an HTTP proxy."""

import asyncio
import base64
import contextlib
import ssl
import traceback
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from scripted_server import head_and_body, scripted_server

from certs.authority import Authority
from muster.kube.config import ClientConfig
from muster.kube.errors import Unreachable
from muster.kube.loopclient import LoopClient

pytestmark = pytest.mark.anyio

LONGEST_S = 20.0
BASIC = b"Proxy-Authorization: Basic " + base64.b64encode(b"me:p@ss") + b"\r\n"


class Pair:
    """An API server and a proxy before it, each with TLS or without; `heads` are the requests that came to each."""

    def __init__(self, folder: Path) -> None:
        self.authority = Authority.create("test")
        self.authority.issue("server", dns_names=["kube.test", "localhost"], server=True).save(folder)
        (folder / "ca.crt").write_bytes(self.authority.cert_pem)
        self.tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.tls.load_cert_chain(folder / "tls.crt", folder / "tls.key")
        self.trusting = ssl.create_default_context(cafile=folder / "ca.crt")
        self.heads: dict[str, list[bytes]] = {"server": [], "proxy": []}
        self.answer = b"HTTP/1.1 200 Connection established\r\nvia: me\r\n\r\n"

    @contextlib.asynccontextmanager
    async def running(self, server: str, proxy: str) -> AsyncIterator[ClientConfig]:
        """Both; gives how to get through. The schemes say which of them speak TLS."""
        async with (
            asyncio.timeout(LONGEST_S),
            scripted_server(self._serve, self.tls if server == "https" else None) as at,
            scripted_server(self._hand_on, self.tls if proxy == "https" else None) as before,
        ):
            port = before.rpartition(":")[2]
            yield ClientConfig(
                f"{server}://{at}/prefix",
                tls=self.trusting,
                server_name="kube.test" if server == "https" else None,
                proxy=f"{proxy}://me:p%40ss@localhost:{port}",
            )

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            head, body = await head_and_body(reader)
            self.heads["server"].append(head)
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % len(body) + body)

    async def _hand_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        self.heads["proxy"].append(head)
        method, target, _ = head.split(b"\r\n")[0].split(b" ")
        if method == b"CONNECT":
            writer.write(self.answer)
            if b" 200 " not in self.answer:
                return
        host, _, port = target.removeprefix(b"http://").partition(b"/")[0].rpartition(b":")
        far_reader, far_writer = await asyncio.open_connection(host.decode(), int(port))
        if method != b"CONNECT":
            far_writer.write(head)
        await asyncio.gather(_pour(reader, far_writer), _pour(far_reader, writer))


async def _pour(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """From one to the other until the end."""
    while data := await reader.read(65536):
        writer.write(data)
        await writer.drain()
    writer.close()


@pytest.fixture
def pair(tmp_path: Path) -> Pair:
    """Both of one authority, as the configuration has only one."""
    return Pair(tmp_path)


@pytest.mark.parametrize("proxy", ["http", "https"])
async def test_over_tls_the_proxy_only_hands_on(pair: Pair, proxy: str) -> None:
    """It is told the server and who we are; what is said through it is between us and the server."""
    async with pair.running("https", proxy) as config:
        client = LoopClient(config)
        for body in (b"one", b"x" * 300_000):
            assert await client.request("POST", "/path", body=body) == body
        client.close()
    [connect] = pair.heads["proxy"]
    assert connect.startswith(b"CONNECT 127.0.0.1:")
    assert BASIC in connect
    assert [head.split(b"\r\n")[0] for head in pair.heads["server"]] == [b"POST /prefix/path HTTP/1.1"] * 2
    assert all(BASIC not in head for head in pair.heads["server"])


@pytest.mark.parametrize("proxy", ["http", "https"])
async def test_a_plain_request_names_the_whole_url(pair: Pair, proxy: str) -> None:
    """The proxy reads it."""
    async with pair.running("http", proxy) as config:
        client = LoopClient(config)
        assert await client.request("GET", "/path", query={"a": "b c"}) == b""
        client.close()
    [head] = pair.heads["proxy"]
    assert head.startswith(b"GET http://127.0.0.1:")
    assert head.split(b"\r\n")[0].endswith(b"/prefix/path?a=b+c HTTP/1.1")
    assert BASIC in head


@pytest.mark.parametrize(("answer", "shown"), [
    (b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n", "407 Proxy Authentication Required"),
    (b"SSH-2.0-OpenSSH\r\n\r\n", "no HTTP answer: Bad status line"),
    (b"HTTP/1.1 502 Bad Gateway\r\n", "the connection ended before the response"),
])  # fmt: skip
async def test_a_proxy_that_refuses(pair: Pair, answer: bytes, shown: str) -> None:
    """The error says what it said, and nobody's password, whoever prints all that it follows from."""
    pair.answer = answer
    async with pair.running("https", "http") as config:
        with pytest.raises(Unreachable, match=shown) as caught:
            await LoopClient(config).request("GET", "/path")
        assert "ss@" not in "".join(traceback.format_exception(caught.value))
    assert pair.heads["server"] == []


async def test_through_a_proxy_the_server_must_be_who_it_says(pair: Pair) -> None:
    """A proxy that answers itself is not taken for the server."""
    async with pair.running("https", "http") as config:
        stranger = ClientConfig(config.server, tls=config.tls, server_name="another.test", proxy=config.proxy)
        with pytest.raises(Unreachable, match="certificate verify failed"):
            await LoopClient(stranger).request("GET", "/path")
