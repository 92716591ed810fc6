"""The scripts in examples/sdk run to their end against a plane, with Kubeflow's SDK as it is."""

import os
import subprocess
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
import sdk_environment
import yaml

from musterctl.plane.plane import Plane

pytestmark = [pytest.mark.plane, pytest.mark.slow]
FOLDER = Path(__file__).resolve().parents[2] / "examples" / "sdk"
SCRIPTS = ("torch_function", "mpi", "torchtune")
END_S = 240.0


@pytest.fixture(scope="module")
def started(
    shared_plane: Plane, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, subprocess.Popen[str]]]:
    """All of them, at once, in a namespace that the kubeconfig names."""
    namespace = f"test-{uuid.uuid4().hex[:8]}"
    assert shared_plane.kubectl("create", "namespace", namespace).returncode == 0
    assert shared_plane.kubectl("create", f"--filename={FOLDER / 'volume.yaml'}").returncode == 0
    config = yaml.safe_load(shared_plane.kubeconfig.read_text())
    config["contexts"][0]["context"]["namespace"] = namespace
    kubeconfig = tmp_path_factory.mktemp("sdk") / "kubeconfig"
    kubeconfig.write_text(yaml.safe_dump(config))
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    environment["KUBECONFIG"] = str(kubeconfig)
    python = sdk_environment.python()
    running = {
        name: subprocess.Popen(
            [python, FOLDER / f"{name}.py"], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        for name in SCRIPTS
    }
    yield running
    for process in running.values():
        process.kill()
        process.wait()
    shared_plane.kubectl("delete", "namespace", namespace, "--wait=false")
    shared_plane.kubectl("delete", "pv/muster-example-sdk", "--wait=false")


def said(started: dict[str, subprocess.Popen[str]], script: str) -> list[str]:
    """The lines that a script has printed until its end, less the name of its TrainJob."""
    out, err = started[script].communicate(timeout=END_S)
    assert started[script].returncode == 0, err[-3000:]
    name = out.split()[1]
    return out.replace(f"TrainJob {name} ", "").splitlines()


def test_torch(started: dict[str, subprocess.Popen[str]]) -> None:
    """Four nodes, each with its GPUs."""
    lines = said(started, "torch_function")
    assert (lines[0], lines[-1]) == ("is submitted", "is Complete")
    assert sorted(line.split(":")[0] for line in lines[1:-1]) == [f"node-{i} is Running on 2 gpu" for i in range(4)]


def test_mpi(started: dict[str, subprocess.Popen[str]]) -> None:
    """The launcher is one of three nodes, and its end is the end."""
    lines = said(started, "mpi")
    assert lines[1:3] == ["has 3 steps: node-0, node-1, node-2", "is Complete"]
    assert "AllJobsCompleted: jobset completed successfully" in lines


def test_torchtune(started: dict[str, subprocess.Popen[str]]) -> None:
    """Two steps before it, and the fine-tuning."""
    lines = said(started, "torchtune")
    steps = ["dataset-initializer is Succeeded", "model-initializer is Succeeded", "node-0 is Succeeded"]
    assert (sorted(lines[1:-1]), lines[-1]) == (steps, "is Complete")
