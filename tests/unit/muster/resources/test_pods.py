"""What a pod asks for is what kube-scheduler counts; while it is resized, what kube-scheduler counts up to 1.36."""

from typing import Any

import msgspec
import pytest

from muster.api.kubernetes.core import Node, Pod, PodSpec
from muster.resources.pods import node_allocatable, pod_requests, requests_on_node


def container(cpu: str = "", limits: dict[str, str] | None = None, *, sidecar: bool = False) -> dict[str, Any]:
    """A container that requests so much CPU."""
    resources = {"requests": {"cpu": cpu} if cpu else {}, "limits": limits or {}}
    return {"resources": resources} | ({"restartPolicy": "Always"} if sidecar else {})


def requests(**spec: Any) -> dict[str, int]:
    """The requests of a pod with this spec, except that it is one pod."""
    result = pod_requests(msgspec.convert(spec, PodSpec))
    assert result.pop("pods") == 1
    return result


ONE, TWO = container("1"), [container("1"), container("1")]
SIDE = container("1", sidecar=True)
DEVICES = {"cpu": "2", "nvidia.com/gpu": "8"}
OVERHEAD = {"cpu": "250m", "memory": "1Mi"}
WHOLE = {"requests": {"cpu": "4", "memory": "1Gi"}}
LIMITED = {"limits": {"cpu": "4", "memory": "1Gi", "hugepages-2Mi": "8Mi"}}


@pytest.mark.parametrize(
    ("spec", "wanted"),
    [
        ({}, {}),
        ({"containers": [ONE, container("500m")]}, {"cpu": 1500}),
        ({"containers": TWO, "initContainers": [container("3"), container("2")]}, {"cpu": 3000}),
        ({"containers": TWO, "initContainers": TWO}, {"cpu": 2000}),
        ({"containers": [ONE], "initContainers": [SIDE, SIDE]}, {"cpu": 3000}),
        ({"containers": [ONE], "initContainers": [SIDE, container("4")]}, {"cpu": 5000}),
        ({"containers": [ONE], "initContainers": [container("4"), SIDE]}, {"cpu": 4000}),
        ({"containers": [ONE], "initContainers": [SIDE, SIDE, container("1.5")]}, {"cpu": 3500}),
        ({"containers": [container(limits=DEVICES)]}, {"cpu": 2000, "nvidia.com/gpu": 8000}),
        ({"containers": [container("1", limits=DEVICES)]}, {"cpu": 1000, "nvidia.com/gpu": 8000}),
        ({"containers": [ONE], "overhead": OVERHEAD}, {"cpu": 1250, "memory": 2**20}),
        ({"containers": [ONE], "overhead": OVERHEAD, "resources": WHOLE}, {"cpu": 4250, "memory": 2**30 + 2**20}),
        ({"containers": [container("1", limits={"nvidia.com/gpu": "1"})], "resources": WHOLE},
         {"cpu": 4000, "memory": 2**30, "nvidia.com/gpu": 1000}),
        ({"containers": [ONE], "resources": LIMITED}, {"cpu": 1000, "memory": 2**30, "hugepages-2Mi": 2**23}),
        ({"containers": [container(limits={"hugepages-2Mi": "2Mi"})], "resources": LIMITED},
         {"cpu": 4000, "memory": 2**30, "hugepages-2Mi": 2**23}),
    ],
    ids=["one pod at least", "containers run together", "init containers run one after the other",
         "and before the containers", "sidecars run beside the containers", "and beside later init containers",
         "not beside earlier ones", "all earlier sidecars", "a limit where there is no request", "and nowhere else",
         "overhead on top", "and on top of the pod's own", "the pod's own instead of the sum, but of devices",
         "the pod's limit where no container asks", "and of huge pages always"],
)  # fmt: skip
def test_what_a_pod_requests(spec: dict[str, Any], wanted: dict[str, int]) -> None:
    """As kube-scheduler counts it, after the API server has filled in defaults."""
    assert requests(**spec) == wanted


def test_a_wrong_quantity_names_its_resource() -> None:
    """The message can be shown to a user."""
    with pytest.raises(ValueError, match="cpu: 'much' is not a quantity"):
        requests(containers=[container("much")])


def test_allocatable_of_a_node() -> None:
    """What the kubelet says it has for pods."""
    status = {"allocatable": {"cpu": "32", "memory": "256Gi", "pods": "110", "nvidia.com/gpu": "8"}}
    node = msgspec.convert({"status": status}, Node)
    assert node_allocatable(node) == {"cpu": 32000, "memory": 256 * 2**30, "pods": 110, "nvidia.com/gpu": 8000}


PENDING = {"type": "PodResizePending", "status": "True"}


def taken(spec: dict[str, Any], status: dict[str, Any]) -> dict[str, int]:
    """What such a pod takes, except that it is one pod."""
    result = requests_on_node(msgspec.convert({"spec": {"nodeName": "n", **spec}, "status": status}, Pod))
    assert result.pop("pods") == 1
    return result


def main(cpu: str) -> dict[str, Any]:
    """A container that asks for so much."""
    return {"name": "main", "resources": {"requests": {"cpu": cpu}}}


def has(name: str, cpu: str, allocated: str = "") -> dict[str, Any]:
    """The status of a container that has so much, and for which so much is set aside."""
    status: dict[str, Any] = {"name": name, "resources": {"requests": {"cpu": cpu}}}
    return status | ({"allocatedResources": {"cpu": allocated}} if allocated else {})


@pytest.mark.parametrize(("asked", "status", "conditions", "cpu"), [
    ("2", {"name": "main"}, [], 2000),
    ("2", has("main", "1", "1"), [], 2000),
    ("1", has("main", "4", "2"), [], 4000),
    ("1", has("main", "2", "4"), [], 4000),
    ("8", has("main", "1", "2"), [PENDING | {"reason": "Deferred"}], 8000),
    ("8", has("main", "1", "2"), [PENDING | {"reason": "Infeasible"}], 2000),
    ("8", has("main", "1", "2"), [PENDING | {"reason": "Infeasible", "status": "False"}], 8000),
])  # fmt: skip
def test_the_most_of_what_is_asked_for_set_aside_and_there(
    asked: str, status: dict[str, Any], conditions: list[dict[str, str]], cpu: int
) -> None:
    """Without what is asked for where that can never be."""
    assert taken({"containers": [main(asked)]}, {"containerStatuses": [status], "conditions": conditions}) == {
        "cpu": cpu
    }


def test_sidecars_are_resized_too_and_ordinary_init_containers_are_not() -> None:
    """An ordinary init container counts as it was written."""
    side = main("1") | {"name": "side", "restartPolicy": "Always"}
    spec = {"containers": [main("1")], "initContainers": [side, main("3") | {"name": "init"}]}
    init_container_statuses = [has("side", "2", "2"), has("init", "9", "9")]
    status = {"containerStatuses": [has("main", "1", "1")], "initContainerStatuses": init_container_statuses}
    assert taken(spec, status) == {"cpu": 5000}
    assert taken(spec, {}) == {"cpu": 4000}


@pytest.mark.parametrize(("asked", "status", "reason", "cpu"), [
    ("4", {}, "", 4000),
    ("4", {"resources": {"requests": {"cpu": "6"}}}, "", 6000),
    ("4", {"resources": {"requests": {"cpu": "2"}}, "allocatedResources": {"cpu": "5"}}, "", 5000),
    ("4", {"resources": {"requests": {"cpu": "2"}}, "allocatedResources": {"cpu": "3"}}, "Infeasible", 3000),
])  # fmt: skip
def test_resources_of_the_pod_as_a_whole(asked: str, status: dict[str, Any], reason: str, cpu: int) -> None:
    """They stand for the sum of the containers, by the same rule."""
    spec = {"containers": [main("1")], "resources": {"requests": {"cpu": asked}}}
    conditions = [PENDING | {"reason": reason}] if reason else []
    assert taken(spec, {**status, "conditions": conditions}) == {"cpu": cpu}
