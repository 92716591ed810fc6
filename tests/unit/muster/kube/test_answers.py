"""What becomes of the answers of a server that misbehaves: the right answer or an error, never another request's."""

import asyncio
import socket
import ssl
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scripted_server import LONGEST_S, answer, chunk, client_of, head_and_body, scripted_server

from certs.authority import Authority
from muster.api.kubernetes.core import CONFIG_MAPS
from muster.kube.client import Client
from muster.kube.config import ClientConfig
from muster.kube.errors import APIError, Unreachable
from muster.kube.loopclient import LoopClient

pytestmark = pytest.mark.anyio


async def send(to: Client, body: bytes = b"hello", timeout_s: float = 10.0) -> bytes:
    """One exchange."""
    return await to.on_loop.request("POST", "/", body=body, content_type="text/plain", timeout_s=timeout_s)


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answers with what it got, again and again."""
    while True:
        _, body = await head_and_body(reader)
        writer.write(answer(body, 201))


def cut(data: bytes, places: list[int]) -> list[bytes]:
    """Pieces of the bytes."""
    at = sorted({place % (len(data) + 1) for place in places})
    return [data[start:end] for start, end in zip([0, *at], [*at, len(data)], strict=True)]


def framed(body: bytes, how: str) -> bytes:
    """The end of the headers and the body, with its length said in one of the three ways."""
    if how == "length":
        return b"content-length: %d\r\n\r\n" % len(body) + body
    if how == "chunks":
        middle = len(body) // 2
        parts = [part for part in (body[:middle], body[middle:]) if part]
        return b"transfer-encoding: chunked\r\n\r\n" + b"".join(map(chunk, (*parts, b"")))
    return b"\r\n" + body


bodies = st.binary(max_size=200) | st.just(b"x" * 100_000)
places = st.lists(st.integers(0, 2**20), max_size=6)


async def first_answer(client: Client, body: bytes, *, cut_off: bool, until_end: bool, more: bool) -> None:
    """It is whole, or an error; only where nothing but its end says how long it is can nobody know."""
    try:
        answered = await send(client)
    except Unreachable:
        assert cut_off or more
        return
    assert body.startswith(answered)
    assert answered == body or (until_end and cut_off)


@given(
    body=bodies, how=st.sampled_from(["length", "chunks", "end"]), first=st.booleans(), closes=st.booleans(),
    at=places, lost=st.none() | st.integers(0, 2**20), more=st.sampled_from([b"", b"HTTP/1.1 200 OK\r\n", b"garbage"]),
)  # fmt: skip
async def test_the_answer_is_the_servers_or_an_error(
    body: bytes, how: str, *, first: bool, closes: bool, at: list[int], lost: int | None, more: bytes
) -> None:
    """However the bytes come, and wherever they end. What comes unasked is nobody's answer."""
    head = b"HTTP/1.1 100 Continue\r\n\r\n" if first else b""
    head += b"HTTP/1.1 200 OK\r\nx-a: 1\r\nX-A: 2\r\n" + (b"connection: close\r\n" if closes else b"")
    whole = head + framed(body, how)
    sent = whole + (more if how != "end" else b"")
    ends = closes or how == "end"
    if lost is not None:
        sent, ends = sent[: lost % (len(whole) + 1)], True
    script = [cut(sent, at)]

    async def scripted(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if script:
            await head_and_body(reader)
            for piece in script.pop():
                writer.write(piece)
                await writer.drain()
                await asyncio.sleep(0)
            if ends:
                return
        await echo(reader, writer)

    async with client_of(scripted) as client:
        await first_answer(client, body, cut_off=len(sent) < len(whole), until_end=how == "end", more=bool(more))
        for text in (b"one", b"", b"three"):  # more that came unasked may have ended the first of these
            try:
                later = await send(client, text)
            except Unreachable:
                assert more or (ends and not closes)  # of which the client may not have heard yet
            else:
                assert later == text


@given(garbage=st.binary(min_size=1, max_size=300))
async def test_garbage_is_an_error_or_an_answer_and_the_next_request_is_answered(garbage: bytes) -> None:
    """Nothing hangs, whatever comes before the connection ends."""
    done: list[int] = []

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if not done:
            await head_and_body(reader)
            done.append(1)
            writer.write(garbage)
            return
        await echo(reader, writer)

    async with client_of(handler) as client:
        with pytest.raises(APIError):
            await send(client)
        assert await send(client) == b"hello"


async def test_a_connection_is_used_again_and_no_more_are_made_than_asked() -> None:
    """200 at once take their turns over four."""
    made: list[int] = []

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        made.append(1)
        await echo(reader, writer)

    async with client_of(handler) as client:
        texts = [b"%d" % number for number in range(200)]
        answers = await asyncio.gather(*(send(client, text) for text in texts))
        assert answers == texts
        assert 1 <= len(made) <= 4


async def test_headers_without_an_end_are_an_error() -> None:
    """Nothing grows without bound for a server that goes on and on."""

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await head_and_body(reader)
        writer.write(b"HTTP/1.1 200 OK\r\n")
        while True:
            writer.write(b"x-more: " + b"a" * 1000 + b"\r\n")
            await writer.drain()

    async with client_of(handler) as client:
        with pytest.raises(Unreachable, match="no HTTP answer"):
            await send(client)


@pytest.mark.parametrize("bad", ["a\r\nb", "a\nb", "a\0b"])
async def test_a_request_that_would_be_two_is_not_sent(bad: str) -> None:
    """Neither in a header nor in the path."""
    async with client_of(echo) as client:
        with pytest.raises(ValueError, match="line break"):
            await client.on_loop.request("GET", f"/{bad}")
        with pytest.raises(ValueError, match="detected in headers"):
            await client.on_loop.request("POST", "/", body=b"x", content_type=bad)


class Server:
    """Answers each request with its body once `release` is set; with `headers` or `ends` the connection ends then."""

    def __init__(self, headers: str = "", *, ends: bool = False) -> None:
        self.headers, self.ends = headers, ends
        self.release = asyncio.Event()
        self.connections = 0
        self.heads: list[bytes] = []
        self.ended = asyncio.Queue[None]()

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection."""
        self.connections += 1
        try:
            while True:
                head, body = await head_and_body(reader)
                self.heads.append(head)
                await self.release.wait()
                writer.write(answer(body, 201, self.headers))
                if self.ends or self.headers:
                    return
        finally:
            self.ended.put_nowait(None)


@pytest.mark.parametrize(("headers", "ends"), [("", True), ("connection: close\r\n", False)], ids=["silently", "said"])
async def test_a_connection_that_the_server_has_ended_is_not_used(headers: str, *, ends: bool) -> None:
    """Whether it said so or not; the next request does not fail."""
    server = Server(headers, ends=ends)
    server.release.set()
    async with client_of(server) as client:
        assert await send(client) == b"hello"
        session = client.on_loop._transport._session
        assert session is not None
        assert session.connector is not None
        while any(kept.is_connected() for each in session.connector._conns.values() for kept, _ in each):  # noqa: ASYNC110
            await asyncio.sleep(0)
        assert await send(client, b"again") == b"again"
        assert server.connections == 2


async def test_a_client_that_is_closed_ends_its_connection() -> None:
    """One that it has used again and again until then, for bodies of any size."""
    server = Server()
    server.release.set()
    async with client_of(server) as client:
        for body in (b"a", b"", b"c" * 100_000):
            assert await send(client, body) == body
        assert server.connections == 1
        client.close()
        await server.ended.get()


async def test_a_server_that_does_not_answer() -> None:
    """The call gives up in time, and the connection, on which an answer may still come, is not used again."""
    server = Server()
    async with client_of(server) as client:
        with pytest.raises(Unreachable, match=r"POST /: .*: no response within 0\.1 s"):
            await send(client, timeout_s=0.1)
        server.release.set()
        assert await send(client, b"new") == b"new"
        assert server.connections == 2


async def test_a_refusal_before_all_is_read() -> None:
    """The answer counts, not that the rest cannot be sent; the connection stays open for a while, as API servers do."""
    refused = asyncio.Event()

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if refused.is_set():
            await echo(reader, writer)
        await reader.readuntil(b"\r\n\r\n")
        refused.set()
        writer.write(answer(b"", 413))
        await asyncio.Event().wait()

    async with client_of(handler) as client:
        with pytest.raises(APIError) as caught:
            await send(client, b"x" * 6_000_000)
        assert caught.value.status == 413
        assert await send(client) == b"hello"


async def test_nobody_listens() -> None:
    """The error is a sentence with the method and the path, and without a status."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound, but not listening
        client = LoopClient(ClientConfig(f"http://127.0.0.1:{taken.getsockname()[1]}"))
        with pytest.raises(Unreachable, match=r"GET /version: .*no answer from the API server") as caught:
            await client.request("GET", "/version")
        assert caught.value.status == 0
        client.close()


@pytest.mark.parametrize(
    ("name", "path"), [("a b", "a%20b"), ("jöb", "j%C3%B6b"), ("a/b?c", "a%2Fb%3Fc"), ("a-1", "a-1")]
)
async def test_odd_names_are_asked_for(name: str, path: str) -> None:
    """They come from users, in Commands for example; the API server says that there is no such object."""
    server = Server()
    server.release.set()
    async with client_of(server) as client:
        await client.on_loop.request("POST", CONFIG_MAPS.path("n", name), body=b"")
    assert server.heads[0].startswith(f"POST /prefix/api/v1/namespaces/n/configmaps/{path} HTTP/1.1".encode())


async def test_the_name_in_a_certificate(tmp_path: Path) -> None:
    """The server's name counts, or the one that the configuration gives in its place."""
    authority = Authority.create("test")
    authority.issue("server", dns_names=["kube.test"], server=True).save(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "tls.crt", tmp_path / "tls.key")
    trusting = ssl.create_default_context(cadata=authority.cert_pem.decode())
    async with scripted_server(echo, context) as address, asyncio.timeout(LONGEST_S):
        named = LoopClient(ClientConfig(f"https://{address}", tls=trusting, server_name="kube.test"))
        assert await named.request("POST", "/", body=b"hello") == b"hello"
        with pytest.raises(Unreachable, match="certificate verify failed"):
            await LoopClient(ClientConfig(f"https://{address}", tls=trusting)).request("GET", "/")
        named.close()
