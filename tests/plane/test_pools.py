"""Node pools: two pairs on one plane, each with its nodes, its queues and its gangs."""

from collections.abc import Callable, Iterator
from typing import Any
from uuid import uuid4

import pytest
from gangs import job
from poolpairs import PoolPair, pool_pair

from muster.api.kubernetes.core import NAMESPACES, PODS
from muster.api.muster.placement import PLACEMENTS
from muster.api.names import NODE_POOL
from muster.api.volcano.batch import JOBS
from muster.api.volcano.scheduling import POD_GROUPS, QUEUES
from muster.kube.client import Client
from musterctl.plane.install import name_of
from musterctl.plane.plane import Plane

pytestmark = pytest.mark.plane
WaitFor = Callable[..., Any]
NODES_IN_ALL, OF_B = 8, 4
POOL_B = [name_of(index) for index in range(OF_B)]
DEFAULT = [name_of(index) for index in range(OF_B, NODES_IN_ALL)]


@pytest.fixture(scope="module")
def pools(module_plane: Callable[..., Plane]) -> Plane:
    """A plane of 8 nodes with 8 GPUs each."""
    return module_plane(nodes=NODES_IN_ALL)


@pytest.fixture(scope="module")
def pair(pools: Plane, tmp_path_factory: pytest.TempPathFactory, wait_for: WaitFor) -> Iterator[PoolPair]:
    """The pair of pool b, which has the first four nodes, with the queue tree `team-b`."""
    with pool_pair(pools, "b", POOL_B, tmp_path_factory.mktemp("pool-b"), wait_for) as one:
        client = pools.client()
        client.create(QUEUES, {"metadata": {"name": "team-b", "labels": {NODE_POOL: "b"}}, "spec": {}})
        for name in ("b1", "b2"):
            client.create(QUEUES, {"metadata": {"name": name}, "spec": {"parent": "team-b"}})
        wait_for(lambda: client.get(QUEUES, "b2").status.state == "Open", what="the queues to be open")
        yield one


@pytest.fixture
def client(pools: Plane, pair: PoolPair) -> Client:
    """A client of the plane with both pairs."""
    del pair
    return pools.client()


@pytest.fixture
def space(client: Client, wait_for: WaitFor) -> Iterator[str]:
    """A namespace whose Jobs are gone afterwards, with their pods."""
    name = f"pools-{uuid4().hex[:8]}"
    client.create(NAMESPACES, {"metadata": {"name": name}})
    yield name
    for each in client.list(JOBS, name):
        client.delete(JOBS, each.metadata.name, name)
    wait_for(lambda: not client.list(PODS, name) and not client.list(POD_GROUPS, name), 60, "all to be gone")


def in_queue(manifest: dict[str, Any], queue: str, **spec: Any) -> dict[str, Any]:
    """The Job in a queue."""
    return {**manifest, "spec": {**manifest["spec"], "queue": queue, **spec}}


def nodes_of(client: Client, namespace: str, name: str) -> list[str]:
    """The nodes of the bound pods of a Job."""
    labelled = client.list(PODS, namespace, label_selector=f"volcano.sh/job-name={name}")
    return sorted(pod.spec.node_name for pod in labelled if pod.spec.node_name)


def test_each_pair_places_the_gangs_of_its_pool(client: Client, space: str, wait_for: WaitFor) -> None:
    """A gang in a queue of pool b starts on its nodes, one in the default queue on the others, at the same time."""
    client.create(JOBS, in_queue(job("there", space, replicas=4), "b1"), space)
    client.create(JOBS, job("here", space, replicas=4), space)
    wait_for(lambda: nodes_of(client, space, "there") == POOL_B, 60, "the gang of pool b to fill its nodes")
    wait_for(lambda: nodes_of(client, space, "here") == DEFAULT, 60, "the gang of the default pool to fill the others")
    schedulers = {pod.spec.scheduler_name for pod in client.list(PODS, space)}
    assert schedulers == {"muster-b", "volcano"}
    labels = {group.spec.queue: group.metadata.labels.get(NODE_POOL) for group in client.list(POD_GROUPS, space)}
    assert labels == {"b1": "b", "default": None}
    placed = {each.metadata.labels.get(NODE_POOL) for each in client.list(PLACEMENTS, space)}
    assert placed == {"b", None}
