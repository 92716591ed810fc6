"""A server bounds its clients: seconds of a request and an answer, bytes of a header, the age of a connection."""

import asyncio
from collections.abc import Awaitable, Callable
from http import HTTPStatus

import pytest
from asgi_world import answering, echo, post, served
from starlette.requests import Request

from muster.process import bounds, serve

pytestmark = pytest.mark.anyio

Stop = Callable[[], Awaitable[None]]


async def test_a_request_that_does_not_come_is_waited_for_only_so_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """Half a line of it is here, or all but its last byte."""
    monkeypatch.setattr(bounds, "REQUEST_S", 0.05)
    async with served(answering(echo)) as (connect, _):
        for piece in (b"POST / HT", post("/", b"12345")[:-1]):
            client = await connect()
            client.send(piece)
            assert await client.closed()


async def test_a_request_that_has_come_may_be_worked_on_for_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a bind call that waits for its gang."""
    monkeypatch.setattr(bounds, "REQUEST_S", 0.05)

    async def wait(request: Request) -> bytes:
        await asyncio.sleep(0.2)
        return await echo(request)

    async with served(answering(wait)) as (connect, _):
        client = await connect()
        client.send(post("/", b"a"))
        assert (await client.answer())[2] == b"POST / a"


@pytest.mark.parametrize("head", [
    b"GET / HTTP/1.1\r\n" + b"x: " + b"y" * 600_000,
    b"GET /" + b"y" * 600_000,
    b"GET / HTTP/1.1\r\nx: " + b"y" * 100_000 + b"\r\n\r\n",
    b"GET / HTTP/1.1\r\n" + b"".join(b"x%d: y\r\n" % number for number in range(200)) + b"\r\n",
])  # fmt: skip
async def test_a_header_that_is_too_long_is_refused(head: bytes) -> None:
    """However it is too long."""
    async with served(answering(echo)) as (connect, _):
        client = await connect()
        client.send(head)
        assert (await client.answer())[0] == HTTPStatus.BAD_REQUEST
        assert await client.closed()


async def test_an_idle_connection_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that was used, and one that was not; not one on which a call is held."""
    monkeypatch.setattr(serve, "IDLE_S", 0.05)
    free, calls = asyncio.Event(), asyncio.Semaphore(0)

    async def wait(request: Request) -> bytes:
        if request.url.path == "/held":
            calls.release()
            await free.wait()
        return await echo(request)

    async with served(answering(wait)) as (connect, _):
        held, idle, unused = await connect(), await connect(), await connect()
        held.send(post("/held", b""))
        idle.send(post("/", b""))
        assert (await idle.answer())[0] == HTTPStatus.OK
        assert await idle.closed()
        assert await unused.closed()
        free.set()
        assert (await held.answer())[0] == HTTPStatus.OK
        assert await held.closed()


async def test_an_answer_that_nobody_takes_ends_the_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is larger than what the kernel keeps for the client."""
    monkeypatch.setattr(bounds, "ANSWER_S", 0.1)

    async def much(_: Request) -> bytes:
        return b"x" * 30_000_000

    dropped = asyncio.Event()
    monkeypatch.setattr(bounds.BoundedConnection, "drop", lambda _, reason: reason == "answer" and dropped.set())
    async with served(answering(much)) as (connect, _):
        client = await connect()
        client.writer.transport.pause_reading()  # type: ignore[attr-defined] # it is one that reads
        client.send(post("/", b"", "connection: close"))
        await asyncio.wait_for(dropped.wait(), 20)


async def test_an_old_connection_ends_with_its_next_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that its client shows a certificate again, which may have expired."""
    monkeypatch.setattr(bounds, "AGE_S", -1.0)
    async with served(answering(echo)) as (connect, _):
        client = await connect()
        client.send(post("/", b""))
        status, headers, _body = await client.answer()
        assert (status, headers["connection"]) == (HTTPStatus.OK, "close")
        assert await client.closed()


@pytest.mark.parametrize("idle", [False, True], ids=["that never asked", "that have asked before"])
async def test_beyond_the_bound_the_oldest_goes_that_asks_nothing(
    monkeypatch: pytest.MonkeyPatch, *, idle: bool
) -> None:
    """Of the address that has most of them; a call that is held or worked on is not counted."""
    monkeypatch.setattr(bounds, "CONNECTIONS", 4)
    free, calls = asyncio.Event(), asyncio.Semaphore(0)

    async def wait(request: Request) -> bytes:
        if request.url.path == "/held":
            calls.release()
            await free.wait()
        return await echo(request)

    async with served(answering(wait)) as (connect, _):
        other = await connect("127.0.0.2")
        held, many = [], []
        for _ in range(5):
            held.append(await connect())
            held[-1].send(post("/held", b""))
            await calls.acquire()
        for _ in range(8):
            await asyncio.sleep(0.005)  # the clock of the loop counts milliseconds
            many.append(await connect())
            if idle:
                many[-1].send(post("/", b""))
                assert (await many[-1].answer())[0] == HTTPStatus.OK
        assert [await each.closed() for each in many[:5]] == [True] * 5
        for client in (other, *many[5:]):
            client.send(post("/", b"x"))
            assert (await client.answer())[2] == b"POST / x"
        free.set()
        assert [(await client.answer())[0] for client in held] == [HTTPStatus.OK] * 5
