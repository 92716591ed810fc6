"""`muster run` on a plane: it waits with its reason on the screen, and leaves no pod behind."""

import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from muster.api.kubernetes.core import PODS
from muster.kube.client import Client
from musterctl.plane.plane import Plane

pytestmark = pytest.mark.plane


def begun(plane: Plane, namespace: str, folder: Path, *options: str) -> "subprocess.Popen[str]":
    """The command, in a process of its own."""
    command = [sys.executable, "-m", "musterctl", "run", "--pod=shell", f"--kubeconfig={plane.kubeconfig}"]
    files = {name: (folder / name).open("w") for name in ("stdout", "stderr")}
    return subprocess.Popen([*command, f"--namespace={namespace}", *options], text=True, **files)  # type: ignore[call-overload,no-any-return]


@pytest.mark.parametrize("by", [signal.SIGINT, signal.SIGTERM])
def test_it_shows_why_it_waits_and_goes_with_its_command(
    plane: Plane, client: Client, namespace: str, tmp_path: Path, wait_for: Callable[..., Any], by: signal.Signals
) -> None:
    """No node has so many GPUs."""
    running = begun(plane, namespace, tmp_path, "--gpus=99", "--", "bash")
    told = re.compile(r"^shell: Waiting: .*nvidia.com/gpu", re.MULTILINE)
    wait_for(lambda: told.search((tmp_path / "stderr").read_text()), 120, "the reason")
    assert [each.metadata.name for each in client.list(PODS, namespace)] == ["shell"]
    running.send_signal(by)
    assert running.wait(30) == 130
    wait_for(lambda: not client.list(PODS, namespace), what="the end of the pod")


def test_its_exit_code_is_that_of_the_command(
    plane: Plane, client: Client, namespace: str, tmp_path: Path, wait_for: Callable[..., Any]
) -> None:
    """The pod is gone afterwards."""
    running = begun(plane, namespace, tmp_path, "--cpu=1", "--time=1h")
    wait_for(
        lambda: client.list(PODS, namespace) and client.list(PODS, namespace)[0].status.phase == "Running", what="a pod"
    )
    assert client.list(PODS, namespace)[0].spec.active_deadline_seconds == 3600
    note = {"kwok.muster.dev/exit-code": "3", "kwok.muster.dev/run-seconds": "0.1"}
    client.merge_patch(PODS, "shell", {"metadata": {"annotations": note}}, namespace)
    assert running.wait(30) == 3
    wait_for(lambda: not client.list(PODS, namespace), what="the end of the pod")
