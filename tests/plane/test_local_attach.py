"""Attach mode: Muster on a control plane that exists already."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from muster.api.kubernetes.core import LEASES, NAMESPACES
from muster.kube.errors import NotFound
from musterctl.plane import binaries
from musterctl.plane.machine import free_ports
from musterctl.plane.plane import Plane
from musterctl.plane.state import folder_of

pytestmark = [pytest.mark.plane, pytest.mark.long]

MUSTER = Path(sys.executable).with_name("muster")
CLUSTER = ("etcd", "kube-apiserver")


@pytest.fixture(scope="module")
def somebodys(module_plane: Callable[..., Plane]) -> Plane:
    """Somebody's API server."""
    return module_plane(CLUSTER)


@pytest.fixture
def cluster(somebodys: Plane, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Plane:
    """Somebody's API server, and a home of our own."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "home"))
    return somebodys


def attach(cluster: Plane, *arguments: str) -> subprocess.Popen[str]:
    """Starts `muster up --foreground` for the cluster."""
    command = [MUSTER, "up", f"--kubeconfig={cluster.kubeconfig}", "--foreground", *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def read_until_ready(process: subprocess.Popen[str]) -> list[str]:
    """What `up` prints until it says that everything is ready."""
    assert process.stdout is not None
    lines = []
    for line in process.stdout:
        lines.append(line)
        if line == "ready\n":
            return lines
    pytest.fail("".join(lines))


def holder(cluster: Plane) -> str:
    """Who holds the lease of Muster's scheduler."""
    try:
        lease = cluster.client().get(LEASES, "muster-scheduler", "muster-system")
    except NotFound:
        return ""
    return lease.spec.holder_identity or ""


def webhook_url(cluster: Plane) -> str:
    """Where the API server was told that the webhook is; empty if it was not."""
    query = "jsonpath={.webhooks[0].clientConfig.url}"
    return cluster.kubectl("get", "mutatingwebhookconfiguration", "muster", "--output", query).stdout


def parts_alive(folder: Path) -> list[str]:
    """The parts of the attached plane that live."""
    return [part.name for part in Plane(folder).parts.values() if part.alive]


def test_printed_scheduler_configuration_is_accepted(cluster: Plane, tmp_path: Path, wait_for: Any) -> None:
    """A kube-scheduler of one's own runs with what `muster config scheduler` prints, under Muster's lease."""
    command = [MUSTER, "config", "scheduler", "--extender-url", "http://127.0.0.1:9/", "--kubeconfig"]
    printed = subprocess.run([*command, cluster.kubeconfig], capture_output=True, text=True, check=True).stdout
    content = yaml.safe_load(printed)
    assert {profile["schedulerName"] for profile in content["profiles"]} == {"muster", "volcano"}
    assert {entry["urlPrefix"] for entry in content["extenders"]} == {"http://127.0.0.1:9"}
    (tmp_path / "config.yaml").write_text(printed)
    cluster.client().apply(NAMESPACES, {"metadata": {"name": "muster-system"}})
    program = binaries.find_programs(("kube-scheduler",))["kube-scheduler"]
    with (tmp_path / "log").open("w") as log:
        arguments = [program, f"--config={tmp_path / 'config.yaml'}", "--secure-port=0"]
        process = subprocess.Popen(arguments, stdout=log, stderr=log)
    try:
        wait_for(lambda: holder(cluster), what=(tmp_path / "log").read_text())
    finally:
        process.terminate()  # gives the lease back
        process.wait()


def test_foreground_stops_everything_on_sigterm(cluster: Plane, wait_for: Any) -> None:
    """The attached plane installs Muster, serves where it was told, restarts what dies, and leaves nothing running."""
    before = {part.name: part.pid for part in cluster.parts.values()}
    port, extender_port = free_ports(2)
    process = attach(cluster, f"--webhook-port={port}", f"--extender-port={extender_port}")
    lines = read_until_ready(process)
    assert [line for line in lines if line.endswith(" s  waiting for webhook\n")], lines
    folder = folder_of("default")
    assert webhook_url(cluster).startswith(f"https://127.0.0.1:{port}/")
    assert "etcd" not in Plane(folder).parts
    assert "muster-scheduler" in parts_alive(folder)
    cluster.client().get(NAMESPACES, "muster-system")
    wait_for(lambda: holder(cluster))
    scheduler = Plane(folder).part("muster-scheduler")
    pid = scheduler.pid
    assert pid
    os.kill(pid, signal.SIGKILL)
    wait_for(lambda: scheduler.pid not in {None, pid}, what="the killed scheduler is started again")
    process.send_signal(signal.SIGTERM)
    output, _ = process.communicate(timeout=30)
    assert process.returncode == 0, output
    assert "muster-scheduler ended by SIGKILL. The end of" in output
    assert not parts_alive(folder)
    assert not webhook_url(cluster), "nobody answers there any more"
    assert {part.name: part.pid for part in cluster.parts.values()} == before


def test_who_may_not_is_told_what_is_missing(cluster: Plane, tmp_path: Path) -> None:
    """Each right by its name, in seconds; nothing is written to the cluster, and nothing stays here."""
    cluster.kubectl("create", "serviceaccount", "nobody", "--namespace=default")
    token = cluster.kubectl("create", "token", "nobody", "--namespace=default").stdout
    assert token
    config = yaml.safe_load(cluster.kubeconfig.read_text())
    config["users"] = [{**user, "user": {"token": token}} for user in config["users"]]
    (tmp_path / "kubeconfig").write_text(yaml.safe_dump(config))
    command = [MUSTER, "up", f"--kubeconfig={tmp_path / 'kubeconfig'}", "--foreground", "--name=lacking"]
    result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert result.returncode == 1
    assert "lacks rights that Muster needs" in result.stderr
    assert "\n  create, get, list, patch, watch customresourcedefinitions.apiextensions.k8s.io\n" in result.stderr
    assert "\n  create pods/binding\n" in result.stderr
    assert not folder_of("lacking").exists()


def test_killed_foreground_leaves_no_process(cluster: Plane, wait_for: Any) -> None:
    """Even SIGKILL of `muster up --foreground` ends what it started."""
    process = attach(cluster, "--name", "brief")
    read_until_ready(process)
    folder = folder_of("brief")
    assert parts_alive(folder)
    process.kill()
    process.communicate()
    wait_for(lambda: not parts_alive(folder), what="the guard ends the parts")


def test_no_scheduler_needs_no_binaries(cluster: Plane, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where somebody else schedules, only Muster's processes run, the printed configuration leads to the extender."""
    monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", "/nonexistent")
    (port,) = free_ports(1)
    arguments = ["up", f"--kubeconfig={cluster.kubeconfig}", "--no-scheduler", f"--extender-port={port}"]
    up = subprocess.run([MUSTER, *arguments], capture_output=True, text=True, check=False)
    assert up.returncode == 0, up.stderr
    assert set(parts_alive(folder_of("default"))) <= {"webhook", "extender", "controller", "history"}
    printed = subprocess.run([MUSTER, "config", "scheduler"], capture_output=True, text=True, check=True).stdout
    assert {entry["urlPrefix"] for entry in yaml.safe_load(printed)["extenders"]} == {f"http://127.0.0.1:{port}"}
    assert subprocess.run([MUSTER, "down"], check=False).returncode == 0
    assert not webhook_url(cluster)
    assert not folder_of("default").exists()
