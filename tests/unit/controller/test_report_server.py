"""The server of TrainJobs' reports answers over TLS, and slow or greedy clients keep no trainer waiting."""

import json
import socket
import ssl
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http import HTTPStatus
from http.client import HTTPSConnection
from pathlib import Path
from typing import Any

import pytest

from certs.authority import Authority
from controller.trainjob.report import AT_ONCE, OF_A_PEER, Reports, ReportServer
from muster.process import bounds
from muster.process.tls import Files, ServerTLS

PATH = "/apis/trainer.kubeflow.org/v1alpha1/namespaces/team/trainjobs/train/status"
AUTHORITY = Authority.create("test")
SOON_S = 5.0
LATEST_S = 60.0
"""Deadline of what happens within a second on an idle machine: a busy one may take long for dozens of handshakes."""
AT_ONCE_ANSWERED = "Bearer soon"
"""The Authorization header of reports for which the API server needs no time."""
PEERS = [f"127.0.0.{number}" for number in range(2, 2 + AT_ONCE // OF_A_PEER)]
"""Addresses of clients which together have as many reports worked on as the server can."""


class Echo(Reports):
    """Reports that no API server is asked about: what came is the answer, once `go_on` is set."""

    def __init__(self) -> None:
        self.go_on = threading.Event()
        self.go_on.set()
        self.begun = threading.Semaphore(0)

    def answer(self, path: str, authorization: str, body: bytes) -> tuple[HTTPStatus, dict[str, Any]]:
        """Path, header and length of the body."""
        self.begun.release()
        if authorization != AT_ONCE_ANSWERED:
            self.go_on.wait(60)
        return HTTPStatus.OK, {"path": path, "authorization": authorization, "bytes": len(body)}


class World:
    """A server and its clients."""

    def __init__(self, folder: Path) -> None:
        AUTHORITY.issue("reports", ips=["127.0.0.1"], server=True).save(folder)
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self.reports = Echo()
        tls = ServerTLS(Files(folder / "tls.crt", folder / "tls.key"))
        self.server = ReportServer(self.reports, "127.0.0.1", self.port, tls)
        self.server.start()
        self.context = ssl.create_default_context(cadata=AUTHORITY.cert_pem.decode())

    def connect(self, peer: str = "127.0.0.1") -> HTTPSConnection:
        """A new connection from this address."""
        connection = HTTPSConnection(
            "127.0.0.1", self.port, context=self.context, timeout=LATEST_S, source_address=(peer, 0)
        )
        connection.connect()
        return connection

    def report(
        self, body: Any = b"{}", peer: str = "127.0.0.1", authorization: str = "Bearer abc"
    ) -> tuple[int, dict[str, Any]]:
        """One report over a connection of its own."""
        connection = self.connect(peer)
        connection.request("POST", PATH, body, {"Authorization": authorization})
        answer = connection.getresponse()
        content = json.loads(answer.read())
        connection.close()
        return answer.status, content


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """A server, which ends with the test."""
    world = World(tmp_path)
    yield world
    world.reports.go_on.set()
    world.server.stop()


def test_a_report_is_answered(world: World) -> None:
    """With path, token and body as they came."""
    assert world.report(b"x" * 65_536) == (
        HTTPStatus.OK,
        {"path": PATH, "authorization": "Bearer abc", "bytes": 65_536},
    )


@pytest.mark.parametrize("body", [b"x" * (65_536 + 1), b"x" * 5_000_000, iter([b"x" * 50_000, b"x" * 50_000])])
def test_a_report_that_is_too_long_is_told_so(world: World, body: Any) -> None:
    """Also to a client that sends all of it first, and to one that does not say how long it is."""
    status, content = world.report(body)
    assert (status, content["kind"], content["reason"]) == (413, "Status", "RequestEntityTooLarge")


def test_slow_clients_keep_no_trainer_waiting(world: World) -> None:
    """Twice as many as there are reports at once: silent before TLS, after it, in a header, and in a body."""
    part = f"POST {PATH} HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nx".encode()
    slow: list[Any] = []
    for number in range(2 * AT_ONCE):
        if number % 4 == 0:
            slow.append(socket.create_connection(("127.0.0.1", world.port)))
        else:
            slow.append(world.connect())
            slow[-1].sock.sendall((b"", part[:10], part)[number % 4 - 1])
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(world.report).result(SOON_S)[0] == HTTPStatus.OK
    for client in slow:
        client.close()


def test_connections_beyond_the_limit_close_who_has_most(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Trainers that keep their connections are answered over them, while another address opens one after the other."""
    monkeypatch.setattr(bounds, "CONNECTIONS", 20)
    trainers = [world.connect() for _ in range(6)]
    slow = [world.connect("127.0.0.2") for _ in range(64)]
    for trainer in trainers:
        trainer.request("POST", PATH, b"{}")
        assert trainer.getresponse().status == HTTPStatus.OK
    for client in (*trainers, *slow):
        client.close()


def test_reports_of_one_address_keep_no_others_waiting(world: World) -> None:
    """Twice as many as are worked on at a time, for all of which the API server does not answer."""
    world.reports.go_on.clear()
    with ThreadPoolExecutor(2 * AT_ONCE + 1) as pool:
        answers = [pool.submit(world.report, peer="127.0.0.2") for _ in range(2 * AT_ONCE)]
        for _ in range(OF_A_PEER):
            assert world.reports.begun.acquire(timeout=LATEST_S)
        assert pool.submit(world.report, authorization=AT_ONCE_ANSWERED).result(SOON_S)[0] == HTTPStatus.OK
        world.reports.go_on.set()
        assert {answer.result(LATEST_S)[0] for answer in answers} == {HTTPStatus.OK}


def test_reports_beyond_those_that_are_worked_on_wait_for_their_turn(world: World) -> None:
    """The API server is asked about so many at a time; all are answered in the end."""
    world.reports.go_on.clear()
    peers = [*PEERS, "127.0.0.1"] * OF_A_PEER
    with ThreadPoolExecutor(len(peers)) as pool:
        answers = [pool.submit(world.report, peer=peer) for peer in peers]
        for _ in range(AT_ONCE):
            assert world.reports.begun.acquire(timeout=LATEST_S)
        assert not world.reports.begun.acquire(timeout=0.2)
        world.reports.go_on.set()
        assert {answer.result(LATEST_S)[0] for answer in answers} == {HTTPStatus.OK}
