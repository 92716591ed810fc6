"""`muster run` on a plane: it waits with its reason on the screen, and leaves no pod behind."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from muster.api.base import Resource
from muster.api.kubernetes.core import PODS
from muster.kube.client import Client
from musterctl.plane.plane import Plane

pytestmark = pytest.mark.plane
RAW_PODS: Resource[dict[str, Any]] = Resource("", "v1", "pods", "Pod", dict[str, Any])


TERMINAL = (sys.executable, "-c", "import os, pty, sys; os._exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))")
"""Runs a command on a terminal of its own, where it types what it reads."""


def begun(
    plane: Plane, namespace: str, folder: Path, *options: str, on: tuple[str, ...] = ()
) -> "subprocess.Popen[str]":
    """The command, in a process of its own; a kubectl in the folder is the first on its path."""
    command = [*on, sys.executable, "-m", "musterctl", "run", "--pod=shell", f"--kubeconfig={plane.kubeconfig}"]
    files: dict[str, Any] = {name: (folder / name).open("w") for name in ("stdout", "stderr")}
    files["env"] = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"}
    return subprocess.Popen(
        [*command, f"--namespace={namespace}", *options], text=True, stdin=subprocess.PIPE if on else None, **files
    )


def typed(running: "subprocess.Popen[str]", text: str) -> None:
    """Type on the terminal of the command."""
    assert running.stdin is not None
    running.stdin.write(text)
    running.stdin.flush()


def test_ctrl_c_on_a_terminal_ends_what_it_made(
    plane: Plane, client: Client, namespace: str, tmp_path: Path, wait_for: Callable[..., Any]
) -> None:
    """The pod is made for a terminal, and its reason to wait is on the screen."""
    (tmp_path / "kubectl").symlink_to("/bin/false")
    running = begun(plane, namespace, tmp_path, "--gpus=99", on=TERMINAL)
    pattern = re.compile(r"^shell: Waiting: .*nvidia.com/gpu", re.MULTILINE)
    wait_for(lambda: pattern.search((tmp_path / "stdout").read_text()), 120, "the reason")
    [pod] = client.list(RAW_PODS, namespace)
    [container] = pod["spec"]["containers"]
    assert [container.get(each) for each in ("stdin", "stdinOnce", "tty", "command")] == [True, True, True, ["sh"]]
    typed(running, "\x03")
    assert running.wait(30) == 130
    wait_for(lambda: not client.list(PODS, namespace), what="the end of the pod")


def test_a_terminal_is_attached(
    plane: Plane, client: Client, namespace: str, tmp_path: Path, wait_for: Callable[..., Any]
) -> None:
    """The user's kubectl gets the terminal; the exit code is the command's in the pod."""
    script = '#!/bin/sh\ntest -t 0 && test -t 1 && echo "on a terminal: $*"\nread line && echo "typed: $line"\n'
    (tmp_path / "kubectl").write_text(script)
    (tmp_path / "kubectl").chmod(0o755)
    running = begun(plane, namespace, tmp_path, "--cpu=1", on=TERMINAL)
    attached = f"attach --namespace={namespace} --stdin --tty --quiet shell"
    wait_for(lambda: attached in (tmp_path / "stdout").read_text(), 120, "kubectl")
    assert "on a terminal: --kubeconfig=" in (tmp_path / "stdout").read_text()
    note = {"kwok.muster.dev/exit-code": "3", "kwok.muster.dev/run-seconds": "0.1"}
    client.merge_patch(PODS, "shell", {"metadata": {"annotations": note}}, namespace)
    wait_for(lambda: client.get(PODS, "shell", namespace).status.phase == "Failed", what="its end")
    typed(running, "exit\n")
    assert running.wait(30) == 3
    assert "typed: exit" in (tmp_path / "stdout").read_text()
    wait_for(lambda: not client.list(PODS, namespace), what="the end of the pod")


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
