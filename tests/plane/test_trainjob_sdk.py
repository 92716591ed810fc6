"""Kubeflow's own SDK against Muster: nothing of Kubeflow Trainer is installed, and nothing of the SDK is changed."""

import contextlib
import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from kubelets import kubelet
from train_jobs import make_volume

from muster.api.core import NODES
from musterctl.plane.plane import Plane

pytestmark = pytest.mark.plane
PYTHON = os.environ.get("MUSTER_SDK_PYTHON") or (sys.executable if importlib.util.find_spec("kubeflow") else "")
"""The Python that has the package `kubeflow`: this one, or that of another environment."""
CONVERSATION = Path(__file__).parent / "sdk" / "conversation.py"
needs_sdk = pytest.mark.skipif(not PYTHON, reason="needs the package kubeflow, here or in MUSTER_SDK_PYTHON")


def conversation(plane: Plane, namespace: str, scenario: str) -> dict[str, Any]:
    """What the SDK said in a scenario."""
    arguments = [PYTHON, str(CONVERSATION), str(plane.kubeconfig), namespace, scenario]
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    result = subprocess.run(arguments, capture_output=True, text=True, timeout=240, check=False, env=environment)
    assert result.returncode == 0, result.stderr[-3000:]
    answer: dict[str, Any] = json.loads(result.stdout.strip().splitlines()[-1])
    return answer


@needs_sdk
def test_runtimes(plane: Plane, namespace: str) -> None:
    """All that are shipped are listed, and one can be asked for."""
    answer = conversation(plane, namespace, "runtimes")
    assert {"torch-distributed", "mpi-distributed", "plain", "jax-distributed"} <= set(answer["names"])
    assert (answer["framework"], answer["nodes"]) == ("torch", 1)


@needs_sdk
def test_a_function_from_submission_to_deletion(plane: Plane, namespace: str) -> None:
    """train, wait for Running and Complete, get, list, events, delete."""
    answer = conversation(plane, namespace, "function")
    assert answer["seen"][-1] == "Running"
    assert answer["running"]["steps"] == [["node-0", "Running", "1"], ["node-1", "Running", "1"]]
    assert answer["complete"]["status"] == "Complete"
    assert [step[1] for step in answer["complete"]["steps"]] == ["Succeeded", "Succeeded"]
    assert answer["complete"]["nodes"] == 2
    assert answer["listed"]
    assert ["TrainJob", "AllJobsCompleted"] in answer["events"]
    assert answer["gone"]


@needs_sdk
def test_a_failure(plane: Plane, namespace: str) -> None:
    """The SDK raises as soon as a pod has failed."""
    answer = conversation(plane, namespace, "failure")
    assert "is Failed" in answer["error"]
    assert answer["status"] == "Failed"


@needs_sdk
def test_mpi(plane: Plane, namespace: str) -> None:
    """Running while the launcher and the nodes run; Complete with the launcher."""
    answer = conversation(plane, namespace, "mpi")
    assert answer["running"]["runtime"] == "mpi-distributed"
    assert [step[0] for step in answer["running"]["steps"]] == ["node-0", "node-1"], "the launcher is one of two"
    assert answer["complete"]["status"] == "Complete"


@needs_sdk
def test_logs(plane: Plane, namespace: str, tmp_path: Path) -> None:
    """What the container `node` of the first step has printed, read from its node, and followed."""
    with contextlib.closing(plane.client()) as client, kubelet(tmp_path) as served:
        for node in client.list(NODES):
            addresses = [{"type": "InternalIP", "address": "127.0.0.1"}]
            endpoints = {"kubeletEndpoint": {"Port": served.port}}
            status = {"addresses": addresses, "daemonEndpoints": endpoints}
            client.merge_patch(NODES, node.metadata.name, {"status": status}, subresource="status")
        answer = conversation(plane, namespace, "logs")
    assert answer == {"lines": ["a step", "another"], "followed": ["a step", "another"]}
    [path] = {path.partition("?")[0] for path in served.asked}
    assert path.startswith(f"/containerLogs/{namespace}/")
    assert path.endswith("/node")


@needs_sdk
def test_every_option(plane: Plane, namespace: str) -> None:
    """Name, labels, annotations, patches, command, arguments and deadline."""
    answer = conversation(plane, namespace, "options")
    assert (answer["name"], answer["status"]) == ("named", "Complete")


@needs_sdk
def test_torchtune_with_initializers(plane: Plane, namespace: str) -> None:
    """Dataset and model are fetched first; all three are steps."""
    with contextlib.closing(plane.client()) as client:
        make_volume(client, namespace, "20Gi")
    answer = conversation(plane, namespace, "torchtune")
    assert (answer["kind"], answer["status"]) == ("BuiltinTrainer", "Complete")
    assert [step[0] for step in answer["steps"]] == ["dataset-initializer", "model-initializer", "node-0"]
