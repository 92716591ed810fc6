"""The server in the process's loop: real sockets, calls that wait, and an orderly end."""

import asyncio
import gc
import os
import signal
import socket
import sys
import threading
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from http import HTTPStatus
from http.client import HTTPConnection
from itertools import pairwise

import pytest
from asgi_world import DEADLINE_S, Client, answering, echo, post, served
from hypothesis import given, settings
from hypothesis import strategies as st
from starlette.requests import Request

from muster.process import serve
from muster.process.bounds import BoundedConnection

pytestmark = pytest.mark.anyio

Stop = Callable[[], Awaitable[None]]


@pytest.fixture(autouse=True)
def signals_as_before() -> Iterator[None]:
    """A process ends after `serve.run`; this one goes on, and its other tests want to be interrupted."""
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    switch_s = sys.getswitchinterval()
    yield
    sys.setswitchinterval(switch_s)
    for number, handler in before.items():
        signal.signal(number, handler)


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])


@settings(max_examples=settings().max_examples * 2 // 5)
@given(
    bodies=st.lists(st.binary(max_size=300), min_size=1, max_size=5),
    cuts=st.lists(st.integers(min_value=0, max_value=2000), max_size=12),
)
async def test_requests_are_answered_in_order_in_whatever_pieces_they_come(
    bodies: list[bytes], cuts: list[int]
) -> None:
    """Cut anywhere: in a name, in a length, between two requests."""
    stream = b"".join(post(f"/{number}", body) for number, body in enumerate(bodies))
    places = [0, *sorted(min(cut, len(stream)) for cut in cuts), len(stream)]
    async with served(answering(echo)) as (connect, _):
        client = await connect()
        for start, end in pairwise(places):
            client.send(stream[start:end])
            await client.writer.drain()
            await asyncio.sleep(0)
        for number, body in enumerate(bodies):
            status, _headers, answer = await client.answer()
            assert (status, answer) == (HTTPStatus.OK, f"POST /{number} ".encode() + body)


@settings(max_examples=settings().max_examples * 2 // 5)
@given(st.binary(min_size=1, max_size=400), st.booleans())
async def test_what_is_not_http_harms_nobody(rubbish: bytes, after_a_request: bool) -> None:  # noqa: FBT001
    """Others are served; who sent it gets an answer to what came before, and then at most a refusal."""
    async with served(answering(echo)) as (connect, _):
        bad, good = await connect(), await connect()
        if after_a_request:
            bad.send(post("/before", b""))
            assert (await bad.answer())[2] == b"POST /before "
        bad.send(rubbish)
        good.send(post("/a", b"b"))
        assert (await good.answer())[2] == b"POST /a b"
        bad.writer.write_eof()
        async with asyncio.timeout(DEADLINE_S):
            said = await bad.reader.read()
        assert said == b"" or said.startswith((b"HTTP/1.1 4", b"HTTP/1.1 200"))


async def test_a_large_body_comes_whole() -> None:
    """A filter call that names every node of a large cluster."""
    body = b"x" * 3_000_000
    async with served(answering(echo)) as (connect, _):
        client = await connect()
        client.send(post("/", body))
        assert (await client.answer())[2] == b"POST / " + body


async def test_a_defect_is_an_answer_too(caplog: pytest.LogCaptureFixture) -> None:
    """Which tells nothing of it; the log does."""

    async def broken(_: Request) -> bytes:
        raise RuntimeError("a defect")

    async with served(answering(broken)) as (connect, _):
        client = await connect()
        client.send(post("/", b""))
        status, _headers, body = await client.answer()
        assert (status, body) == (HTTPStatus.INTERNAL_SERVER_ERROR, b"Internal Server Error")
    assert "a defect" in caplog.text


async def test_calls_that_wait_take_no_threads() -> None:
    """All are there before the first is answered; each has a connection of its own."""
    count, here, everybody = 300, [0], asyncio.Event()
    threads = threading.active_count()

    async def meet(_: Request) -> str:
        here[0] += 1
        if here[0] == count:
            everybody.set()
        await everybody.wait()
        return str(threading.active_count() - threads)

    async with served(answering(meet)) as (connect, _):
        clients = [await connect() for _ in range(count)]
        for client in clients:
            client.send(post("/", b"{}"))
        assert {(await client.answer())[2] for client in clients} == {b"0"}


async def test_a_connection_that_has_ended_is_gone_at_once() -> None:
    """kube-scheduler opens one for nearly every binding, and garbage collections are rare."""
    async with served(answering(echo)) as (connect, _):
        gc.collect()
        gc.disable()
        try:
            for _call in range(20):
                client = await connect()
                client.send(b"GET / HTTP/1.1\r\nconnection: close\r\n\r\n")
                assert (await client.answer())[0] == HTTPStatus.OK
                assert await client.closed()
            left = [each for each in gc.get_objects() if isinstance(each, BoundedConnection)]
            assert len(left) <= 1  # the last may not have been told yet
        finally:
            gc.enable()


async def test_who_goes_away_does_not_undo_what_has_begun() -> None:
    """A binding that is being written is written, also when the server stops meanwhile."""
    begun, done, go_on = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def work(_: Request) -> bytes:
        begun.set()
        await go_on.wait()
        done.set()
        return b""

    async with served(answering(work)) as (connect, stop):
        client = await connect()
        client.send(post("/", b""))
        await begun.wait()
        client.writer.transport.abort()
        stopping = asyncio.ensure_future(stop())
        await asyncio.sleep(0)
        go_on.set()
        await stopping
        assert done.is_set()


async def test_a_server_that_stops_answers_what_it_has() -> None:
    """Idle connections end soon, with an answer to what is on its way; the held call is told that it was the last."""
    held, go_on = asyncio.Event(), asyncio.Event()

    async def work(request: Request) -> bytes:
        if request.url.path == "/held":
            held.set()
            await go_on.wait()
        return await echo(request)

    async with served(answering(work)) as (connect, stop):
        idle, unused, client = await connect(), await connect(), await connect()
        idle.send(post("/", b""))
        assert (await idle.answer())[0] == HTTPStatus.OK
        client.send(post("/held", b""))
        await held.wait()
        stopping = asyncio.ensure_future(stop())
        idle.send(post("/last", b""))
        status, headers, _body = await idle.answer()
        assert (status, await idle.closed(), await unused.closed()) == (HTTPStatus.OK, True, True)
        go_on.set()
        assert (await client.answer())[1]["connection"] == headers.get("connection", "close") == "close"
        await stopping


async def test_a_call_that_is_not_answered_does_not_keep_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is under way has so many seconds."""
    monkeypatch.setattr(serve, "GRACE_S", 1)
    held = asyncio.Event()

    async def never(_: Request) -> bytes:
        held.set()
        await asyncio.Event().wait()
        return b""

    async with served(answering(never)) as (connect, stop):
        client = await connect()
        client.send(post("/", b""))
        await held.wait()
        async with asyncio.timeout(10):
            await stop()


def test_a_port_that_is_taken_is_not_shared() -> None:
    """Two extenders on one port would each get some of the calls. Nothing is started then."""
    told: list[str] = []
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(OSError, match="in use"):
        serve.run(
            answering(echo),
            host="127.0.0.1",
            port=taken.getsockname()[1],
            on_start=lambda: told.append("start"),
            on_stop=lambda: told.append("stop"),
        )
    assert told == []


def test_it_listens_on_both_kinds_of_addresses() -> None:
    """`::` is for IPv4, too."""
    with serve.listen("::", 0) as listening:
        port = listening.getsockname()[1]
        for host in ("::1", "127.0.0.1"):
            socket.create_connection((host, port), timeout=5).close()


def test_after_sigterm_a_call_that_waits_is_let_go_and_answered() -> None:
    """Then what was started is stopped, and the process may end. Threads that compute have left the loop its turns."""
    sys.setswitchinterval(0.005)
    port, told, calls = free_port(), [], ThreadPoolExecutor(1)
    answers = []
    letting_go: list[asyncio.Future[None]] = []

    async def wait(_: Request) -> str:
        letting_go.append(asyncio.get_running_loop().create_future())
        os.kill(os.getpid(), signal.SIGTERM)
        await letting_go[0]
        return "let go"

    def call() -> bytes:
        client = HTTPConnection("127.0.0.1", port, timeout=60)
        client.request("POST", "/", b"{}")
        body = client.getresponse().read()
        client.close()
        return body

    def start() -> None:
        told.append("start")
        answers.append(calls.submit(call))

    def stopping() -> None:
        told.append("stopping")
        letting_go[0].set_result(None)

    serve.run(
        answering(wait),
        host="127.0.0.1",
        port=port,
        on_start=start,
        on_stopping=stopping,
        on_stop=lambda: told.append("stop"),
    )
    assert answers[0].result(60) == b"let go"
    assert told == ["start", "stopping", "stop"]
    assert sys.getswitchinterval() == pytest.approx(0.001)
    calls.shutdown()


async def test_many_requests_at_once_over_one_connection_are_all_answered() -> None:
    """The server reads no more of them than it can answer soon."""
    count = 3000
    async with served(answering(echo)) as (connect, _):
        client: Client = await connect()
        client.send(*(post(f"/{number}", b"x" * 100) for number in range(count)))
        for number in range(count):
            assert (await client.answer())[2] == f"POST /{number} ".encode() + b"x" * 100
