"""The controller as a process: readiness, metrics, orderly end, and one leader at a time."""

import os
import re
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from controller.settings import ControllerSettings
from muster.api import names
from muster.api.kubernetes.core import LEASES
from muster.process.settings import text_of
from musterctl.plane.plane import Plane

pytestmark = pytest.mark.plane
WaitFor = Callable[..., Any]
Start = Callable[..., tuple[subprocess.Popen[bytes], str]]
LEASE = "test-controller"


@pytest.fixture
def start(plane: Plane, tmp_path: Path) -> Iterator[Start]:
    """Starts controllers with a lease of their own; gives the process and the URL of its status port."""
    running = []

    def one(lease_s: float = 15) -> tuple[subprocess.Popen[bytes], str]:
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        settings = ControllerSettings(status_port=port, lease_name=LEASE, lease_duration_s=lease_s)
        file = tmp_path / f"{len(running)}.yaml"
        file.write_text(text_of(settings, {}))
        command = [
            sys.executable, "-m", "controller", f"--kubeconfig={plane.kubeconfig}", f"--settings={file}"
        ]  # fmt: skip
        running.append(subprocess.Popen(command, stderr=subprocess.DEVNULL))
        return running[-1], f"http://127.0.0.1:{port}"

    yield one
    for process in running:
        process.send_signal(signal.SIGCONT)
        process.kill()
        process.wait()


def get(url: str) -> str:
    """The answer, or "" as long as there is none or it is not OK."""
    try:
        with urllib.request.urlopen(url, timeout=2) as answer:  # noqa: S310 - a URL of our own
            return str(answer.read().decode())
    except (urllib.error.URLError, ConnectionError):
        return ""


def holder(plane: Plane) -> str:
    """Who holds the lease of the test."""
    lease = next(
        (one for one in plane.client().list(LEASES, names.SYSTEM_NAMESPACE) if one.metadata.name == LEASE), None
    )
    return (lease and lease.spec.holder_identity) or ""


def test_ready_measured_and_ended(plane: Plane, start: Start, wait_for: WaitFor) -> None:
    """Ready once its caches are; SIGTERM ends it with code 0 and gives the lease up."""
    process, url = start()
    wait_for(lambda: get(f"{url}/readyz") == "ok\n")
    # Another test's controller may have left its lease behind, so a holder is not enough.
    leads = 'muster_kube_leading{lease="test-controller"} 1'
    metrics = wait_for(lambda: leads in (text := get(f"{url}/metrics")) and text)
    assert "muster_controller_reconciles_total" in metrics
    assert holder(plane)
    process.send_signal(signal.SIGTERM)
    assert process.wait(10) == 0
    assert holder(plane) == ""


@pytest.mark.slow
def test_a_standby_takes_over_and_the_frozen_one_ends(plane: Plane, start: Start, wait_for: WaitFor) -> None:
    """A leader that was frozen for longer than its lease ends with an error instead of going on."""
    first, _ = start(3)
    was = wait_for(lambda: holder(plane))
    second, url = start(3)
    wait_for(lambda: get(f"{url}/readyz") == "ok\n")
    counts = re.findall(r"^muster_controller_reconciles_total\{.*\} (\S+)$", get(f"{url}/metrics"), re.MULTILINE)
    assert set(counts) == {"0.0"}, "a standby does nothing"
    os.kill(first.pid, signal.SIGSTOP)
    wait_for(lambda: holder(plane) not in {"", was})
    os.kill(first.pid, signal.SIGCONT)
    assert first.wait(10) == 1
    assert second.poll() is None


def test_what_is_wrong_with_the_start_is_said(tmp_path: Any) -> None:
    """A kubeconfig that is not there ends it with code 2 and a sentence that names the file."""
    missing = tmp_path / "nowhere"
    command = [sys.executable, "-m", "controller", f"--kubeconfig={missing}"]
    result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=30)
    assert result.returncode == 2
    assert str(missing) in result.stderr
