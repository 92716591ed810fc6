"""Kubernetes' own gangs (scheduling.k8s.io/v1beta1, off by default) and Muster's beside each other in one cluster."""

from collections.abc import Callable
from typing import Any

import pytest
from gangs import job

from muster.api.base import Resource
from muster.api.kubernetes.core import PODS
from muster.api.volcano.batch import JOBS
from musterctl.plane.plane import Plane
from musterctl.plane.state import API_SERVER, CONTROLLER_MANAGER, MUSTER_SCHEDULER, SCHEDULER

pytestmark = [pytest.mark.plane, pytest.mark.long]

JSON = dict[str, Any]
GATES = ("--feature-gates=GenericWorkload=true",)
GROUPS: Resource[JSON] = Resource("scheduling.k8s.io", "v1beta1", "podgroups", "PodGroup", JSON)


def test_native_gangs_and_ours_keep_off_each_others_nodes(
    fresh_plane: Callable[..., Plane], wait_for: Callable[..., Any]
) -> None:
    """Each waits whole while the other one has the nodes, and starts whole once they are free."""
    served = (*GATES, "--runtime-config=scheduling.k8s.io/v1beta1=true")
    gated = dict.fromkeys((CONTROLLER_MANAGER, SCHEDULER, MUSTER_SCHEDULER), GATES)
    client = fresh_plane(arguments={API_SERVER: served, **gated}).client()

    def nodes(gang: str) -> list[str]:
        pods = [pod for pod in client.list(PODS, "default") if pod.metadata.name.startswith(f"{gang}-")]
        return [pod.spec.node_name for pod in pods if pod.spec.node_name]

    def native(name: str, members: int) -> None:
        spec = {"schedulingPolicy": {"gang": {"minCount": members}}}
        client.create(GROUPS, {"metadata": {"name": name}, "spec": spec}, "default")
        container = {"name": "main", "image": "none", "resources": {"limits": {"nvidia.com/gpu": 8}}}
        pod = {"schedulingGroup": {"podGroupName": name}, "containers": [container]}
        for number in range(members):
            client.create(PODS, {"metadata": {"name": f"{name}-{number}"}, "spec": pod}, "default")

    native("native", 4)
    wait_for(lambda: len(nodes("native")) == 4, 60, "the native gang to be bound")
    client.create(JOBS, job("ours", "default", replicas=4), "default")
    wait_for(lambda: len(nodes("ours")) == 4, 60, "our gang to be bound")
    assert len({*nodes("native"), *nodes("ours")}) == 8
    client.create(JOBS, job("waiting", "default", replicas=4), "default")
    wait_for(lambda: client.get(JOBS, "waiting", "default").status.state.phase == "Pending", 60, "our second to wait")
    for number in range(4):
        client.delete(PODS, f"native-{number}", "default")
    wait_for(lambda: len(nodes("waiting")) == 4, 60, "our second gang to be bound")
    native("later", 4)
    client.delete(JOBS, "ours", "default")
    wait_for(lambda: len(nodes("later")) == 4, 60, "the second native gang to be bound")
    assert len({*nodes("later"), *nodes("waiting")}) == 8
