"""Calls of an event loop: what they send, and what becomes of the answers."""

import asyncio
import socket
import threading
from collections.abc import Awaitable, Callable

import msgspec
import pytest
import uvloop
from scripted_server import head_and_body, scripted_server

from muster.api.kubernetes.core import PODS
from muster.kube import transport
from muster.kube.config import Config
from muster.kube.errors import Conflict, NotFound, TooManyRequests, Undecodable, Unreachable
from muster.kube.loopclient import LoopClient

Story = Callable[[LoopClient], Awaitable[None]]


def answered(
    status: int, body: bytes, story: Story, *, headers: str = "", token: Callable[[], str] | None = None
) -> bytes:
    """Runs a story against a server that always answers so; gives what it was sent."""
    sent = bytearray()

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            sent.extend(b"".join(await head_and_body(reader)))
            writer.write(f"HTTP/1.1 {status} X\r\ncontent-length: {len(body)}\r\n{headers}\r\n".encode() + body)

    async def run() -> None:
        async with scripted_server(handler) as address:
            url = f"http://{address}/prefix"
            client = LoopClient(Config(url, authorization=token) if token else Config(url), user_agent="test")
            await story(client)
            client.close()

    uvloop.run(run())
    return bytes(sent)


async def bind(client: LoopClient) -> None:
    """One binding."""
    await client.bind("ns", "p", "u", "node-0", {"a": "b"})


def test_a_binding_is_posted() -> None:
    """With the pod's UID, and annotations for the pod; the credentials are asked for once, in a thread."""
    asked: list[int] = []

    def token() -> str:
        asked.append(1)
        return "Bearer secret"

    async def story(client: LoopClient) -> None:
        await bind(client)
        await bind(client)

    head, _, rest = answered(201, b"{}", story, token=token).partition(b"\r\n\r\n")
    assert head.startswith(b"POST /prefix/api/v1/namespaces/ns/pods/p/binding HTTP/1.1\r\nHost: 127.0.0.1:")
    assert b"Authorization: Bearer secret" in head
    assert b"Content-Type: application/json" in head
    [body] = {part.split(b"POST ")[0] for part in rest.split(b"\r\n\r\n") if part}
    assert msgspec.json.decode(body)["metadata"] == {
        "name": "p", "namespace": "ns", "uid": "u", "annotations": {"a": "b"},
    }  # fmt: skip
    assert asked == [1]


def test_a_call_waits_for_credentials_no_longer_than_it_may_take() -> None:
    """A program that hangs is one thread, however many calls give up on it; what it says at last is used."""
    asked: list[int] = []
    release = threading.Event()

    def token() -> str:
        asked.append(1)
        assert release.wait(20)
        return "Bearer late"

    async def story(client: LoopClient) -> None:
        for _ in range(3):
            with pytest.raises(Unreachable, match=r"no answer within 0\.05 s"):
                await client.request("GET", "/", timeout_s=0.05)
        release.set()
        await client.request("GET", "/", timeout_s=20)

    assert b"Bearer late" in answered(200, b"{}", story, token=token)
    assert asked == [1]


def test_no_call_goes_without_credentials() -> None:
    """Not even one that comes in the moment when they are there, and nobody has noted them yet."""

    async def story() -> tuple[str | None, str | None]:
        credentials = transport._Credentials(lambda: "Bearer secret")
        first = asyncio.create_task(credentials.header())
        while credentials._asking is None or not credentials._asking.done():  # noqa: ASYNC110 - the moment is the test
            await asyncio.sleep(0)
        return await credentials.header(), await first

    assert asyncio.run(story()) == ("Bearer secret", "Bearer secret")


def test_what_the_api_server_refuses() -> None:
    """By its reason, and with how long it wishes to be left alone."""
    status = {"kind": "Status", "reason": "Conflict", "message": "not now", "code": 409}

    async def refused(client: LoopClient) -> None:
        with pytest.raises(Conflict, match="not now") as caught:
            await bind(client)
        assert caught.value.where == "POST /api/v1/namespaces/ns/pods/p/binding"

    async def busy(client: LoopClient) -> None:
        with pytest.raises(TooManyRequests) as caught:
            await bind(client)
        assert caught.value.retry_after_s == 7

    async def missing(client: LoopClient) -> None:
        with pytest.raises(NotFound):
            await client.get(PODS, "p", "ns")

    answered(409, msgspec.json.encode(status), refused)
    answered(429, b"busy", busy, headers="retry-after: 7\r\n")
    answered(404, b"", missing)


def test_what_is_no_pod() -> None:
    """An answer that is not what the API promises."""

    async def story(client: LoopClient) -> None:
        with pytest.raises(Undecodable):
            await client.get(PODS, "p", "ns")

    answered(200, b"[]", story)


def test_nobody_there() -> None:
    """Told as what it is, with the method and the path."""

    async def story() -> None:
        with socket.create_server(("127.0.0.1", 0)) as taken:
            url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(Unreachable, match="no answer from the API server") as caught:
            await bind(LoopClient(Config(url)))
        assert caught.value.where.startswith("POST /api")

    uvloop.run(story())
