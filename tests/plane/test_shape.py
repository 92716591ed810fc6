"""`muster shape --online` against the real plane says what the API server then stores."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from musterctl.app import main
from musterctl.plane.plane import Plane

pytestmark = pytest.mark.plane

JSON = dict[str, Any]


def shaped(plane: Plane, folder: Path, obj: JSON, namespace: str, *options: str) -> Any:
    """What the command makes of an object."""
    file = folder / "object.json"
    file.write_text(json.dumps(obj), encoding="utf-8")
    command = ["shape", "-f", str(file), "-n", namespace, f"--kubeconfig={plane.kubeconfig}", *options]
    return CliRunner().invoke(main, command)


def test_the_same_as_the_api_server(plane: Plane, kubectl: Any, namespace: str, tmp_path: Path) -> None:
    """Labels of the namespace and the queues come from the cluster; labels, scheduler and gates are what is stored."""
    kubectl("label", "namespace", namespace, "muster.dev/queue=default")
    pod: JSON = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "one"},
        "spec": {"containers": [{"name": "main", "image": "registry.k8s.io/pause"}]},
    }
    result = shaped(plane, tmp_path, pod, namespace)
    assert result.exit_code == 0, result.output
    [expected] = yaml.safe_load_all(result.stdout)
    kubectl("create", f"--namespace={namespace}", "--filename=-", stdin=pod)
    stored = kubectl.json("get", "pod", "one", f"--namespace={namespace}")
    assert stored["metadata"]["labels"] == expected["metadata"]["labels"] == {"muster.dev/queue": "default"}
    assert stored["spec"]["schedulerName"] == expected["spec"]["schedulerName"] == "muster"


def test_a_queue_that_the_cluster_does_not_know(plane: Plane, namespace: str, tmp_path: Path) -> None:
    """Without a cluster every queue counts as open; with one the refusal is the webhook's own."""
    job: JSON = {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": "train"},
        "spec": {"queue": "nowhere", "tasks": [{"name": "a", "replicas": 1, "template": {"spec": {}}}]},
    }
    result = shaped(plane, tmp_path, job, namespace)
    assert result.exit_code == 1
    assert "usable queues are: default" in result.stderr
