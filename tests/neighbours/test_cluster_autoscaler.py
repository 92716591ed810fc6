"""cluster-autoscaler, real, adds nodes for gangs of Muster on a cluster without any, and takes away idle ones."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from beside import autoscaler, writes
from beside.autoscaler import Autoscaler, Group, Made
from beside.neighbour import Neighbours
from gangs import History, job, runs

from muster.api.kubernetes.core import PODS
from muster.api.names import SCALE_UP
from muster.api.volcano.batch import JOBS
from muster.api.volcano.scheduling import POD_GROUPS
from muster.kube.client import Client
from musterctl.plane.plane import Plane

pytestmark = pytest.mark.neighbour
Wait = Callable[..., Any]
GPUS = Group("gpu.8", limit=20)
PATIENCE_S = 180.0
"""Several rounds of autoscaler's loop, the nodes' start, and a machine that does other things, too."""
HALF_S = 5.0
"""Members are bound one after the other, which takes a moment on a busy machine."""


@pytest.fixture(scope="module")
def scaler(module_plane: Callable[..., Plane], neighbours: Neighbours) -> Autoscaler:
    """A plane without nodes, and cluster-autoscaler with one group of nodes."""
    patient = {"controller": {"leaseDuration": 60.0}}  # nobody starts it again, if a busy machine costs it its Lease
    return autoscaler.start(module_plane(nodes=0, settings=patient), neighbours, (GPUS,))


@pytest.fixture
def plane(scaler: Autoscaler) -> Plane:
    """The plane of this module, for the namespace."""
    return scaler.plane


@pytest.fixture
def client(plane: Plane, namespace: str, wait_for: Wait) -> Iterator[Client]:
    """A client; after the test all Jobs and nodes are gone, and Muster has refused nothing."""
    client = plane.client()
    yield client
    for each in client.list(JOBS, namespace):
        client.delete(JOBS, each.metadata.name, namespace)
    wait_for(lambda: not client.list(PODS, namespace), 60, "the pods to be gone")
    wait_for(lambda: not autoscaler.nodes(client), PATIENCE_S, "the nodes to be gone")
    assert not any(writes.refused(plane).values())


@pytest.fixture
def made(client: Client) -> Iterator[Made]:
    """All nodes that the test has cost."""
    with Made(client) as record:
        yield record


@pytest.fixture
def history(client: Client, namespace: str) -> Iterator[History]:
    """What became of the test's pods."""
    with History(client, namespace) as record:
        yield record


def submit(client: Client, namespace: str, name: str, replicas: int, **options: Any) -> None:
    """A gang that asks for its nodes: by the condition of its pods, unless `asks` says otherwise."""
    annotations = {SCALE_UP: "condition", **options.pop("asks", {})}
    queue = options.pop("queue", "default")
    one = job(name, namespace, replicas=replicas, **options)
    one["metadata"]["annotations"] = annotations
    one["spec"]["queue"] = queue
    client.create(JOBS, one, namespace)


def words_of(client: Client, namespace: str, name: str) -> str:
    """Why a gang waits, as its PodGroup says it."""
    groups = [group for group in client.list(POD_GROUPS, namespace) if group.metadata.name.startswith(f"{name}-")]
    return next((each.message for group in groups for each in group.status.conditions if each.status == "True"), "")


def pods_of(client: Client, namespace: str, name: str) -> dict[str, str]:
    """UID → node of a gang's pods that are not on their way out."""
    pods = (pod for pod in client.list(PODS, namespace) if pod.metadata.name.startswith(f"{name}-"))
    return {pod.metadata.uid: pod.spec.node_name for pod in pods if not pod.metadata.deletion_timestamp}


def test_a_gang_of_sixteen_nodes_gets_them_and_starts_whole(
    client: Client, namespace: str, wait_for: Wait, made: Made, history: History
) -> None:
    """The cluster was empty; one node is added for each pod, no more, and all pods are bound together."""
    submit(client, namespace, "big", 16)
    wait_for(lambda: runs(client, namespace, "big", 16), PATIENCE_S, "the gang to run")
    assert len({life.node for life in history.of("big")}) == 16
    assert history.half_placed_s("big", 16) < HALF_S
    assert len(autoscaler.nodes(client)) == len(made.names) == 16
