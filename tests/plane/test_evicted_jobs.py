"""A Job of Kubernetes comes back at once after each of many evictions, as its controller does not count them."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from gang_jobs import RECOVERY_S, job, runs

from muster.api import names
from muster.api.base import Resource
from muster.api.kubernetes.core import NAMESPACES, PODS, PRIORITY_CLASSES
from muster.api.volcano.batch import JOBS
from muster.kube.client import Client
from musterctl.plane.plane import Plane

pytestmark = [pytest.mark.plane, pytest.mark.long]
CONFIG = """
actions: enqueue, allocate, preempt
tiers:
  - plugins: [{name: gang}, {name: priority}, {name: proportion}, {name: predicates}]
"""
PLAIN_JOBS: Resource[dict[str, Any]] = Resource("batch", "v1", "jobs", "Job", dict[str, Any])
PODS_EACH = 2
EVICTIONS = 10
"""After so many failures that count, the Job controller waits ten minutes before it makes a pod again."""
NODES = 8


@pytest.fixture(scope="module")
def client(module_plane: Callable[..., Plane]) -> Iterator[Client]:
    """A plane whose planner preempts for the class `high`."""
    client = module_plane(planning_config=CONFIG).client()
    body = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}}
    client.apply(PRIORITY_CLASSES, body | {"value": 1000})
    yield client
    client.close()


@pytest.mark.parametrize("restart", ["Never", "OnFailure"])
def test_a_job_comes_back_at_once_after_each_eviction(
    client: Client, wait_for: Callable[..., Any], restart: str
) -> None:
    """With the policy that admission adds, and where Kubernetes allows none."""
    space = f"evicted-{restart.lower()}"
    client.create(NAMESPACES, {"metadata": {"name": space}})
    containers = [{"name": "main", "image": "none", "resources": {"limits": {"nvidia.com/gpu": 8}}}]
    template = {"spec": {"restartPolicy": restart, "containers": containers}}
    spec = {"parallelism": PODS_EACH, "completions": PODS_EACH, "backoffLimit": 2, "template": template}
    client.create(PLAIN_JOBS, {"metadata": {"name": "again", "labels": {names.QUEUE: "default"}}, "spec": spec}, space)
    high = job("high", space, replicas=NODES)
    high["spec"]["priorityClassName"] = "high"

    def back() -> bool:
        there = [each for each in client.list(PODS, space) if each.metadata.name.startswith("again")]
        alive = [each for each in there if each.status.phase == "Running" and not each.metadata.deletion_timestamp]
        return len(alive) == PODS_EACH

    for number in range(1 + EVICTIONS):
        wait_for(back, 30, f"the Job's pods after {number} evictions")
        if number < EVICTIONS:
            client.create(JOBS, high, space)
            wait_for(lambda: runs(client, space, "high", NODES), 2 * RECOVERY_S, "the gang of high priority")
            client.delete(JOBS, "high", space)
            wait_for(lambda: not client.list(JOBS, space), 30, "its end")
    assert not client.get(PLAIN_JOBS, "again", space)["status"].get("failed")
    client.delete(PLAIN_JOBS, "again", space, propagation="Background")
