"""A server that is stopped loses no request of clients that keep connections open, as API servers do."""

import select
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from http.client import HTTPException, HTTPResponse, HTTPSConnection
from pathlib import Path

import pytest
from served_app import Served, wait_until

DRAIN_S = 20.0
"""Longer than any test waits, so that clients decide when the server ends."""
CLIENTS = 12
CLIENT_IDLE_S = 1.0
"""The 90 s of Go's clients, shortened."""
SEEN = 100
"""Requests between SIGTERM and the moment when the last node knows of it."""


@pytest.fixture
def leaving(tmp_path: Path) -> Iterator[Served]:
    """A served app that drains."""
    served = Served(tmp_path, {"ACCEPT_S": 0.5}, DRAIN_S)
    yield served
    served.end()


@pytest.fixture
def staying(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Its replica."""
    served = Served(tmp_path_factory.mktemp("staying"))
    yield served
    served.end()


def ask(connection: HTTPSConnection) -> HTTPResponse:
    """The answer to a small POST, which is read."""
    connection.request("POST", "/size", b"{}")
    response = connection.getresponse()
    assert (response.status, response.read()) == (200, b"2")
    return response


def test_connections_are_answered_until_their_clients_close_them(leaving: Served) -> None:
    """Used before or not, or opened after SIGTERM: with an answer that asks the client to close the connection."""
    used, unused = [leaving.connect() for _ in range(2)], [leaving.connect() for _ in range(2)]
    assert [ask(connection).will_close for connection in used] == [False, False]
    leaving.process.terminate()
    wait_until(lambda: ask(leaving.connect()).will_close, "the announcement of the end")
    for connection in (*used, *unused, leaving.connect()):
        assert ask(connection).will_close
    leaving.hang_up()
    out, _err = leaving.process.communicate(timeout=DRAIN_S / 2)
    assert (leaving.process.returncode, out) == (0, "stopped\n")


def test_an_answer_in_progress_announces_the_end(leaving: Served) -> None:
    """What was asked before SIGTERM and is answered after it."""
    slow = leaving.connect()
    slow.request("GET", "/slow")
    leaving.process.terminate()
    assert slow.getresponse().will_close


def test_a_client_that_stays_is_not_waited_for_forever(tmp_path: Path) -> None:
    """One that never closes its connection, nor uses it."""
    served = Served(tmp_path, {"ACCEPT_S": 0.1}, 0.3)
    with closing(served.connect()) as connection:
        ask(connection)
        served.process.terminate()
        served.process.communicate(timeout=10)
    assert served.process.returncode == 0


def test_many_clients_lose_no_request(leaving: Served, staying: Served) -> None:
    """As an API server calls two replicas of the webhook, of which one is stopped."""
    client = Client(leaving, staying)
    threads = [threading.Thread(target=client.run) for _ in range(CLIENTS)]
    for thread in threads:
        thread.start()
    try:
        wait_until(lambda: min(client.answered[each.port] for each in (leaving, staying)) > CLIENTS, "answers of both")
        leaving.process.terminate()
        seen = sum(client.answered.values()) + SEEN
        wait_until(lambda: sum(client.answered.values()) > seen or client.broken, "more answers")
        client.replicas = [staying]
        wait_until(lambda: leaving.process.poll() is not None, "the end")
    finally:
        client.ended = True
        for thread in threads:
            thread.join()
    assert not client.broken
    assert leaving.process.returncode == 0


class Client:
    """A client with a pool of connections like that of Go's net/http over HTTP/1.1.

    It uses the connection that became idle last, drops those that the server has closed, closes those that were idle
    for too long, connects to each of the replicas in turn, and repeats no POST.
    """

    def __init__(self, *replicas: Served) -> None:
        self.replicas = list(replicas)
        self.answered: Counter[int] = Counter()
        """Requests that were answered, by the replica's port."""
        self.broken: list[str] = []
        self.ended = False
        self._lock = threading.Lock()
        self._idle: list[tuple[float, HTTPSConnection]] = []
        self._made = 0

    def run(self) -> None:
        """Send requests until the end."""
        while not self.ended:
            try:
                connection = self._take()
                response = ask(connection)
            except (OSError, HTTPException) as error:
                self.broken.append(repr(error))
                continue
            with self._lock:
                self.answered[connection.port] += 1
                if not response.will_close:
                    self._idle.append((time.monotonic(), connection))
            if response.will_close:
                connection.close()

    def _take(self) -> HTTPSConnection:
        with self._lock:
            while self._idle and self._idle[0][0] < time.monotonic() - CLIENT_IDLE_S:
                self._idle.pop(0)[1].close()
            while self._idle:
                connection = self._idle.pop()[1]
                if not select.select([connection.sock], [], [], 0)[0]:
                    return connection
                connection.close()
            self._made += 1
            replica = self.replicas[self._made % len(self.replicas)]
        return replica.connect()
