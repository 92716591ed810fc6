"""How pods and nodes live on a local plane: kwok plays the kubelet by our Stages."""

from collections.abc import Callable
from typing import Any

import pytest

pytestmark = pytest.mark.plane

WaitFor = Callable[..., Any]


def pod(name: str, annotations: dict[str, str] | None = None, policy: str = "Never") -> dict[str, Any]:
    """A pod of two containers for the cluster's own scheduler."""
    containers = [{"name": container, "image": "none"} for container in ("main", "side")]
    prefixed = {f"kwok.muster.dev/{key}": value for key, value in (annotations or {}).items()}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "annotations": prefixed},
        "spec": {"restartPolicy": policy, "containers": containers},
    }


def test_pod_runs_and_completes(kubectl: Any, namespace: str, wait_for: WaitFor) -> None:
    """A pod with run-seconds ends with success, one without keeps running."""
    kubectl("create", "--namespace", namespace, "--filename=-", stdin=pod("ends", {"run-seconds": "0.5"}))
    kubectl("create", "--namespace", namespace, "--filename=-", stdin=pod("stays"))
    wait_for(lambda: kubectl("get", "pod", "ends", "-n", namespace, "-o", "jsonpath={.status.phase}") == "Succeeded")
    wait_for(lambda: kubectl("get", "pod", "stays", "-n", namespace, "-o", "jsonpath={.status.phase}") == "Running")
