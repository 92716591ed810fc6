"""The server in the event loop: real sockets, a thousand calls that wait at once, and an orderly end."""

import asyncio
import os
import signal
import socket
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from http import HTTPStatus
from http.client import HTTPConnection

import pytest
import uvloop

from muster.process import calls, embedded
from muster.process.calls import Answer, Request
from muster.process.embedded import Listener

JSON = {"content-type": "application/json"}


@pytest.fixture(autouse=True)
def signals_as_before() -> Iterator[None]:
    """A process ends after `embedded.run`; this one goes on, and its other tests want to be interrupted."""
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])


async def echo(request: Request) -> Answer:
    """What the server made of the request."""
    body = await request.body() if request.method == "POST" else b""
    seen = (request.method, request.path, request.host, request.headers.get("x-seen", ""), "x-seen" in request.headers)
    return Answer(HTTPStatus.OK, repr((*seen, body)).encode())


async def broken(_: Request) -> Answer:
    """An app with a defect."""
    raise RuntimeError("a defect")


def served(app: Callable[[Request], Awaitable[Answer]], story: Callable[[int], None]) -> None:
    """Runs a story, in a thread, against a server."""

    async def run() -> None:
        port = free_port()
        listener = Listener(app, host="127.0.0.1", port=port)
        await listener.start()
        try:
            await asyncio.to_thread(story, port)
        finally:
            await listener.stop()

    uvloop.run(run())


def test_a_request_arrives_as_it_was_sent() -> None:
    """Two over one connection."""

    def story(port: int) -> None:
        client = HTTPConnection("127.0.0.1", port)
        client.request("POST", "/a?b=c", b"{}", {"X-Seen": "yes"})
        host = f"127.0.0.1:{port}"
        assert client.getresponse().read() == repr(("POST", "/a", host, "yes", True, b"{}")).encode()
        client.request("GET", "/", headers={"Host": "other"})
        assert client.getresponse().read() == repr(("GET", "/", "other", "", False, b"")).encode()
        client.close()

    served(echo, story)


@pytest.mark.parametrize(
    ("length", "status"),
    [
        (None, HTTPStatus.LENGTH_REQUIRED),
        (str(17 * 1024 * 1024), HTTPStatus.REQUEST_ENTITY_TOO_LARGE),
        ("9" * 18, HTTPStatus.REQUEST_ENTITY_TOO_LARGE),
    ],
)
def test_a_body_without_a_length_or_with_too_much_is_not_read(length: str | None, status: HTTPStatus) -> None:
    """The client is told so."""

    def story(port: int) -> None:
        client = HTTPConnection("127.0.0.1", port)
        client.putrequest("POST", "/")
        client.putheader(*(("transfer-encoding", "chunked") if length is None else ("content-length", length)))
        client.endheaders()
        assert client.getresponse().status == status
        client.close()

    served(echo, story)


def test_a_body_that_does_not_come_is_waited_for_only_so_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of it has come."""
    monkeypatch.setattr(calls, "BODY_S", 0.05)

    def story(port: int) -> None:
        client = HTTPConnection("127.0.0.1", port)
        client.putrequest("POST", "/")
        client.putheader("content-length", "5")
        client.endheaders()
        assert client.getresponse().status == HTTPStatus.REQUEST_TIMEOUT
        client.close()

    served(echo, story)


def test_a_defect_is_an_answer_too() -> None:
    """The connection stays usable."""

    def story(port: int) -> None:
        client = HTTPConnection("127.0.0.1", port)
        for _ in range(2):
            client.request("GET", "/")
            answer = client.getresponse()
            assert (answer.status, answer.read()) == (HTTPStatus.INTERNAL_SERVER_ERROR, b"see the log\n")
        client.close()

    served(broken, story)


def test_calls_that_wait_take_no_threads() -> None:
    """All are there before the first is answered; each has a connection of its own, as over HTTP/1.1."""
    count = 300
    here: list[int] = []
    everybody = asyncio.Event()

    async def meet(_: Request) -> Answer:
        here.append(1)
        if len(here) == count:
            everybody.set()
        await everybody.wait()
        return Answer(HTTPStatus.OK, str(len(here)).encode())

    def story(port: int) -> None:
        def call(_: int) -> bytes:
            client = HTTPConnection("127.0.0.1", port, timeout=60)
            client.request("POST", "/", b"{}")
            body = client.getresponse().read()
            client.close()
            return body

        with ThreadPoolExecutor(count) as pool:
            assert set(pool.map(call, range(count))) == {str(count).encode()}

    served(meet, story)


def test_a_port_that_is_taken_is_not_shared() -> None:
    """Two extenders on one port would each get some of the calls."""

    async def story() -> None:
        port = free_port()
        first = Listener(echo, host="127.0.0.1", port=port)
        await first.start()
        with pytest.raises(OSError, match="in use"):
            await Listener(echo, host="127.0.0.1", port=port).start()
        await first.stop()

    uvloop.run(story())


def test_after_sigterm_a_call_that_waits_is_let_go_and_answered() -> None:
    """Then what was started is stopped, and the process may end."""
    port, told, calls = free_port(), [], ThreadPoolExecutor(1)
    answers = []
    letting_go: list[asyncio.Future[None]] = []

    async def wait(_: Request) -> Answer:
        letting_go.append(asyncio.get_running_loop().create_future())
        os.kill(os.getpid(), signal.SIGTERM)
        await letting_go[0]
        return Answer(HTTPStatus.OK, b"let go")

    def call() -> bytes:
        client = HTTPConnection("127.0.0.1", port, timeout=60)
        while True:
            try:
                client.connect()
                break
            except ConnectionRefusedError:
                continue
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

    embedded.run(
        wait, host="127.0.0.1", port=port, on_start=start, on_stopping=stopping, on_stop=lambda: told.append("stop")
    )
    assert answers[0].result(60) == b"let go"
    assert told == ["start", "stopping", "stop"]
    calls.shutdown()


def test_what_was_started_is_stopped_where_the_port_cannot_be_had() -> None:
    """And the process can say why it ends."""
    told: list[str] = []
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(OSError, match="in use"):
        embedded.run(
            echo,
            host="127.0.0.1",
            port=taken.getsockname()[1],
            on_start=lambda: told.append("start"),
            on_stop=lambda: told.append("stop"),
        )
    assert told == ["start", "stop"]
