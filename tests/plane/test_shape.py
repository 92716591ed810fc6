"""`muster shape --online` against the real plane says what the API server then stores."""

import json
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner
from manifests import dry_run

from muster.api.kubernetes.core import NAMESPACES
from musterctl.app import main
from musterctl.plane.plane import Plane

pytestmark = pytest.mark.plane

JSON = dict[str, Any]
TEMPLATE = {"spec": {"containers": [{"name": "main", "image": "registry.k8s.io/pause"}]}}


def shaped(plane: Plane, folder: Path, obj: JSON, namespace: str, *options: str) -> Any:
    """What the command makes of an object."""
    file = folder / "object.json"
    file.write_text(json.dumps(obj), encoding="utf-8")
    command = ["shape", "-f", str(file), "-n", namespace, f"--kubeconfig={plane.kubeconfig}", *options]
    return CliRunner().invoke(main, command)


def test_the_same_as_the_api_server(plane: Plane, namespace: str, tmp_path: Path, wait_for: Callable[..., Any]) -> None:
    """Labels of the namespace and the queues come from the cluster; labels, scheduler and gates are what is stored."""
    pod: JSON = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "one"},
        "spec": {"containers": [{"name": "main", "image": "registry.k8s.io/pause"}]},
    }
    with closing(plane.client()) as client:
        client.merge_patch(NAMESPACES, namespace, {"metadata": {"labels": {"muster.dev/queue": "default"}}})
        wait_for(lambda: dry_run(client, pod, namespace)["metadata"].get("labels"), what="the label to count")
        stored = dry_run(client, pod, namespace)
    result = shaped(plane, tmp_path, pod, namespace)
    assert result.exit_code == 0, result.output
    [expected] = yaml.safe_load_all(result.stdout)
    assert stored["metadata"]["labels"] == expected["metadata"]["labels"] == {"muster.dev/queue": "default"}
    assert stored["spec"]["schedulerName"] == expected["spec"]["schedulerName"] == "muster"


def test_a_queue_that_the_cluster_does_not_know(shared_plane: Plane, tmp_path: Path) -> None:
    """Without a cluster every queue counts as open; with one the refusal is the webhook's own."""
    job: JSON = {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": "train"},
        "spec": {"queue": "nowhere", "tasks": [{"name": "a", "replicas": 1, "template": TEMPLATE}]},
    }
    result = shaped(shared_plane, tmp_path, job, "default")
    assert result.exit_code == 1
    assert "usable queues are: default" in result.stderr
