"""Plain HTTP on the loop, over real sockets: requests in any pieces, and clients that do not keep to the protocol."""

import asyncio
import gc
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from itertools import pairwise
from typing import NamedTuple

import pytest
import uvloop
from hypothesis import given, settings
from hypothesis import strategies as st

from muster.process import calls, http1
from muster.process.calls import Answer, App, Request
from muster.process.embedded import Listener

DEADLINE_S = 20.0


class Client(NamedTuple):
    """A client's end of a connection."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    def send(self, *pieces: bytes) -> None:
        """Sends them."""
        self.writer.writelines(pieces)

    async def answer(self) -> tuple[int, dict[str, str], bytes]:
        """The next answer: status, headers, body."""
        async with asyncio.timeout(DEADLINE_S):
            head = (await self.reader.readuntil(b"\r\n\r\n")).decode()
            first, *lines = head.strip().split("\r\n")
            headers = dict(line.split(": ", 1) for line in lines)
            body = await self.reader.readexactly(int(headers.get("content-length", "0")))
            return int(first.split()[1]), headers, body

    async def closed(self) -> bool:
        """Whether the server has closed it, with nothing more to say."""
        async with asyncio.timeout(DEADLINE_S):
            return await self.reader.read() == b""


Story = Callable[[Callable[[], Awaitable[Client]], Listener], Awaitable[None]]


def served(app: App, story: Story) -> None:
    """Runs a story against a server; it gets what opens a connection."""

    async def run() -> None:
        listener = Listener(app, host="127.0.0.1", port=0)
        await listener.start()
        opened: list[Client] = []

        async def connect() -> Client:
            opened.append(Client(*await asyncio.open_connection("127.0.0.1", listener.port)))
            return opened[-1]

        try:
            await story(connect, listener)
        finally:
            for client in opened:
                client.writer.close()
            await listener.stop()

    uvloop.run(run())


async def echo(request: Request) -> Answer:
    """Method, path and body, as they came."""
    body = await request.body() if request.method == "POST" else b""
    return Answer(HTTPStatus.OK, f"{request.method} {request.path} ".encode() + body)


def post(path: str, body: bytes, *headers: str) -> bytes:
    """A request."""
    lines = (f"POST {path} HTTP/1.1", "host: a", f"content-length: {len(body)}", *headers)
    return "\r\n".join((*lines, "", "")).encode() + body


@settings(max_examples=60, deadline=None)
@given(
    bodies=st.lists(st.binary(max_size=300), min_size=1, max_size=5),
    cuts=st.lists(st.integers(min_value=0, max_value=2000), max_size=12),
)
def test_requests_are_answered_in_order_in_whatever_pieces_they_come(bodies: list[bytes], cuts: list[int]) -> None:
    """Cut anywhere: in a name, in a length, between two requests."""
    stream = b"".join(post(f"/{number}", body) for number, body in enumerate(bodies))
    places = [0, *sorted(min(cut, len(stream)) for cut in cuts), len(stream)]

    async def story(connect: Callable[[], Awaitable[Client]], _: Listener) -> None:
        client = await connect()
        for start, end in pairwise(places):
            client.send(stream[start:end])
            await client.writer.drain()
            await asyncio.sleep(0)
        for number, body in enumerate(bodies):
            status, _headers, answer = await client.answer()
            assert (status, answer) == (HTTPStatus.OK, f"POST /{number} ".encode() + body)

    served(echo, story)


@settings(max_examples=60, deadline=None)
@given(st.binary(min_size=1, max_size=400), st.booleans())
def test_what_is_not_http_harms_nobody(rubbish: bytes, after_a_request: bool) -> None:  # noqa: FBT001
    """Others are served; who sent it gets an answer to what came before, and then at most a refusal."""

    async def story(connect: Callable[[], Awaitable[Client]], _: Listener) -> None:
        bad, good = await connect(), await connect()
        bad.send(post("/before", b"") if after_a_request else b"", rubbish)
        if after_a_request:
            assert (await bad.answer())[2] == b"POST /before "
        good.send(post("/a", b"b"))
        assert (await good.answer())[2] == b"POST /a b"
        bad.writer.write_eof()
        async with asyncio.timeout(DEADLINE_S):
            said = await bad.reader.read()
        assert said == b"" or said.startswith((b"HTTP/1.1 4", b"HTTP/1.1 200"))

    served(echo, story)


def test_a_large_body_comes_whole() -> None:
    """A filter call that names every node of a large cluster."""
    body = b"x" * 3_000_000

    async def story(connect: Callable[[], Awaitable[Client]], _: Listener) -> None:
        client = await connect()
        client.send(post("/", body))
        assert (await client.answer())[2] == b"POST / " + body

    served(echo, story)


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (b"GET / HTTP/1.1\r\n" + b"x: " + b"y" * 600_000, HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE),
        (b"rubbish\r\n\r\n", HTTPStatus.BAD_REQUEST),
        (post("/", b"", "content-length: 7"), HTTPStatus.BAD_REQUEST),
        (post("/", b"", "transfer-encoding: chunked"), HTTPStatus.BAD_REQUEST),
        (b"POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n", HTTPStatus.LENGTH_REQUIRED),
    ],
)
def test_who_breaks_the_protocol_is_told_so(head: bytes, status: HTTPStatus) -> None:
    """And the connection ends when he has read it."""

    async def story(connect: Callable[[], Awaitable[Client]], _: Listener) -> None:
        client = await connect()
        client.send(head)
        found, headers, _body = await client.answer()
        assert (found, headers["connection"]) == (status, "close")
        assert await client.closed()

    served(echo, story)


def test_a_refusal_is_told_after_the_answers_before_it() -> None:
    """The first request is still being worked on when the second turns out not to be one."""
    go_on = asyncio.Event()

    async def wait(request: Request) -> Answer:
        await go_on.wait()
        return await echo(request)

    async def story(connect: Callable[[], Awaitable[Client]], _: Listener) -> None:
        client, other = await connect(), await connect()
        client.send(post("/", b"1"), b"rubbish\r\n\r\n")
        await client.writer.drain()
        other.send(b"rubbish\r\n\r\n")  # its answer: the server has read both
        assert (await other.answer())[0] == HTTPStatus.BAD_REQUEST
        go_on.set()
        assert (await client.answer())[2] == b"POST / 1"
        assert (await client.answer())[0] == HTTPStatus.BAD_REQUEST

    served(wait, story)


def test_a_head_that_does_not_come_is_waited_for_only_so_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """Half a line of it is here."""
    monkeypatch.setattr(calls, "BODY_S", 0.05)

    async def story(connect: Callable[[], Awaitable[Client]], _: Listener) -> None:
        client = await connect()
        client.send(b"POST / HT")
        assert (await client.answer())[0] == HTTPStatus.REQUEST_TIMEOUT

    served(echo, story)


def test_an_idle_connection_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not while a call is held."""
    monkeypatch.setattr(calls, "IDLE_S", 0.05)
    free = asyncio.Event()

    async def wait(request: Request) -> Answer:
        if request.path == "/held":
            await free.wait()
        return await echo(request)

    async def story(connect: Callable[[], Awaitable[Client]], _: Listener) -> None:
        held, idle = await connect(), await connect()
        held.send(post("/held", b""))
        idle.send(post("/", b""))
        assert (await idle.answer())[0] == HTTPStatus.OK
        assert await idle.closed()
        free.set()
        assert (await held.answer())[0] == HTTPStatus.OK
        assert await held.closed()

    served(wait, story)


def test_many_requests_at_once_over_one_connection_are_all_answered() -> None:
    """The server reads no more of them than it can answer soon."""
    count = 3000

    async def story(connect: Callable[[], Awaitable[Client]], _: Listener) -> None:
        client = await connect()
        client.send(*(post(f"/{number}", b"x" * 100) for number in range(count)))
        for number in range(count):
            assert (await client.answer())[2] == f"POST /{number} ".encode() + b"x" * 100

    served(echo, story)


def test_what_a_client_may_ask_for() -> None:
    """HEAD has no body, `Upgrade` is not heard, and the old protocol and `close` end the connection."""

    async def story(connect: Callable[[], Awaitable[Client]], _: Listener) -> None:
        client = await connect()
        client.send(b"HEAD /h HTTP/1.1\r\nhost: a\r\n\r\n")
        head = await asyncio.wait_for(client.reader.readuntil(b"\r\n\r\n"), DEADLINE_S)
        assert b"content-length: 8" in head
        client.send(b"POST /e HTTP/1.1\r\ncontent-length: 2\r\nexpect: 100-continue\r\n\r\n")
        assert (
            await asyncio.wait_for(client.reader.readuntil(b"\r\n\r\n"), DEADLINE_S) == b"HTTP/1.1 100 Continue\r\n\r\n"
        )
        client.send(b"ab")
        assert (await client.answer())[2] == b"POST /e ab"
        for request in (
            b"GET / HTTP/1.0\r\n\r\n",
            b"GET / HTTP/1.1\r\nconnection: close\r\n\r\n",
            b"GET / HTTP/1.1\r\nconnection: upgrade\r\nupgrade: h2c\r\n\r\n",
        ):
            other = await connect()
            other.send(request)
            assert (await other.answer())[2] == b"GET / "
            assert await other.closed()

    served(echo, story)


def test_who_goes_away_does_not_undo_what_has_begun() -> None:
    """A binding that is being written is written."""
    begun, done, go_on = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def work(_: Request) -> Answer:
        begun.set()
        await go_on.wait()
        done.set()
        return Answer(HTTPStatus.OK, b"")

    async def story(connect: Callable[[], Awaitable[Client]], listener: Listener) -> None:
        client = await connect()
        client.send(post("/", b""))
        async with asyncio.timeout(DEADLINE_S):
            await begun.wait()
            client.writer.transport.abort()
            stopping = asyncio.create_task(listener.stop())  # it waits for what has begun
            go_on.set()
            await stopping
        assert done.is_set()

    served(work, story)


def test_a_server_that_leaves_answers_what_it_has() -> None:
    """Idle connections end at once; the held one is told that it was the last."""
    held, go_on = asyncio.Event(), asyncio.Event()

    async def work(request: Request) -> Answer:
        if request.path == "/held":
            held.set()
            await go_on.wait()
        return await echo(request)

    async def story(connect: Callable[[], Awaitable[Client]], listener: Listener) -> None:
        idle, client = await connect(), await connect()
        idle.send(post("/", b""))
        assert (await idle.answer())[0] == HTTPStatus.OK
        client.send(post("/held", b""))
        async with asyncio.timeout(DEADLINE_S):
            await held.wait()
            stopping = asyncio.create_task(listener.stop())
            assert await idle.closed()
            go_on.set()
            assert (await client.answer())[1]["connection"] == "close"
            await stopping

    served(work, story)


def test_a_connection_that_has_ended_is_gone_at_once() -> None:
    """kube-scheduler opens one for nearly every binding, and garbage collections are rare."""

    async def story(connect: Callable[[], Awaitable[Client]], _: Listener) -> None:
        gc.collect()
        gc.disable()
        try:
            for _call in range(20):
                client = await connect()
                client.send(b"GET / HTTP/1.1\r\nconnection: close\r\n\r\n")
                assert (await client.answer())[0] == HTTPStatus.OK
                assert await client.closed()
            left = [each for each in gc.get_objects() if isinstance(each, http1._Connection)]
            assert len(left) <= 1  # the last may not have been told yet
        finally:
            gc.enable()

    served(echo, story)
