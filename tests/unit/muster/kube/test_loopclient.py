"""Calls of an event loop: what they send, and what becomes of the answers."""

import asyncio
import threading
from collections.abc import Awaitable, Callable

import msgspec
import pytest
from scripted_server import answer, client_of, head_and_body

from muster.api.kubernetes.core import NAMESPACES, PODS
from muster.kube import transport
from muster.kube.errors import APIError, Conflict, NotFound, TooManyRequests, Undecodable, Unreachable
from muster.kube.loopclient import LoopClient

pytestmark = pytest.mark.anyio


class Server:
    """Always gives one answer; `sent` is what came."""

    def __init__(self, content: bytes) -> None:
        self.content = content
        self.sent = b""

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection."""
        while True:
            self.sent += b"".join(await head_and_body(reader))
            writer.write(self.content)


async def bind(client: LoopClient) -> None:
    """One binding."""
    await client.bind("ns", "p", "u", "node-0", {"a": "b"})


async def get(client: LoopClient) -> None:
    """One pod."""
    await client.get(PODS, "p", "ns")


async def test_a_binding_is_posted() -> None:
    """With the pod's UID, and annotations for the pod; the credentials are asked for once, in a thread."""
    asked: list[int] = []

    def token() -> str:
        asked.append(threading.get_ident())
        return "Bearer secret"

    server = Server(answer(status=201))
    async with client_of(server, authorization=token) as client:
        await bind(client.on_loop)
        await bind(client.on_loop)
    head, _, rest = server.sent.partition(b"\r\n\r\n")
    assert head.startswith(b"POST /prefix/api/v1/namespaces/ns/pods/p/binding HTTP/1.1\r\nHost: 127.0.0.1:")
    assert b"Authorization: Bearer secret" in head
    assert b"Content-Type: application/json" in head
    [body] = {part.split(b"POST ")[0] for part in rest.split(b"\r\n\r\n") if part}
    assert msgspec.json.decode(body)["metadata"] == {
        "name": "p", "namespace": "ns", "uid": "u", "annotations": {"a": "b"},
    }  # fmt: skip
    [thread] = asked
    assert thread != threading.get_ident()


async def test_a_call_waits_for_credentials_no_longer_than_it_may_take() -> None:
    """A program that hangs is one thread, however many calls give up on it; what it says at last is used."""
    asked: list[int] = []
    release = threading.Event()

    def token() -> str:
        asked.append(1)
        assert release.wait(20)
        return "Bearer late"

    server = Server(answer())
    async with client_of(server, authorization=token) as client:
        for _ in range(3):
            with pytest.raises(Unreachable, match=r"no response within 0\.05 s"):
                await client.on_loop.request("GET", "/", timeout_s=0.05)
        release.set()
        await client.on_loop.request("GET", "/", timeout_s=20)
    assert b"Bearer late" in server.sent
    assert asked == [1]


async def test_no_call_goes_without_credentials() -> None:
    """Not even one that comes in the moment when they are there, and nobody has noted them yet."""
    credentials = transport._CachedHeader(lambda: "Bearer secret")
    first = asyncio.create_task(credentials.header())
    while credentials._asking is None or not credentials._asking.done():  # noqa: ASYNC110 - the moment is the test
        await asyncio.sleep(0)
    assert (await credentials.header(), await first) == ("Bearer secret", "Bearer secret")


STATUS = msgspec.json.encode({"kind": "Status", "reason": "Conflict", "message": "not now", "code": 409})


@pytest.mark.parametrize(("call", "content", "kind", "shown"), [
    (bind, answer(STATUS, 409), Conflict, "POST /api/v1/namespaces/ns/pods/p/binding: 409 Conflict: not now"),
    (bind, answer(b"busy", 429, "retry-after: 7\r\n"), TooManyRequests, "binding: 429: busy"),
    (get, answer(b"", 404), NotFound, "GET /api/v1/namespaces/ns/pods/p: 404"),
    (get, answer(b"[]"), Undecodable, "pods/p: 200: the response cannot be read as a Pod: Expected"),
], ids=["by its reason", "for a while", "without content", "no pod"])  # fmt: skip
async def test_what_the_api_server_refuses(
    call: Callable[[LoopClient], Awaitable[None]], content: bytes, kind: type[APIError], shown: str
) -> None:
    """By its reason, and with how long it wishes to be left alone."""
    async with client_of(Server(content)) as client:
        with pytest.raises(kind, match=shown) as caught:
            await call(client.on_loop)
    assert caught.value.retry_after_s == (7 if kind is TooManyRequests else None)


@pytest.mark.parametrize(
    ("date", "known"),
    [("Tue, 01 Jan 2030 00:00:00 GMT", True), ("soon", False), ("", False)],
    ids=["2030", "odd", "none"],
)
async def test_the_time_of_the_api_server(date: str, *, known: bool) -> None:
    """It is unknown before the first answer, and goes on after the last one."""
    async with client_of(Server(answer(headers=f"date: {date}\r\n" if date else ""))) as client:
        assert client.server_time_s() is None
        await client.on_loop.get(NAMESPACES, "default")
        first, later = client.server_time_s(), client.server_time_s()
        assert (first is not None) == known
        assert first is None or later is None or 1893456000 <= first <= later < 1893456060
