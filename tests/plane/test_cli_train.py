"""`muster train` on a real plane: what it says on the way, what it prints, and how it ends."""

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from kubelets import LINES, Kubelet, kubelet, serve_all_nodes
from train_jobs import RUN

from muster.api.kubeflow.trainer import TRAIN_JOBS
from muster.api.kubernetes.core import PODS
from musterctl.plane.plane import Plane

pytestmark = pytest.mark.plane
MUSTER = [str(Path(sys.executable).with_name("muster"))]
END_S = 120.0


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """What the user trains."""
    path = tmp_path / "fit.py"
    path.write_text("import sys\n\n\ndef fit(lr):\n    print(lr)\n\n\nprint(sys.argv)\n")
    return path


@pytest.fixture
def served(plane: Plane, tmp_path: Path) -> Iterator[Kubelet]:
    """A kubelet for all nodes."""
    folder = tmp_path / "kubelet"
    with kubelet(folder) as one, contextlib.closing(plane.client()) as client, serve_all_nodes(client, one):
        yield one


@pytest.fixture
def train(plane: Plane, namespace: str) -> Callable[..., subprocess.Popen[str]]:
    """Starts `muster train` in the test's namespace."""

    def start(*arguments: str | Path) -> subprocess.Popen[str]:
        where = [f"--kubeconfig={plane.kubeconfig}", f"--namespace={namespace}"]
        command = [*MUSTER, "train", *where, *map(str, arguments)]
        return subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, "COLUMNS": "100"}
        )

    return start


def said(process: subprocess.Popen[str], code: int = 0) -> tuple[list[str], list[str]]:
    """The lines of both outputs, at the end."""
    out, err = process.communicate(timeout=END_S)
    assert process.returncode == code, err
    return out.splitlines(), err.splitlines()


@pytest.mark.alone  # its kubelet serves all nodes of the plane
def test_a_file_from_submission_to_its_end(
    plane: Plane, namespace: str, served: Kubelet, train: Callable[..., subprocess.Popen[str]], file: Path
) -> None:
    """It is created, runs on all nodes, its log is printed once, and it is complete."""
    run = ("--annotation", f"{RUN}=3", "--env", "MINE=1", "--", "--epochs", "3")
    out, err = said(train(file, "--job=fit", "--nodes=3", "--gpus=2", "--cpu=1", "--queue=default", *run))
    assert out == ["trainjob.trainer.kubeflow.org/fit created", *LINES.decode().splitlines()]
    assert [line for line in err if not line.startswith("fit: waits")] == ["fit: runs", "fit: complete"]
    with contextlib.closing(plane.client()) as client:
        pods = client.list(PODS, namespace)
        made = client.get(TRAIN_JOBS, "fit", namespace)
    assert len(pods) == 3
    assert made.metadata.labels == {"muster.dev/queue": "default"}
    assert made.spec.trainer is not None
    assert 'torchrun "$$folder"/fit.py --epochs 3' in made.spec.trainer.command[-1]
    assert served.asked


def test_a_failure(train: Callable[..., subprocess.Popen[str]], file: Path) -> None:
    """The end says which pod failed, and how; the exit status is 1."""
    ends = ("--annotation", f"{RUN}=1", "--annotation", "kwok.muster.dev/exit-code=3")
    _, err = said(train(f"{file}:fit", "--job=fit", "--no-logs", *ends, "--", "lr=0.1"), 1)
    assert err[-1].startswith("fit: failed: ")
    assert "container node: exit code 3" in err[-1]


def test_it_goes_on_without_us(
    plane: Plane, namespace: str, train: Callable[..., subprocess.Popen[str]], file: Path
) -> None:
    """A gang that fits nowhere says so; Ctrl-C ends the command and not the TrainJob."""
    process = train(file, "--job=big", "--nodes=9", "--gpus=8")
    assert process.stderr is not None
    why = next(line for line in iter(process.stderr.readline, "") if line.startswith("big: waits: "))
    assert "nvidia.com/gpu" in why
    process.send_signal(signal.SIGINT)
    _, err = said(process, 130)
    assert f"big keeps running; to end it: kubectl delete trainjob big -n {namespace}" in err
    with contextlib.closing(plane.client()) as client:
        assert {each.type for each in client.get(TRAIN_JOBS, "big", namespace).status.conditions} <= {"Waiting"}


@pytest.mark.slow
def test_what_is_wrong(train: Callable[..., subprocess.Popen[str]], file: Path) -> None:
    """A runtime that is not there, and a refusal of admission, in a sentence each."""
    _, err = said(train(file, "--runtime=nobody"), 1)
    assert err[0].startswith(
        "Error: there is no runtime 'nobody'; available runtimes are: jax-distributed, mpi-distributed, "
    )
    _, err = said(train(file, "--env=PET_NNODES=2"), 1)
    assert "PET_NNODES" in err[0]
    out, _ = said(train(file, "--dry-run", "--nodes=2"))
    assert out[0] == "apiVersion: trainer.kubeflow.org/v1alpha1"
