"""Clients that are slow, or ask nothing, cost others neither threads nor time."""

import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from http.client import HTTPSConnection
from pathlib import Path

import pytest
from served_app import Served, wait_until

HEADER = b"POST /size HTTP/1.1\r\nHost: test\r\nContent-Length: 1000\r\n\r\n"
SOON_S = 5.0
"""Some hundredths of a second on a machine at rest; a wait for a slow client would be ten seconds."""
DROPPED = "muster_server_connections_dropped_total"
SHORT = {"REQUEST_S": 0.5, "IDLE_S": 2.0}
TIGHT = {"CONNECTIONS": 4, "LARGE_AT_ONCE": 1}


def serve(folder: Path, bounds: dict[str, float]) -> Iterator[Served]:
    """Serve an app with two threads for all tests of one setting."""
    served = Served(folder, bounds)
    yield served
    served.end()


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Provide the app with the bounds of the product."""
    yield from serve(tmp_path_factory.mktemp("usual"), {})


@pytest.fixture(scope="module")
def short(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Provide the app with short times for its clients."""
    yield from serve(tmp_path_factory.mktemp("short"), SHORT)


@pytest.fixture(scope="module")
def tight(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Provide the app with four connections that have no complete request, and one large body at once."""
    yield from serve(tmp_path_factory.mktemp("tight"), TIGHT)


@pytest.fixture(autouse=True)
def _hang_up(request: pytest.FixtureRequest) -> Iterator[None]:
    """Close what a test has left open, before the next one counts connections."""
    yield
    for name in {"served", "short", "tight"} & {*request.fixturenames}:
        request.getfixturevalue(name).hang_up()


def hello(served: Served) -> bytes:
    """The first message of a handshake."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    context = ssl.create_default_context(cadata=served.authority.cert_pem.decode())
    with suppress(ssl.SSLWantReadError):
        context.wrap_bio(incoming, outgoing, server_hostname="127.0.0.1").do_handshake()
    return outgoing.read()


def slow_handshake(served: Served) -> tuple[socket.socket, bytes]:
    """A client that is slow with its first message, and what it sends byte by byte."""
    return served.tcp(), hello(served)


def half_handshake(served: Served) -> tuple[socket.socket, bytes]:
    """A client that never answers the server's part of the handshake."""
    client = served.tcp()
    client.sendall(hello(served))
    return client, b""


def slow_header(served: Served) -> tuple[socket.socket, bytes]:
    """A client that is slow with its header."""
    return served.connect().sock, HEADER


def slow_body(served: Served) -> tuple[socket.socket, bytes]:
    """A client that is slow with its body."""
    client = served.connect().sock
    client.sendall(HEADER)
    return client, b"x" * 1000


KINDS = [slow_handshake, half_handshake, slow_header, slow_body]


class Drip:
    """Sends each client's bytes one by one, a round every 20 ms, until told to end."""

    def __init__(self, clients: list[tuple[socket.socket, bytes]]) -> None:
        self._clients = clients
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        position = 0
        while not self._ended.wait(0.02):
            for client, data in self._clients:
                with suppress(OSError):
                    client.sendall(data[position : position + 1])
            position += 1


def ask(served: Served, connection: HTTPSConnection | None = None) -> float:
    """Seconds until a good client has its answer, handshake included if the connection is new."""
    started = time.monotonic()
    served.pids(connection)
    return time.monotonic() - started


def size(connection: HTTPSConnection, body: bytes) -> bytes:
    """What a good client is told of its body."""
    connection.request("POST", "/size", body)
    return connection.getresponse().read()


def test_fifty_slow_clients_keep_nobody_waiting(served: Served) -> None:
    """A new client and one that is there already are answered at once; there are two threads."""
    known = served.connect()
    ask(served, known)
    with Drip([KINDS[number % len(KINDS)](served) for number in range(52)]):
        for _ in range(5):
            assert ask(served) < SOON_S
            assert ask(served, known) < SOON_S


@pytest.mark.parametrize("kind", [slow_header, slow_body])
def test_whoever_does_not_finish_is_dropped(short: Served, kind: Callable[..., tuple[socket.socket, bytes]]) -> None:
    """The time is counted from the start, so that a byte now and then does not help."""
    dropped = DROPPED + '{reason="request"}'
    before = short.metric(dropped)
    with Drip([kind(short) for _ in range(3)]):
        wait_until(lambda: short.metric(dropped) == before + 3, "the end of all three")


def ask_for_much(served: Served) -> None:
    """Have four clients ask for 12 MB each, of which they take nothing."""
    for _ in range(4):
        served.connect().request("GET", "/big")


def test_clients_that_do_not_take_their_answers_keep_nobody_waiting(served: Served) -> None:
    """There are two threads for four answers of 12 MB."""
    ask_for_much(served)
    assert ask(served) < SOON_S


def test_clients_that_do_not_take_their_answers_are_dropped(short: Served) -> None:
    """Once the time for that is over."""
    ask_for_much(short)
    wait_until(lambda: short.metric("muster_server_connections ") == 1, "the end of all four")


def test_a_client_that_takes_its_answer_slowly_gets_all_of_it(served: Served) -> None:
    """In pieces as large as it likes."""
    client = served.connect()
    client.request("GET", "/big")
    answer = client.getresponse()
    assert sum(len(piece) for piece in iter(lambda: answer.read(1_000_000), b"")) == 12_000_000
    ask(served, client)


def test_requests_that_are_worked_on_take_nobody_his_connection(tight: Served) -> None:
    """kube-scheduler holds a call for each member of a gang, and asks about the next ones over connections it has."""
    idle = [tight.connect() for _ in range(2)]
    for client in idle:
        ask(tight, client)
    busy = []
    for _ in range(4):
        busy.append(tight.connect())
        busy[-1].request("GET", "/slow")
    for client in idle:
        ask(tight, client)
    for client in busy:
        assert client.getresponse().read() == b"done"


def test_unfinished_requests_may_not_fill_the_memory(tight: Served) -> None:
    """Of large bodies only so many are read at once; small ones go on, and those that wait have their turn."""
    body, dropped = b"x" * 700_000, tight.metric(DROPPED)
    never, later = tight.connect().sock, tight.connect()
    never.sendall(HEADER.replace(b"1000", b"700000") + body[:-1])
    ask(tight)
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(size, later, body)
        assert ask(tight) < SOON_S
        with pytest.raises(TimeoutError):
            answer.result(0.3)
        assert tight.metric(DROPPED) == dropped
        never.close()
        assert answer.result(SOON_S) == b"700000"


@pytest.mark.parametrize("sent", [
    b"POST /size HTTP/1.1\r\nHost: test\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nx",
    b"POST /size HTTP/1.1\r\nHost: test\r\nContent-Length: x\r\n\r\nx",
    b"POST /size HTTP/1.1\r\nHost: test\r\nA: " + b"x" * 600_000,
    b"nonsense\r\n\r\n",
], ids=["two lengths", "no length", "a long header", "no HTTP"])  # fmt: skip
def test_what_cannot_be_read_is_refused_and_the_connection_ends(served: Served, sent: bytes) -> None:
    """With a status, although not all of it was read."""
    client = served.connect().sock
    client.sendall(sent)
    assert b"".join(iter(lambda: client.recv(65536), b"")).startswith(b"HTTP/1.1 400")


def test_a_body_that_is_too_large_is_refused(served: Served) -> None:
    """At once, and to a client that sends all of it first, too."""
    client = served.connect()
    client.sock.sendall(HEADER.replace(b"1000", b"99999999"))
    assert client.sock.recv(65536).startswith(b"HTTP/1.1 413")
    other = served.connect()
    other.request("POST", "/size", b"x" * 20_000_000)
    assert other.getresponse().status == 413


HEADERS = {
    "one header": b"A: " + b"x" * 60_000,
    "names without end": b"\r\n".join(b"a:" for _ in range(15_000)),
    "one name, many times": b"\r\n".join(b"content-type: a" for _ in range(3_500)),
    "spaces": b"Content-Type:" + b" " * 60_000 + b"\r",
    "commas": b"Connection: " + b"," * 60_000,
    "cookies": b"Cookie: " + b"a=b;" * 15_000,
}


@pytest.mark.parametrize("kind", HEADERS)
def test_no_header_holds_up_the_server(served: Served, kind: str) -> None:
    """Whatever is in 60 KB of it, others are answered at once."""
    known, odd = served.connect(), [served.connect().sock for _ in range(5)]
    ask(served, known)
    for client in odd:
        client.sendall(b"POST /size HTTP/1.1\r\nHost: test\r\n" + HEADERS[kind] + b"\r\nContent-Length: 0\r\n\r\n")
    assert ask(served, known) < SOON_S
    for client in odd:
        assert client.recv(65536).startswith(b"HTTP/1.1 ")


def test_requests_that_come_together_are_answered_one_after_the_other(served: Served) -> None:
    """The second and third are there before the first is answered."""
    client = served.connect().sock
    head = b"POST /size HTTP/1.1\r\nHost: test\r\nContent-Length: %d\r\n%s\r\n%s"
    last = head % (3, b"Connection: close\r\n", b"xxx")
    client.sendall(head % (1, b"", b"x") + head % (20_000, b"", b"x" * 20_000) + last)
    answer = b"".join(iter(lambda: client.recv(65536), b""))
    assert [part.rpartition(b"\r\n\r\n")[2] for part in answer.split(b"HTTP/1.1 200 OK")[1:]] == [b"1", b"20000", b"3"]
