"""How pods and nodes live on a local plane: kwok plays the kubelet by our Stages."""

from collections.abc import Callable
from typing import Any

import pytest

pytestmark = pytest.mark.plane

WaitFor = Callable[..., Any]


def pod(name: str, policy: str = "Never", **annotations: str) -> dict[str, Any]:
    """A pod of two containers, main and side, for the cluster's own scheduler."""
    containers = [{"name": container, "image": "none"} for container in ("main", "side")]
    prefixed = {f"kwok.muster.dev/{key.replace('_', '-')}": value for key, value in annotations.items()}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "annotations": prefixed},
        "spec": {"restartPolicy": policy, "containers": containers},
    }


def exit_codes(status: dict[str, Any]) -> dict[str, int]:
    """The exit code of each container that has ended."""
    ended = [one for one in status["containerStatuses"] if "terminated" in one["state"]]
    return {one["name"]: one["state"]["terminated"]["exitCode"] for one in ended}


@pytest.fixture
def status_of(kubectl: Any, namespace: str) -> Callable[[str], dict[str, Any]]:
    """The status of a pod in the test's namespace."""
    return lambda name: kubectl.json("get", "pod", name, f"--namespace={namespace}")["status"]


def is_ready(status: dict[str, Any]) -> bool:
    """Whether the pod is Running and Ready."""
    ready = any(one["type"] == "Ready" and one["status"] == "True" for one in status["conditions"])
    return status["phase"] == "Running" and ready


def test_logs_of_pods_are_a_sentence(kubectl: Any, namespace: str, wait_for: WaitFor, status_of: Any) -> None:
    """Of a container that runs, and of the one before it."""
    kubectl.create(namespace, pod("speaks"))
    wait_for(lambda: is_ready(status_of("speaks")), what="it to run")
    for more in ((), ("--previous",)):
        said = kubectl("logs", "speaks", "--container=side", f"--namespace={namespace}", *more)
        assert said.startswith("this node is simulated, so its pods run no program and write no log; ")


def test_pods_run_complete_and_fail(kubectl: Any, namespace: str, wait_for: WaitFor, status_of: Any) -> None:
    """Without annotations a pod runs on; with run-seconds it ends, and each container with the code it was given."""
    kubectl.create(
        namespace,
        pod("stays"),
        pod("completes", run_seconds="0.5"),
        pod("fails", run_seconds="0.5", exit_code="3"),
        pod("mixed", run_seconds="0.5", exit_codes="main=0, side=137"),
        pod("nonsense", run_seconds="soon"),
    )
    wait_for(lambda: status_of("completes")["phase"] == "Succeeded")
    wait_for(lambda: status_of("fails")["phase"] == "Failed")
    wait_for(lambda: status_of("mixed")["phase"] == "Failed")
    assert exit_codes(status_of("completes")) == {"main": 0, "side": 0}
    assert exit_codes(status_of("fails")) == {"main": 3, "side": 0}
    assert exit_codes(status_of("mixed")) == {"main": 0, "side": 137}
    assert is_ready(status_of("stays"))
    assert is_ready(status_of("nonsense")), "what is not a number of seconds is as good as no annotation"


def test_restart_policy_on_failure(kubectl: Any, namespace: str, wait_for: WaitFor, status_of: Any) -> None:
    """OnFailure restarts the containers that failed, and only those, until all have ended well."""
    kubectl.create(namespace, pod("stubborn", "OnFailure", run_seconds="0.3", exit_code="1"))

    def restarts() -> dict[str, int]:
        return {one["name"]: one["restartCount"] for one in status_of("stubborn").get("containerStatuses", [])}

    wait_for(lambda: restarts().get("main", 0) >= 2)
    status = status_of("stubborn")
    assert status["phase"] == "Running"
    assert restarts()["side"] == 0
    main = next(one for one in status["containerStatuses"] if one["name"] == "main")
    assert "running" in main["state"]
    assert main["lastState"]["terminated"]["exitCode"] == 1
    kubectl("annotate", "pod", "stubborn", f"--namespace={namespace}", "kwok.muster.dev/exit-code-")
    wait_for(lambda: status_of("stubborn")["phase"] == "Succeeded")


def test_restart_policy_always(kubectl: Any, namespace: str, wait_for: WaitFor, status_of: Any) -> None:
    """Always restarts every container, however it ended."""
    kubectl.create(namespace, pod("eternal", "Always", run_seconds="0.3"))
    wait_for(
        lambda: all(one["restartCount"] for one in status_of("eternal").get("containerStatuses", [{"restartCount": 0}]))
    )
    assert status_of("eternal")["phase"] == "Running"


def test_deleted_pod_is_seen_terminating(kubectl: Any, namespace: str, wait_for: WaitFor, status_of: Any) -> None:
    """A deleted pod is there for about a second with a deletion timestamp, then it is gone."""
    kubectl.create(namespace, pod("leaves"))
    wait_for(lambda: status_of("leaves")["phase"] == "Running")
    kubectl("delete", "pod", "leaves", f"--namespace={namespace}", "--wait=false")
    assert kubectl.json("get", "pod", "leaves", f"--namespace={namespace}")["metadata"]["deletionTimestamp"]
    wait_for(lambda: "NotFound" in kubectl("get", "pod", "leaves", f"--namespace={namespace}", check=False), 10)


def test_node_not_ready(kubectl: Any, wait_for: WaitFor) -> None:
    """An annotation makes a node NotReady and thereby tainted; without it the node recovers."""

    def ready_and_tainted() -> tuple[str, bool]:
        node = kubectl.json("get", "node", "node-0007")
        ready = next(one["status"] for one in node["status"]["conditions"] if one["type"] == "Ready")
        taints = [taint["key"] for taint in node["spec"].get("taints", [])]
        return ready, "node.kubernetes.io/not-ready" in taints

    wait_for(lambda: ready_and_tainted() == ("True", False))
    kubectl("annotate", "node", "node-0007", "kwok.muster.dev/not-ready=true")
    try:
        wait_for(lambda: ready_and_tainted() == ("False", True))
    finally:
        kubectl("annotate", "node", "node-0007", "kwok.muster.dev/not-ready-")
    wait_for(lambda: ready_and_tainted() == ("True", False))


def test_nodes_form_racks(kubectl: Any) -> None:
    """Consecutive nodes share a rack, and every node has its resources."""
    nodes = kubectl.json("get", "nodes")["items"]
    assert [node["metadata"]["labels"]["muster.dev/rack"] for node in nodes] == ["rack-0"] * 4 + ["rack-1"] * 4
    assert {node["metadata"]["labels"]["muster.dev/block"] for node in nodes} == {"block-0"}
    wanted = {"cpu": "32", "memory": "256Gi", "nvidia.com/gpu": "8", "pods": "110"}
    assert all(wanted.items() <= node["status"]["allocatable"].items() for node in nodes)
