"""A plane with two node pools, a pair for each, and the queues of both: fixtures, which a module imports by name."""

from collections.abc import Callable, Iterator
from typing import Any
from uuid import uuid4

import pytest

from muster.api.kubernetes.core import NAMESPACES, PODS
from muster.api.names import NODE_POOL
from muster.api.volcano.scheduling import POD_GROUPS, QUEUES
from muster.kube.client import Client
from musterctl.plane.install import name_of
from musterctl.plane.plane import Plane

WaitFor = Callable[..., Any]
NODES_IN_ALL, OF_B = 8, 4
DEFAULT = [name_of(index) for index in range(NODES_IN_ALL - OF_B)]
POOL_B = [name_of(index) for index in range(NODES_IN_ALL - OF_B, NODES_IN_ALL)]
"""The nodes of both pools, with 8 GPUs each."""


@pytest.fixture(scope="module")
def pools(module_plane: Callable[..., Plane], wait_for: WaitFor) -> Plane:
    """A plane with the pool b, whose queues are `b1` and `b2` below `team-b`."""
    plane = module_plane(nodes=NODES_IN_ALL, pool=("b",))
    client = plane.client()
    client.create(QUEUES, {"metadata": {"name": "team-b", "labels": {NODE_POOL: "b"}}, "spec": {}})
    for name in ("b1", "b2"):
        client.create(QUEUES, {"metadata": {"name": name}, "spec": {"parent": "team-b"}})
    wait_for(lambda: client.get(QUEUES, "b2").status.state == "Open", what="the queues to be open")
    return plane


@pytest.fixture
def client(pools: Plane) -> Client:
    """A client of that plane."""
    return pools.client()


@pytest.fixture
def space(client: Client, wait_for: WaitFor) -> Iterator[str]:
    """A namespace that is gone afterwards, with all pods."""
    name = f"pools-{uuid4().hex[:8]}"
    client.create(NAMESPACES, {"metadata": {"name": name}})
    yield name
    client.delete(NAMESPACES, name)
    wait_for(lambda: not client.list(PODS, name) and not client.list(POD_GROUPS, name), 60, "all to be gone")


def in_queue(manifest: dict[str, Any], queue: str, **spec: Any) -> dict[str, Any]:
    """The Job in a queue."""
    return {**manifest, "spec": {**manifest["spec"], "queue": queue, **spec}}


def nodes_of(client: Client, namespace: str, name: str) -> list[str]:
    """The nodes of the bound pods of a Job."""
    labelled = client.list(PODS, namespace, label_selector=f"volcano.sh/job-name={name}")
    return sorted(pod.spec.node_name for pod in labelled if pod.spec.node_name)
