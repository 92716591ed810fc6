"""Clients that are slow, or ask nothing, cost others neither threads nor time."""

import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from http.client import HTTPSConnection
from pathlib import Path

import pytest
from served_app import Served, wait_until

HEADER = b"POST /size HTTP/1.1\r\nHost: test\r\nContent-Length: 1000\r\n\r\n"
SOON_S = 2.0
"""Some hundredths of a second on a machine at rest; whoever waited for a slow client would wait ten seconds."""
DROPPED = "muster_server_connections_dropped_total"
Start = Callable[..., Served]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Serves an app with two threads."""
    apps: list[Served] = []

    def make(**limits: float) -> Served:
        apps.append(Served(tmp_path, limits))
        return apps[-1]

    yield make
    for app in apps:
        app.end()


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
        for client, _bytes in self._clients:
            client.close()

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


def test_fifty_slow_clients_keep_nobody_waiting(start: Start) -> None:
    """A new client and one that is there already are answered at once; there are two threads."""
    served = start()
    known = served.connect()
    ask(served, known)
    with Drip([KINDS[number % len(KINDS)](served) for number in range(52)]):
        for _ in range(5):
            assert ask(served) < SOON_S
            assert ask(served, known) < SOON_S
    known.close()


@pytest.mark.parametrize("kind", KINDS)
def test_whoever_does_not_finish_in_time_is_dropped(
    start: Start, kind: Callable[..., tuple[socket.socket, bytes]]
) -> None:
    """The time is counted from the start, so that a byte now and then does not help."""
    served = start(handshake_s=0.5, request_s=0.5)
    with Drip([kind(served) for _ in range(3)]):
        wait_until(lambda: served.metric(DROPPED) == 3, "the end of all three")


def test_clients_that_do_not_take_their_answers_keep_nobody_waiting(start: Start) -> None:
    """Four answers of 12 MB, two threads; the four are dropped in the end."""
    served = start(answer_s=4)
    clients = [served.connect() for _ in range(4)]
    for client in clients:
        client.request("GET", "/big")
    assert ask(served) < SOON_S
    wait_until(lambda: served.metric(DROPPED + '{reason="deadline",state="answer"}') == 4, "the end of all four")
    for client in clients:
        client.close()


def test_a_client_that_takes_its_answer_slowly_gets_all_of_it(start: Start) -> None:
    """In pieces as large as it likes."""
    served = start()
    client = served.connect()
    client.request("GET", "/big")
    answer = client.getresponse()
    pieces = iter(lambda: answer.read(1_000_000), b"")
    assert sum(len(piece) for piece in pieces) == 12_000_000
    ask(served, client)
    client.close()


def test_beyond_the_bound_the_oldest_that_asked_nothing_goes(start: Start) -> None:
    """Those with a whole handshake go after those without."""
    served = start(connections=10)
    known = served.connect()
    ask(served, known)
    strangers = [served.tcp() for _ in range(40)]
    ask(served)
    ask(served, known)
    assert served.metric("muster_server_connections ") <= 10
    assert served.metric(DROPPED + '{reason="connections",state="handshake"}') >= 30
    for client in (*strangers, known):
        client.close()


def test_unfinished_requests_may_not_fill_the_memory(start: Start) -> None:
    """Of three bodies of 60 KB that never end, two fit."""
    served = start(unfinished_bytes=150_000)
    clients = [served.connect() for _ in range(3)]
    for client in clients:
        client.sock.sendall(HEADER.replace(b"1000", b"70000") + b"x" * 60_000)
    wait_until(lambda: served.metric(DROPPED + '{reason="bytes",state="request"}') == 1, "the end of one")
    for client in clients:
        client.close()


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (b"POST /size HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n", b"411"),
        (b"POST /size HTTP/1.1\r\nHost: test\r\nContent-Length: 999999999\r\n\r\n", b"413"),
        (b"POST /size HTTP/1.1\r\nHost: test\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nx", b"400"),
        (b"POST /size HTTP/1.1\r\nHost: test\r\nA: " + b"x" * 70_000, b"431"),
        (b"nonsense\r\n\r\n", b"400"),
    ],
)
def test_what_cannot_be_read_is_refused_and_the_connection_ends(start: Start, request_: bytes, status: bytes) -> None:
    """With a status that says why, although not all of it was read."""
    client = start().connect().sock
    client.sendall(request_)
    answer = b"".join(iter(lambda: client.recv(65536), b""))
    assert answer.startswith(b"HTTP/1.1 " + status)
    client.close()


def test_requests_that_come_together_are_answered_one_after_the_other(start: Start) -> None:
    """The second and third are there before the first is answered."""
    client = start().connect().sock
    head = b"POST /size HTTP/1.1\r\nHost: test\r\nContent-Length: %d\r\n%s\r\n%s"
    last = head % (3, b"Connection: close\r\n", b"xxx")
    client.sendall(head % (1, b"", b"x") + head % (20_000, b"", b"x" * 20_000) + last)
    answer = b"".join(iter(lambda: client.recv(65536), b""))
    assert [part.rpartition(b"\r\n\r\n")[2] for part in answer.split(b"HTTP/1.1 200 OK")[1:]] == [b"1", b"20000", b"3"]
    client.close()
