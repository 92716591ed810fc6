"""An app is served over TLS by one worker that follows certificate files, signals and its master."""

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from served_app import Served, alive, wait_until


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    """A served app of a test that ends it; killed after the test if it still runs."""
    served = Served(tmp_path)
    yield served
    served.end()


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A served app of all tests that leave it running."""
    served = Served(tmp_path_factory.mktemp("shared"))
    yield served
    served.end()


@pytest.fixture
def lasting(shared: Served) -> Iterator[Served]:
    """The shared app with its first certificate; without the test's connections afterwards."""
    shared.rotate("first")
    shared.pids()  # a connection reads it
    yield shared
    shared.hang_up()


def test_new_certificate_from_the_next_connection_on(lasting: Served) -> None:
    """A connection keeps its certificate and goes on; the next one gets the new certificate, without a restart."""
    old = lasting.connect()
    before = lasting.pids(old)
    lasting.rotate("second")
    new = lasting.connect()
    assert lasting.common_name(old) == "first"
    assert lasting.common_name(new) == "second"
    assert lasting.pids(old) == lasting.pids(new) == before


def test_half_written_pair_keeps_the_old_certificate(lasting: Served) -> None:
    """While key and certificate do not fit, new connections still work with the old pair."""
    pair = lasting.authority.issue("third", ips=["127.0.0.1"], server=True)
    lasting.key.write_bytes(pair.key_pem)
    connection = lasting.connect()
    assert lasting.common_name(connection) == "first"
    lasting.cert.write_bytes(pair.cert_pem)
    connection = lasting.connect()
    assert lasting.common_name(connection) == "third"


def test_background_threads_start_in_the_worker(lasting: Served) -> None:
    """The worker is a child of the started process, and the thread of on_worker_start lives in it."""
    pids = lasting.pids()
    assert pids["master"] == lasting.process.pid
    assert pids["worker"] != lasting.process.pid
    assert pids["thread"]


def test_a_defect_is_answered_and_the_server_goes_on(lasting: Served) -> None:
    """Nobody waits for an answer that does not come."""
    connection = lasting.connect()
    connection.request("POST", "/fails", b"{}")
    answer = connection.getresponse()
    assert (answer.status, b"a defect" in answer.read()) == (500, False)
    connection.request("POST", "/size", b"{}")
    assert connection.getresponse().read() == b"2"


def test_sigterm_ends_in_order(served: Served) -> None:
    """SIGTERM: exit code 0, on_worker_stop was called, and the log is JSON lines."""
    served.process.terminate()
    out, err = served.process.communicate(timeout=10)
    assert served.process.returncode == 0
    assert out == "stopped\n"
    assert err.count('"process":"test"') == len(err.splitlines())


def test_sigterm_with_idle_connections_ends_soon(served: Served) -> None:
    """Neither connections that are kept alive nor those that never asked anything hold it up, for seconds each."""
    served.pids(served.connect())
    served.connect()
    served.tcp()
    started = time.monotonic()
    served.process.terminate()
    served.process.communicate(timeout=10)
    assert served.process.returncode == 0
    assert time.monotonic() - started < 4


def test_sigterm_answers_what_was_asked(served: Served) -> None:
    """A request in work is finished, and one that comes on an idle connection just after SIGTERM is still answered."""
    busy, idle = served.connect(), served.connect()
    served.pids(busy)
    served.pids(idle)
    busy.request("GET", "/slow")
    served.process.terminate()
    idle.request("GET", "/slow")
    for connection in (busy, idle):
        response = connection.getresponse()
        assert (response.status, response.read()) == (200, b"done")
    served.process.communicate(timeout=10)
    assert served.process.returncode == 0


def test_connections_without_a_request_keep_nobody_waiting(lasting: Served) -> None:
    """More idle connections than there are threads, with and without a handshake, and others are answered at once."""
    silent = [lasting.connect() for _ in range(4)]
    for _ in range(4):
        lasting.tcp()
    lasting.pids()
    assert lasting.pids(silent[0])["worker"]


def test_killed_worker_is_replaced(served: Served) -> None:
    """After SIGKILL of the worker the master starts a new one, threads included."""
    old = served.pids()["worker"]
    os.kill(old, signal.SIGKILL)
    wait_until(lambda: served.answers() and served.pids()["worker"] != old, "a new worker")
    assert served.pids()["thread"]


def test_killed_master_takes_its_worker_along(served: Served) -> None:
    """After SIGKILL of the started process no worker lives on beside a successor."""
    worker = served.pids()["worker"]
    served.process.kill()
    wait_until(lambda: not alive(worker), "the worker's end", deadline_s=2)
