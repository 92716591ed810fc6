"""What a pod asks for is what kube-scheduler counts."""

from typing import Any

import msgspec
import pytest

from muster.api.kubernetes.core import Node, PodSpec
from muster.resources.pods import node_allocatable, pod_requests


def container(cpu: str = "", limits: dict[str, str] | None = None, *, sidecar: bool = False) -> dict[str, Any]:
    """A container that requests so much CPU."""
    resources = {"requests": {"cpu": cpu} if cpu else {}, "limits": limits or {}}
    return {"resources": resources} | ({"restartPolicy": "Always"} if sidecar else {})


def requests(**spec: Any) -> dict[str, int]:
    """The requests of a pod with this spec, except that it is one pod."""
    result = pod_requests(msgspec.convert(spec, PodSpec))
    assert result.pop("pods") == 1
    return result


def test_containers_add_up() -> None:
    """All containers run together."""
    assert requests(containers=[container("1"), container("500m")]) == {"cpu": 1500}


def test_the_largest_init_container_counts() -> None:
    """Init containers run one after the other, before the containers."""
    containers = [container("1"), container("1")]
    assert requests(containers=containers, initContainers=[container("3"), container("2")]) == {"cpu": 3000}
    assert requests(containers=containers, initContainers=[container("1"), container("1")]) == {"cpu": 2000}


def test_a_sidecar_counts_with_what_runs_beside_it() -> None:
    """Sidecars run beside the containers and beside the init containers that come after them."""
    sidecar = container("1", sidecar=True)
    assert requests(containers=[container("1")], initContainers=[sidecar, sidecar]) == {"cpu": 3000}
    assert requests(containers=[container("1")], initContainers=[sidecar, container("4")]) == {"cpu": 5000}
    assert requests(containers=[container("1")], initContainers=[container("4"), sidecar]) == {"cpu": 4000}


def test_limits_stand_in_for_missing_requests() -> None:
    """The API server does the same before kube-scheduler sees the pod."""
    limits = {"cpu": "2", "nvidia.com/gpu": "8"}
    assert requests(containers=[container(limits=limits)]) == {"cpu": 2000, "nvidia.com/gpu": 8000}
    assert requests(containers=[container("1", limits=limits)]) == {"cpu": 1000, "nvidia.com/gpu": 8000}


def test_overhead_comes_on_top() -> None:
    """The runtime class needs its share, of pod-level resources too."""
    pod: dict[str, Any] = {"containers": [container("1")], "overhead": {"cpu": "250m", "memory": "1Mi"}}
    assert requests(**pod) == {"cpu": 1250, "memory": 2**20}
    assert requests(**pod, resources={"requests": {"cpu": "4"}}) == {"cpu": 4250, "memory": 2**20}


def test_pod_level_requests_replace_the_sum() -> None:
    """For CPU, memory and huge pages; devices stay with the containers."""
    limits = {"nvidia.com/gpu": "1"}
    resources = {"requests": {"cpu": "4", "memory": "1Gi"}}
    assert requests(containers=[container("1", limits=limits)], resources=resources) == {
        "cpu": 4000,
        "memory": 2**30,
        "nvidia.com/gpu": 1000,
    }


def test_pod_level_limits_count_where_no_container_asks() -> None:
    """The API server makes a pod-level request of the containers' requests, or else of the pod's limit."""
    resources = {"limits": {"cpu": "4", "memory": "1Gi", "hugepages-2Mi": "8Mi"}}
    assert requests(containers=[container("1")], resources=resources) == {
        "cpu": 1000,
        "memory": 2**30,
        "hugepages-2Mi": 2**23,
    }


def test_a_pod_without_requests_is_still_one_pod() -> None:
    """Nodes limit the number of pods."""
    assert pod_requests(PodSpec()) == {"pods": 1}


def test_a_wrong_quantity_names_its_resource() -> None:
    """The message can be shown to a user."""
    with pytest.raises(ValueError, match="cpu: 'much' is not a quantity"):
        requests(containers=[container("much")])


def test_allocatable_of_a_node() -> None:
    """What the kubelet says it has for pods."""
    status = {"allocatable": {"cpu": "32", "memory": "256Gi", "pods": "110", "nvidia.com/gpu": "8"}}
    node = msgspec.convert({"status": status}, Node)
    assert node_allocatable(node) == {"cpu": 32000, "memory": 256 * 2**30, "pods": 110, "nvidia.com/gpu": 8000}
