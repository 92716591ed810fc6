"""`muster up`, `status`, `kubectl` and `down`: a plane from the command line."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from musterctl.plane.process import PLANE_VARIABLE

pytestmark = [pytest.mark.plane, pytest.mark.long]

MUSTER = Path(sys.executable).with_name("muster")
Muster = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder in which the planes of these tests keep their state."""
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def muster(home: Path) -> Iterator[Muster]:
    """Runs the command line with a home of its own, and ends the planes that it left there."""

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "XDG_STATE_HOME": str(home)}
        return subprocess.run([MUSTER, *arguments], env=environment, capture_output=True, text=True, check=False)

    yield run
    for folder in home.glob("muster/*/"):
        run("down", "--name", folder.name)


@pytest.fixture(scope="module")
def up(muster: Muster) -> str:
    """The name of a plane of two nodes, started."""
    result = muster("up", "--name", "one", "--nodes", "2", "--gpus", "0")
    assert result.returncode == 0, result.stderr
    return "one"


def pids(home: Path, name: str) -> dict[str, int]:
    """The pids in the pid files of a plane."""
    return {path.stem: int(path.read_text()) for path in (home / "muster" / name / "run").glob("*.pid")}


def processes_of(folder: Path) -> list[str]:
    """The command lines of all living processes that belong to the plane in that folder."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if f"{PLANE_VARIABLE}={folder}".encode() in (entry / "environ").read_bytes().split(b"\0"):
                found.append((entry / "cmdline").read_text())
        except OSError:
            continue  # not a process, or gone meanwhile
    return found


def test_up_twice_is_harmless(muster: Muster, home: Path, up: str) -> None:
    """A second `up` leaves every process alone; kubectl talks to the plane and passes its options on."""
    before = pids(home, up)
    assert muster("up", "--name", up).returncode == 0
    assert pids(home, up) == before
    assert (
        "runtimes jax-distributed, mpi-distributed, plain, torch-distributed, " in muster("status", "--name", up).stdout
    )
    nodes = muster("kubectl", "--name", up, "get", "nodes", "-o", "name")
    assert nodes.stdout.split() == ["node/node-0000", "node/node-0001"]
    missing = muster("kubectl", "--name", up, "get", "-n", "default", "pod", "nothing")
    assert (missing.returncode, "NotFound" in missing.stderr) == (1, True)


def test_other_options_are_refused(muster: Muster, up: str) -> None:
    """A plane is not quietly something else than what was asked for."""
    result = muster("up", "--name", up, "--nodes", "5")
    assert result.returncode == 1
    assert result.stderr == f"Error: control plane {up} exists with nodes 2; `muster down --name {up}` ends it\n"


def test_what_dies_is_started_again_and_reported(muster: Muster, home: Path, up: str, wait_for: Any) -> None:
    """The plane's supervisor restarts only processes that died; `status` shows their number, its log the reasons."""
    before, names = pids(home, up), ("kube-scheduler", "controller")
    for name in names:
        os.kill(before[name], signal.SIGKILL)
    wait_for(lambda: all(pids(home, up).get(name) not in {None, before[name]} for name in names), 60, "new processes")
    wait_for(lambda: muster("status", "--name", up).returncode == 0, 60, "nothing to be dead")
    told = muster("status", "--name", up).stdout
    assert [f"{name} ended and was restarted once" in told for name in names] == [True, True]
    assert "controller ended" in (home / "muster" / up / "log" / "supervisor.log").read_text()
    after = pids(home, up)
    assert {name: pid for name, pid in after.items() if pid != before[name]}.keys() == {*names}


@pytest.mark.slow
def test_leaders_come_back_after_a_silent_api_server(
    muster: Muster, home: Path, up: str, wait_for: Any, tmp_path: Path
) -> None:
    """It does not answer until all of them have lost their Leases and ended; afterwards a gang runs."""
    before = pids(home, up)
    leaders = ("controller", "history", "muster-scheduler")
    os.kill(before["kube-apiserver"], signal.SIGSTOP)
    try:
        wait_for(lambda: all(pids(home, up).get(name) not in {None, before[name]} for name in leaders), 120, "new ones")
    finally:
        os.kill(before["kube-apiserver"], signal.SIGCONT)
    wait_for(lambda: muster("status", "--name", up).returncode == 0, 180, "all parts to be ready")
    template = {"spec": {"containers": [{"name": "main", "image": "none"}]}}
    task = {"name": "worker", "replicas": 2, "template": template}
    spec = {"schedulerName": "volcano", "minAvailable": 2, "tasks": [task]}
    gang = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": {"name": "again"}, "spec": spec}
    file = tmp_path / "gang.json"
    file.write_text(json.dumps(gang), encoding="utf-8")

    def is_created() -> bool:
        return muster("kubectl", "--name", up, "apply", "-n", "default", "-f", str(file)).returncode == 0

    wait_for(is_created, 120, "the webhook to answer")
    running = "--for=jsonpath={.status.state.phase}=Running"
    waited = muster("kubectl", "--name", up, "wait", "-n", "default", running, "--timeout=180s", "vcjob/again")
    assert waited.returncode == 0, waited.stderr
    changed = {name for name, pid in pids(home, up).items() if pid != before[name]}
    assert changed == {*leaders}, "others kept running"


def test_a_part_that_a_command_stops_is_not_started_beside_it(muster: Muster, home: Path, up: str) -> None:
    """`restart` excludes other commands on the plane; a supervisor that has died is reported, and `up` starts it."""
    before = pids(home, up)
    assert muster("restart", "--name", up, "controller").returncode == 0
    assert len([line for line in processes_of(home / "muster" / up) if "controller" in line.split("\0")[:3]]) == 1
    os.kill(before["supervisor"], signal.SIGKILL)
    status = muster("status", "--name", up)
    assert status.returncode == 1
    assert "supervisor ended. The end of " in status.stdout
    assert muster("up", "--name", up).returncode == 0
    changed = {name for name, pid in pids(home, up).items() if pid != before[name]}
    assert changed == {"supervisor", "controller"}


def test_kwok_started_again_plays_pods_at_once(muster: Muster, up: str, home: Path, tmp_path: Path) -> None:
    """Pods that are bound right after kwok came back run: it does not wait for Leases of the one before."""
    os.kill(pids(home, up)["kwok"], signal.SIGKILL)
    names = [f"right-after-{number}" for number in range(20)]
    pods = "---\n".join(
        f"apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}, namespace: default}}\n"
        f"spec: {{nodeName: node-{number % 2:04}, containers: [{{name: main, image: none}}]}}\n"
        for number, name in enumerate(names)
    )
    file = tmp_path / "pods.yaml"
    file.write_text(pods, encoding="utf-8")
    assert muster("up", "--name", up).returncode == 0
    made = muster("kubectl", "--name", up, "create", "-f", str(file))
    assert made.returncode == 0, made.stderr
    wanted = [f"pod/{name}" for name in names]
    ready = muster("kubectl", "--name", up, "wait", "--for=condition=Ready", "--timeout=20s", *wanted)
    assert ready.returncode == 0, ready.stderr


def test_second_plane_stands_beside_the_first_and_goes_without_a_trace(muster: Muster, home: Path, up: str) -> None:
    """Two planes share nothing; `down` of one leaves no process, no file, and the other one running."""
    result = muster("up", "--name", "two", "--nodes", "1")
    assert result.returncode == 0, result.stderr
    assert muster("kubectl", "--name", "two", "get", "nodes", "-o", "name").stdout.split() == ["node/node-0000"]
    assert not pids(home, "two").items() & pids(home, up).items()
    folder = home / "muster" / "two"
    assert len(processes_of(folder)) >= len(pids(home, "two"))
    assert muster("down", "--name", "two").returncode == 0
    assert not processes_of(folder)
    assert not folder.exists()
    assert muster("status", "--name", up).returncode == 0


def test_unknown_plane_is_named(muster: Muster, up: str) -> None:
    """Commands that need a plane say which ones there are."""
    named = ("--name", "default")
    for command in (["status", *named], ["down", *named], ["kubectl", *named, "get", "pods"]):
        result = muster(*command)
        assert result.returncode == 1
        assert result.stderr == f"Error: there is no local control plane 'default'; there is {up}\n"


@pytest.mark.parametrize(("arguments", "message"), [
    (["--kubernetes", "1.9"], "--kubernetes 1.9: supported versions are 1.32"),
    (["--cpu", "lots"], "Invalid value for '--cpu'"),
    (["--no-scheduler"], "--no-scheduler requires --kubeconfig"),
    (["--name", "No Good"], "a control plane cannot be named 'No Good'"),
    (["--kubeconfig", "/nonexistent"], "Invalid value for '--kubeconfig'"),
])  # fmt: skip
def test_bad_options_are_refused(muster: Muster, home: Path, arguments: list[str], message: str) -> None:
    """Every refusal says which option is wrong, and nothing is started."""
    result: Any = muster("up", *arguments)
    assert result.returncode != 0
    assert message in result.stderr
    assert not (home / "muster" / "default").exists()
