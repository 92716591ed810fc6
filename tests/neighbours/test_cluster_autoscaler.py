"""cluster-autoscaler, real, adds nodes for gangs of Muster on a cluster without any, and takes away idle ones."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from beside import autoscaler, writes
from beside.autoscaler import Autoscaler, Group, Made
from beside.neighbour import Neighbours
from beside.scaled import pods_of, words_of
from gang_jobs import History, job, runs

from muster.api.kubernetes.autoscaling import PROVISIONING_REQUESTS
from muster.api.kubernetes.core import NODES, PODS
from muster.api.names import SAFE_TO_EVICT, SCALE_UP, SCALE_UP_CLASS, SCALE_UP_TIMEOUT
from muster.api.volcano.batch import JOBS
from muster.api.volcano.scheduling import QUEUES
from muster.kube.client import Client
from musterctl.plane.plane import Plane

pytestmark = pytest.mark.neighbour
Wait = Callable[..., Any]
GPUS = Group("gpu.8", limit=16)
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


def submit(client: Client, namespace: str, name: str, replicas: int, **options: Any) -> None:
    """A gang that asks for its nodes: by the condition of its pods, unless `asks` says otherwise."""
    annotations = {SCALE_UP: "condition", **options.pop("asks", {})}
    queue = options.pop("queue", "default")
    one = job(name, namespace, replicas=replicas, **options)
    one["metadata"]["annotations"] = annotations
    one["spec"]["queue"] = queue
    client.create(JOBS, one, namespace)


def test_a_gang_gets_its_nodes(client: Client, namespace: str, wait_for: Wait, made: Made, history: History) -> None:
    """The cluster was empty; one node is added for each pod, no more, and all pods are bound together."""
    submit(client, namespace, "big", 16)
    wait_for(lambda: runs(client, namespace, "big", 16), PATIENCE_S, "the gang to run")
    assert len({life.node for life in history.of("big")}) == 16
    assert history.half_placed_s("big", 16) < HALF_S
    assert len(autoscaler.nodes(client)) == len(made.names) == 16


def test_nodes_go_when_their_gang_has_ended(client: Client, namespace: str, wait_for: Wait, history: History) -> None:
    """What is empty for seconds is taken away; the nodes of a gang that runs are not."""
    submit(client, namespace, "stays", 3)
    wait_for(lambda: runs(client, namespace, "stays", 3), PATIENCE_S, "the gang to run")
    before = pods_of(client, namespace, "stays")
    submit(client, namespace, "ends", 4, run_s=15)
    wait_for(lambda: len(autoscaler.nodes(client)) == 7, PATIENCE_S, "the other's nodes to come")
    wait_for(lambda: len(autoscaler.nodes(client)) == 3, PATIENCE_S, "and to go")
    assert pods_of(client, namespace, "stays") == before
    assert {node.metadata.name for node in autoscaler.nodes(client)} == set(before.values())
    assert history.half_placed_s("ends", 4) < HALF_S


def test_no_running_gang_is_saved_away(
    scaler: Autoscaler, client: Client, namespace: str, wait_for: Wait, queue: str
) -> None:
    """Two pods on two nodes would do with one: they forbid it, and when their queue does not, their pins do."""
    submit(client, namespace, "wide", 2, gpus=5)
    wait_for(lambda: runs(client, namespace, "wide", 2), PATIENCE_S, "two nodes")
    submit(client, namespace, "slim", 2, gpus=3, queue=queue)
    wait_for(lambda: runs(client, namespace, "slim", 2), PATIENCE_S, "the gang to run beside the other")
    before = pods_of(client, namespace, "slim")
    nodes = set(before.values())
    assert len(nodes) == 2
    client.delete(JOBS, "wide", namespace)
    wait_for(lambda: nodes <= scaler.forbidden(), PATIENCE_S, "autoscaler to refrain")
    assert not nodes & scaler.placeless()
    client.merge_patch(QUEUES, queue, {"metadata": {"annotations": {SAFE_TO_EVICT: "true"}}})
    wait_for(lambda: nodes <= scaler.placeless(), PATIENCE_S, "autoscaler to look for other nodes")
    assert pods_of(client, namespace, "slim") == before
    assert {node.metadata.name for node in autoscaler.nodes(client)} == nodes


def test_a_gang_meets_nodes_on_their_way_out(client: Client, namespace: str, wait_for: Wait, history: History) -> None:
    """Autoscaler marks idle nodes and takes them away: a gang that comes then gets others, and no pod is lost."""
    submit(client, namespace, "first", 3, run_s=1)
    wait_for(lambda: autoscaler.going(client), PATIENCE_S, "autoscaler to begin to take nodes away")
    submit(client, namespace, "second", 3)
    wait_for(lambda: runs(client, namespace, "second", 3), PATIENCE_S, "the second gang to run")
    assert len(history.of("second")) == 3, "a pod was evicted and made anew"
    assert history.half_placed_s("second", 3) < HALF_S


def test_a_node_that_dies_is_added_again(client: Client, namespace: str, wait_for: Wait, made: Made) -> None:
    """The members that were lost ask for one node, and no more."""
    submit(client, namespace, "loses", 3)
    wait_for(lambda: runs(client, namespace, "loses", 3), PATIENCE_S, "the gang to run")
    before = pods_of(client, namespace, "loses")
    client.delete(NODES, next(iter(before.values())))
    wait_for(lambda: pods_of(client, namespace, "loses").keys() != before.keys(), PATIENCE_S, "a pod to be lost")
    wait_for(lambda: sum(map(bool, pods_of(client, namespace, "loses").values())) == 3, PATIENCE_S, "all to have nodes")
    wait_for(lambda: runs(client, namespace, "loses", 3), PATIENCE_S, "the gang to run again")
    assert len(made.names) == 4


def test_a_gang_larger_than_the_group_gets_part_of_its_nodes_for_a_while_only(
    plane: Plane, client: Client, namespace: str, wait_for: Wait, made: Made, history: History
) -> None:
    """One node more than there may be: the gang starts nothing, gives up, and its nodes are taken away again."""
    submit(client, namespace, "large", GPUS.limit + 1, asks={SCALE_UP_TIMEOUT: "60s"})
    wait_for(lambda: len(made.names) == GPUS.limit, PATIENCE_S, "what the group may have")
    wait_for(lambda: "rests for" in words_of(client, namespace, "large"), PATIENCE_S, "the gang to give up")
    wait_for(lambda: not autoscaler.nodes(client), PATIENCE_S, "the nodes to go again")
    assert history.half_placed_s("large", GPUS.limit + 1) == 0
    assert writes.loops(plane, namespace) == []


def test_a_request_gets_all_its_nodes(
    client: Client, namespace: str, wait_for: Wait, made: Made, history: History
) -> None:
    """Autoscaler provisions the ProvisioningRequest that Muster made; the gang starts whole, and the request goes."""
    submit(client, namespace, "asks", 6, asks={SCALE_UP: "provisioning-request"})
    wait_for(lambda: runs(client, namespace, "asks", 6), PATIENCE_S, "the gang to run")
    assert history.half_placed_s("asks", 6) < HALF_S
    assert len(autoscaler.nodes(client)) == len(made.names) == 6
    wait_for(lambda: not client.list(PROVISIONING_REQUESTS, namespace), PATIENCE_S, "the request to be deleted")


def test_an_impossible_request_costs_nothing(client: Client, namespace: str, wait_for: Wait, made: Made) -> None:
    """17 nodes of 16: autoscaler adds none of them, and its answer is told to the gang's owner."""
    submit(client, namespace, "large", GPUS.limit + 1, asks={SCALE_UP: "provisioning-request"})
    wait_for(lambda: "Capacity is not found" in words_of(client, namespace, "large"), PATIENCE_S, "it to be told")
    assert not made.names


def test_capacity_is_checked_by_a_check_capacity_class(
    client: Client, namespace: str, wait_for: Wait, made: Made, queue: str
) -> None:
    """With check-capacity autoscaler says that there are no such nodes, and adds none."""
    checks = {SCALE_UP: "provisioning-request", SCALE_UP_CLASS: "check-capacity.autoscaling.x-k8s.io"}
    client.merge_patch(QUEUES, queue, {"metadata": {"annotations": checks}})
    submit(client, namespace, "checks", 2, queue=queue)
    wait_for(lambda: "Capacity is not found" in words_of(client, namespace, "checks"), PATIENCE_S, "the first answer")
    assert not made.names
