"""Karpenter, real, buys nodes for gangs of Muster on a cluster without any, and takes them away when they are idle."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from beside import karpenter
from beside.karpenter import Bought, Size
from beside.neighbour import Neighbours
from gangs import History, job, runs

from muster.api.kubernetes.core import PODS
from muster.api.volcano.batch import JOBS
from muster.kube.client import Client
from musterctl.plane import install
from musterctl.plane.plane import Plane

pytestmark = pytest.mark.neighbour
Wait = Callable[..., Any]
SCALE_UP = "muster.dev/scale-up"
SIZES = (Size("gpu.8", price=8.0, cpu=33, gpus=8), Size("gpu.4", price=4.5, cpu=17, gpus=4), Size("cpu.9", 1.0, cpu=9))
PATIENCE_S = 180.0
"""Two windows in which Karpenter gathers pods, the nodes' start, and a machine that does other things, too."""


@pytest.fixture(scope="module")
def scaled(module_plane: Callable[..., Plane], neighbours: Neighbours) -> Plane:
    """A plane without nodes, and Karpenter, which buys none yet as it has no pool."""
    plane = module_plane(nodes=0)
    karpenter.start(plane, neighbours, SIZES)
    return plane


@pytest.fixture
def plane(scaled: Plane) -> Plane:
    """The plane of this module, for the namespace."""
    return scaled


@pytest.fixture
def client(plane: Plane, namespace: str, wait_for: Wait) -> Iterator[Client]:
    """A client; after the test all Jobs, pools and nodes are gone."""
    client = plane.client()
    yield client
    for each in client.list(JOBS, namespace):
        client.delete(JOBS, each.metadata.name, namespace)
    wait_for(lambda: not client.list(PODS, namespace), 60, "the pods to be gone")
    for each in client.list(karpenter.NODE_POOLS):
        client.delete(karpenter.NODE_POOLS, each["metadata"]["name"])
    wait_for(lambda: not karpenter.nodes(client), 60, "the nodes to be gone")


@pytest.fixture
def bought(client: Client) -> Iterator[Bought]:
    """All nodes that the test has bought."""
    with Bought(client) as record:
        yield record


def submit(client: Client, namespace: str, name: str, replicas: int, **options: Any) -> None:
    """A gang that asks autoscalers for its nodes."""
    one = job(name, namespace, replicas=replicas, **options)
    one["metadata"]["annotations"] = {SCALE_UP: "condition"}
    client.create(JOBS, one, namespace)


def test_a_gang_of_sixteen_nodes_gets_them_and_starts_whole(
    client: Client, namespace: str, wait_for: Wait, bought: Bought
) -> None:
    """The cluster was empty; Karpenter buys one node for each pod, no more, and all pods are bound together."""
    install.apply(client, karpenter.pool())
    with History(client, namespace) as history:
        submit(client, namespace, "big", 16)
        wait_for(lambda: runs(client, namespace, "big", 16), PATIENCE_S, "the gang to run")
        assert len({life.node for life in history.of("big")}) == 16
        assert history.half_placed_s("big", 16) < 5
    assert len(karpenter.nodes(client)) == len(bought.names) == 16
