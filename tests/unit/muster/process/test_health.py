"""The status port says whether a process lives and is ready, and what it counted; /debug more, to its machine only."""

import asyncio
import json
import socket
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry, Counter

from muster.process.health import PAGES, Debug, Health, StatusServer, stacks, waits

OTHER = "127.0.0.2"
"""Loopback, too; the tests below have the server take it for an address of a network."""


@dataclass(frozen=True)
class Settings:
    """What a process runs with."""

    workers: int = 3
    key_file: Path = Path("/etc/muster/tls/tls.key")


@pytest.fixture
def serve() -> Iterator[Callable[..., StatusServer]]:
    """Starts status servers, and ends them after the test."""
    made: list[StatusServer] = []

    def start(host: str = "127.0.0.1", *, debug: bool = True) -> StatusServer:
        one = Debug("tester", Settings(), lambda: {"pods": 7}) if debug else None
        made.append(StatusServer(0, Health(), CollectorRegistry(), host, one))
        made[-1].start()
        return made[-1]

    yield start
    for server in made:
        server.stop()


def get(server: StatusServer, path: str, host: str = "127.0.0.1", **headers: str) -> tuple[int, str]:
    """Status code and body."""
    request = urllib.request.Request(f"http://{host}:{server.port}{path}", headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=5) as response:  # noqa: S310 - as above
            return response.status, response.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


@pytest.fixture
def health() -> Health:
    """Checks of the server under test."""
    return Health()


@pytest.fixture
def server(health: Health) -> Iterator[StatusServer]:
    """A status server on a free port, with one counter."""
    registry = CollectorRegistry()
    Counter("things", "Things that were counted.", registry=registry).inc(3)
    server = StatusServer(0, health, registry)
    server.start()
    yield server
    server.stop()


def test_ready_until_a_check_objects(server: StatusServer, health: Health) -> None:
    """/readyz is 200 without objections and 503 with the reason of each check that objects."""
    assert get(server, "/readyz") == (200, "ok\n")
    health.add_check("cache", lambda: "pods: not listed yet")
    health.add_check("fine", lambda: None)
    assert get(server, "/readyz") == (503, "cache: pods: not listed yet\n")


def test_alive_though_not_ready(server: StatusServer, health: Health) -> None:
    """/healthz only says that the process answers; a check of what only a new process can mend counts for both."""
    health.add_check("cache", lambda: "no")
    assert get(server, "/healthz") == (200, "ok\n")
    health.add_liveness_check("loop", lambda: "it is blocked")
    assert get(server, "/healthz") == (503, "loop: it is blocked\n")
    assert get(server, "/readyz") == (503, "loop: it is blocked\ncache: no\n")


@pytest.mark.parametrize(
    ("path", "status", "shown"), [("/metrics", 200, "things_total 3.0"), ("/", 404, "the pages are /metrics, ")]
)
def test_what_else_is_served(server: StatusServer, path: str, status: int, shown: str) -> None:
    """The registry's counters; anything else is a 404 that names what there is."""
    found, text = get(server, path)
    assert (found, shown in text) == (status, True)


def test_stop_frees_the_port(server: StatusServer, health: Health) -> None:
    """After `stop` another server can take the port."""
    port = server.port
    server.stop()
    other = StatusServer(port, health, CollectorRegistry())
    other.start()
    assert other.port == port
    other.stop()


def test_it_tells_what_runs_and_with_which_options(serve: Callable[..., StatusServer]) -> None:
    """Files with keys are named, as the settings do."""
    status, text = get(serve(), "/debug")
    told = json.loads(text)
    assert status == 200
    assert told["process"] == "tester"
    assert told["options"] == {"workers": 3, "key_file": "/etc/muster/tls/tls.key"}
    assert told["sizes"] == {"pods": 7}
    assert {"version", "python", "upSeconds", "threads"} <= told.keys()
    assert all(get(serve(), each)[0] == 200 for each in told["more"])


def test_stacks_name_places_and_no_values() -> None:
    """Each thread by its name with the functions that it is in; what variables hold is not there."""
    stop, running = threading.Event(), threading.Event()

    def waits_for_the_end(secret: str) -> None:
        running.set()
        stop.wait()
        assert secret

    thread = threading.Thread(target=waits_for_the_end, args=("hunter" + str(2),), name="sleeper")
    thread.start()
    try:
        assert running.wait(5)
        told = stacks()
        assert "sleeper\n" in told
        assert "in waits_for_the_end" in told
        assert "hunter2" not in told
    finally:
        stop.set()
        thread.join()


def test_waits_count_the_tasks_of_a_loop_by_where_they_are() -> None:
    """Each with the calls that led there; asked from another thread, as the status server does."""

    async def waits_for_the_end(secret: str) -> None:
        await asyncio.Event().wait()
        assert secret

    async def calls_it() -> None:
        await waits_for_the_end("hunter" + str(2))

    async def story() -> str:
        tasks = [asyncio.create_task(calls_it()) for _ in range(3)]
        await asyncio.sleep(0)
        told = await asyncio.to_thread(waits, asyncio.get_running_loop())
        for task in tasks:
            task.cancel()
        return told

    told = asyncio.run(story())
    assert told.startswith("3 tasks\n")
    assert told.index("in calls_it") < told.index("in waits_for_the_end") < told.index("in wait\n")
    assert "hunter2" not in told


@pytest.fixture
def beyond(monkeypatch: pytest.MonkeyPatch) -> None:
    """Has 127.0.0.2 count as an address of a network, since a test cannot be sure of any other."""
    monkeypatch.setattr("muster.process.health.is_loopback", lambda host: host in {"127.0.0.1", "localhost"})


@pytest.mark.usefixtures("beyond")
def test_other_addresses_do_not_have_it(serve: Callable[..., StatusServer]) -> None:
    """A pod's address has health and metrics only; the loopback beside it, on the same port, has /debug as well."""
    server = serve(OTHER)
    assert get(server, "/healthz", OTHER)[0] == 200
    assert [get(server, page, OTHER)[0] for page in PAGES] == [404] * len(PAGES)
    assert [get(server, page, OTHER, Host="127.0.0.1")[0] for page in PAGES] == [404] * len(PAGES)
    assert [get(server, page)[0] for page in PAGES] == [200] * len(PAGES)


@pytest.mark.usefixtures("beyond")
def test_somebody_elses_port_is_no_reason_not_to_start() -> None:
    """On the network of a node the loopback's port may be taken: health is served all the same."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        server = StatusServer(port, Health(), CollectorRegistry(), OTHER, Debug("tester", Settings(), dict))
        server.start()
        try:
            assert get(server, "/healthz", OTHER)[0] == 200
        finally:
            server.stop()


def test_listening_everywhere_means_not_at_all(serve: Callable[..., StatusServer]) -> None:
    """Who comes over loopback cannot be told from others by the address that is listened on."""
    server = serve("0.0.0.0")  # noqa: S104 - that is what is tested
    assert get(server, "/healthz")[0] == 200
    assert get(server, "/debug")[0] == 404


@pytest.mark.parametrize(
    "headers", [{"Host": "evil.example"}, {"Host": "10.0.0.1:8080"}, {"Origin": "http://localhost"}, {"Host": ""}]
)
def test_web_pages_are_not_answered(serve: Callable[..., StatusServer], headers: dict[str, str]) -> None:
    """Neither those that have led a browser here under a name of their own, nor any other."""
    assert get(serve(), "/debug", **headers)[0] == 404


def test_without_it_there_is_none(serve: Callable[..., StatusServer]) -> None:
    """A process that gives nothing to tell has no such page."""
    assert get(serve(debug=False), "/debug")[0] == 404
