"""The status port says whether a process lives, whether it is ready, and what it counted."""

import urllib.error
import urllib.request
from collections.abc import Iterator

import pytest
from prometheus_client import CollectorRegistry, Counter

from muster.process.health import Health, StatusServer


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


def get(server: StatusServer, path: str) -> tuple[int, str]:
    """Status code and body."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{server.port}{path}", timeout=5) as response:
            return response.status, response.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def test_ready_until_a_check_objects(server: StatusServer, health: Health) -> None:
    """/readyz is 200 without objections and 503 with the reason of each check that objects."""
    assert get(server, "/readyz") == (200, "ok\n")
    health.add_check("cache", lambda: "pods: not listed yet")
    health.add_check("fine", lambda: None)
    assert get(server, "/readyz") == (503, "cache: pods: not listed yet\n")


def test_alive_though_not_ready(server: StatusServer, health: Health) -> None:
    """/healthz only says that the process answers."""
    health.add_check("cache", lambda: "no")
    assert get(server, "/healthz") == (200, "ok\n")


def test_metrics_are_served(server: StatusServer) -> None:
    """/metrics shows the registry's counters."""
    status, text = get(server, "/metrics")
    assert status == 200
    assert "things_total 3.0" in text


def test_unknown_path(server: StatusServer) -> None:
    """Anything else is a 404 that names what there is."""
    status, text = get(server, "/")
    assert status == 404
    assert "/metrics" in text


def test_stop_frees_the_port(server: StatusServer, health: Health) -> None:
    """After `stop` another server can take the port."""
    port = server.port
    server.stop()
    other = StatusServer(port, health, CollectorRegistry())
    other.start()
    assert other.port == port
    other.stop()


def test_neither_alive_nor_ready_when_only_a_new_process_helps(server: StatusServer, health: Health) -> None:
    """A liveness check counts for both."""
    health.add_liveness_check("loop", lambda: "it is blocked")
    assert get(server, "/healthz") == (503, "loop: it is blocked\n")
    assert get(server, "/readyz") == (503, "loop: it is blocked\n")
