"""Karpenter, real, buys nodes for gangs of Muster on a cluster without any, and takes them away when they are idle."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from beside import karpenter, writes
from beside.karpenter import Bought, Size
from beside.neighbour import Neighbours
from beside.scaled import pods_of, words_of
from gang_jobs import History, job, runs

from muster.api.kubernetes.core import EVENTS, INDEXED_JOBS, PODS
from muster.api.names import QUEUE, SAFE_TO_EVICT, SCALE_UP, SCALE_UP_TIMEOUT, TOPOLOGY_REQUIRED
from muster.api.volcano.batch import JOBS
from muster.api.volcano.scheduling import QUEUES
from muster.kube.client import Client
from musterctl.plane.plane import Plane

pytestmark = pytest.mark.neighbour
Wait = Callable[..., Any]
GPU = "nvidia.com/gpu"
LARGE, SMALL = Size("gpu.8", price=8.0, cpu=33, gpus=8), Size("gpu.6", price=5.0, cpu=25, gpus=6)
CPUS = Size("cpu.9", price=1.0, cpu=9)
PATIENCE_S = 180.0
"""Two windows in which Karpenter gathers pods, the nodes' start, and a machine that does other things, too."""
HALF_S = 5.0
"""Members are bound one after the other, which takes a moment on a busy machine."""


@pytest.fixture(scope="module")
def scaled(module_plane: Callable[..., Plane], neighbours: Neighbours) -> Plane:
    """A plane without nodes, and Karpenter, which buys none yet as it has no pool."""
    patient = {"controller": {"leaseDuration": 60.0}}  # nobody starts it again, if a busy machine costs it its Lease
    plane = module_plane(nodes=0, settings=patient)
    karpenter.start(plane, neighbours, (LARGE, SMALL, CPUS))
    return plane


@pytest.fixture
def plane(scaled: Plane) -> Plane:
    """The plane of this module, for the namespace."""
    return scaled


@pytest.fixture
def client(plane: Plane, namespace: str, wait_for: Wait) -> Iterator[Client]:
    """A client; after the test all Jobs, pools and nodes are gone, and Muster has refused nothing."""
    client = plane.client()
    yield client
    for each in client.list(JOBS, namespace):
        client.delete(JOBS, each.metadata.name, namespace)
    for one in client.list(INDEXED_JOBS, namespace):
        client.delete(INDEXED_JOBS, one.metadata.name, namespace, propagation="Background")
    wait_for(lambda: not client.list(PODS, namespace), 60, "the pods to be gone")
    for each in client.list(karpenter.NODE_POOLS):
        client.delete(karpenter.NODE_POOLS, each["metadata"]["name"])
    wait_for(lambda: not karpenter.nodes(client), 60, "the nodes to be gone")
    assert not any(writes.refused(plane).values())


@pytest.fixture
def bought(client: Client) -> Iterator[Bought]:
    """All nodes that the test has bought."""
    with Bought(client) as record:
        yield record


def asking(name: str, namespace: str, replicas: int, *, timeout: str = "15m", **options: Any) -> dict[str, Any]:
    """A gang that asks autoscalers for its nodes, for so long."""
    one = job(name, namespace, replicas=replicas, **options)
    one["metadata"]["annotations"] = {SCALE_UP: "condition", SCALE_UP_TIMEOUT: timeout}
    return one


def submit(client: Client, namespace: str, name: str, replicas: int, **options: Any) -> None:
    """Creates it."""
    client.create(JOBS, asking(name, namespace, replicas, **options), namespace)


def told(client: Client, reason: str, word: str = "") -> set[str]:
    """Names of objects of which Events tell this reason and word."""
    found = client.list(EVENTS)
    return {event.involved_object["name"] for event in found if event.reason == reason and word in event.message}


def nodes_of(client: Client, namespace: str, name: str) -> set[str]:
    """The nodes of a gang's pods that are not on their way out."""
    return {node for node in pods_of(client, namespace, name).values() if node}


def bound(history: History, name: str) -> int:
    """How many pods of a gang have had a node."""
    return sum(life.bound is not None for life in history.of(name))


def ended(history: History, name: str) -> int:
    """How many pods of a gang have succeeded."""
    return sum(life.done for life in history.of(name))


def test_a_gang_gets_its_nodes(
    client: Client, namespace: str, wait_for: Wait, bought: Bought, history: History
) -> None:
    """The cluster was empty; Karpenter buys one node for each pod, no more, and all pods are bound together."""
    karpenter.pool(client, LARGE)
    submit(client, namespace, "big", 16)
    wait_for(lambda: runs(client, namespace, "big", 16), PATIENCE_S, "the gang to run")
    assert len({life.node for life in history.of("big")}) == 16
    assert history.half_placed_s("big", 16) < HALF_S
    assert len(karpenter.nodes(client)) == len(bought.names) == 16


def test_two_gangs_of_one_queue_get_their_nodes_one_after_the_other(
    client: Client, namespace: str, wait_for: Wait, bought: Bought, history: History
) -> None:
    """The second asks when the first has started; nobody pays for more than both need."""
    karpenter.pool(client, LARGE)
    submit(client, namespace, "one", 4)
    submit(client, namespace, "two", 3)
    wait_for(lambda: runs(client, namespace, "one", 4) and runs(client, namespace, "two", 3), PATIENCE_S, "both")
    assert history.half_placed_s("one", 4) < HALF_S
    assert history.half_placed_s("two", 3) < HALF_S
    assert len(bought.names) == 7


def test_two_queues_ask_at_once_beside_a_gang_that_does_not(
    client: Client, namespace: str, wait_for: Wait, queue: str, bought: Bought, history: History
) -> None:
    """Karpenter buys for both; what the silent one takes of it is bought once more, and nothing else is."""
    karpenter.pool(client, LARGE)
    client.create(JOBS, job("silent", namespace, replicas=3), namespace)
    one = asking("one", namespace, 4, run_s=20)
    one["spec"]["queue"] = queue
    client.create(JOBS, one, namespace)
    submit(client, namespace, "two", 3)
    for name, pods in (("one", 4), ("two", 3), ("silent", 3)):
        wait_for(lambda pods=pods, name=name: bound(history, name) == pods, PATIENCE_S, f"the gang {name}")
        assert history.half_placed_s(name, pods) < HALF_S
    assert 7 <= len(bought.names) <= 10


def test_a_gang_of_cpus_is_packed_onto_the_nodes_that_karpenter_chose(
    client: Client, namespace: str, wait_for: Wait, bought: Bought, history: History
) -> None:
    """Two pods of 4 CPUs on each node of 9: Karpenter counts with whole nodes, and Muster uses them as it meant."""
    karpenter.pool(client, CPUS)
    submit(client, namespace, "cpus", 8, gpus=0, cpu="4")
    wait_for(lambda: runs(client, namespace, "cpus", 8), PATIENCE_S, "the gang to run")
    assert history.half_placed_s("cpus", 8) < HALF_S
    assert len(bought.names) == 4


def test_a_gang_that_no_node_could_hold_is_told_so_and_costs_nothing(
    plane: Plane, client: Client, namespace: str, wait_for: Wait, bought: Bought
) -> None:
    """Karpenter has no such size, and says so; a gang behind it gets its nodes when the first has asked in vain."""
    karpenter.pool(client, LARGE)
    submit(client, namespace, "never", 2, gpus=16, timeout="20s")
    wait_for(lambda: "never-worker-0" in told(client, "FailedScheduling"), PATIENCE_S, "Karpenter to have looked")
    assert "nodes" in words_of(client, namespace, "never")
    submit(client, namespace, "behind", 2)
    assert not bought.names
    wait_for(lambda: "rests for" in words_of(client, namespace, "never"), PATIENCE_S, "the first to give up")
    wait_for(lambda: runs(client, namespace, "behind", 2), PATIENCE_S, "the gang behind it to run")
    assert len(bought.names) == 2
    assert writes.loops(plane, namespace) == []


def test_nodes_go_when_their_gang_has_ended(client: Client, namespace: str, wait_for: Wait, history: History) -> None:
    """Karpenter takes away what is empty for a second, and consolidates the rest: it may not touch a running gang."""
    karpenter.pool(client, LARGE, consolidate_after="1s")
    submit(client, namespace, "stays", 3, gpus=5)
    submit(client, namespace, "ends", 4, run_s=15)
    wait_for(lambda: runs(client, namespace, "stays", 3), PATIENCE_S, "the gang to run")
    before = pods_of(client, namespace, "stays")
    wait_for(lambda: len(karpenter.nodes(client)) == 7, PATIENCE_S, "the other's nodes to come")
    wait_for(lambda: len(karpenter.nodes(client)) == 3, PATIENCE_S, "and to go")
    assert pods_of(client, namespace, "stays") == before
    assert {node.metadata.name for node in karpenter.nodes(client)} == set(before.values())
    assert history.half_placed_s("ends", 4) < HALF_S


def test_a_gang_meets_nodes_on_their_way_out(client: Client, namespace: str, wait_for: Wait, history: History) -> None:
    """Karpenter marks idle nodes, waits, and takes them away: one gang comes before the end of that, one after."""
    karpenter.pool(client, LARGE, consolidate_after="1s")
    submit(client, namespace, "first", 4, run_s=1)
    wait_for(lambda: len(karpenter.consolidatable(client)) == 4, PATIENCE_S, "Karpenter to mark the idle nodes")
    submit(client, namespace, "second", 4, run_s=1)
    wait_for(lambda: ended(history, "second") == 4, PATIENCE_S, "the second gang")
    wait_for(lambda: karpenter.going(client), PATIENCE_S, "Karpenter to begin to take nodes away")
    submit(client, namespace, "third", 4, run_s=1)
    wait_for(lambda: ended(history, "third") == 4, PATIENCE_S, "the third gang")
    for name in ("second", "third"):
        assert len(history.of(name)) == 4, "a pod was evicted and made anew"
        assert history.half_placed_s(name, 4) < HALF_S


def test_a_node_that_dies_is_bought_again(client: Client, namespace: str, wait_for: Wait, bought: Bought) -> None:
    """The members that were lost ask for one node, and no more."""
    karpenter.pool(client, LARGE)
    submit(client, namespace, "loses", 3)
    wait_for(lambda: runs(client, namespace, "loses", 3), PATIENCE_S, "the gang to run")
    before = pods_of(client, namespace, "loses")
    karpenter.kill(client, next(iter(before.values())))
    wait_for(lambda: pods_of(client, namespace, "loses").keys() != before.keys(), PATIENCE_S, "a pod to be lost")
    wait_for(lambda: runs(client, namespace, "loses", 3), PATIENCE_S, "the gang to run again")
    wait_for(lambda: len(nodes_of(client, namespace, "loses")) == 3, PATIENCE_S, "all to have nodes")
    assert len(bought.names) == 4


def test_running_gangs_are_not_saved_away(client: Client, namespace: str, wait_for: Wait, queue: str) -> None:
    """A smaller node would do for each pod: Karpenter says that the pods forbid it, until their queue allows it."""
    karpenter.pool(client, LARGE, consolidate_after="1s")
    one = asking("trains", namespace, 3, gpus=5)
    one["spec"]["queue"] = queue
    client.create(JOBS, one, namespace)
    wait_for(lambda: runs(client, namespace, "trains", 3), PATIENCE_S, "the gang to run")
    before = pods_of(client, namespace, "trains")
    karpenter.pool(client, LARGE, SMALL, consolidate_after="1s")
    nodes = set(before.values())
    wait_for(lambda: nodes <= told(client, "DisruptionBlocked", "do-not-disrupt"), PATIENCE_S, "Karpenter to refrain")
    assert pods_of(client, namespace, "trains") == before
    client.merge_patch(QUEUES, queue, {"metadata": {"annotations": {SAFE_TO_EVICT: "true"}}})
    wait_for(lambda: before.keys() - pods_of(client, namespace, "trains").keys(), PATIENCE_S, "a pod to be moved")
    wait_for(lambda: runs(client, namespace, "trains", 3), PATIENCE_S, "the gang to run again")


def test_nodes_of_an_indexed_job_are_not_replaced_before_it_ends(
    client: Client, namespace: str, wait_for: Wait, bought: Bought, history: History
) -> None:
    """Kubernetes' own Job asks by its labels; when the pool changes, its nodes have drifted and stay all the same."""
    karpenter.pool(client, LARGE)
    template = job("plain", namespace, replicas=3)["spec"]["tasks"][0]["template"]
    template["metadata"]["labels"] = {QUEUE: "default", SCALE_UP: "condition"}
    spec = {"completionMode": "Indexed", "completions": 3, "parallelism": 3, "template": template}
    metadata = {"name": "plain", "labels": {QUEUE: "default"}}
    client.create(INDEXED_JOBS, {"metadata": metadata, "spec": spec}, namespace)
    wait_for(lambda: sum(map(bool, pods_of(client, namespace, "plain").values())) == 3, PATIENCE_S, "the gang to run")
    before = pods_of(client, namespace, "plain")
    assert len(bought.names) == 3
    karpenter.pool(client, LARGE, labels={"generation": "2"})
    nodes = set(before.values())
    wait_for(lambda: nodes <= told(client, "DisruptionBlocked", "do-not-disrupt"), PATIENCE_S, "Karpenter to refrain")
    assert pods_of(client, namespace, "plain") == before
    assert history.half_placed_s("", 3) < HALF_S


def test_nodes_that_expire_wait(
    client: Client, namespace: str, wait_for: Wait, bought: Bought, history: History
) -> None:
    """Karpenter closes them when their time is over, and the gang runs to its end on them."""
    karpenter.pool(client, LARGE, expire_after="45s")
    submit(client, namespace, "long", 2, run_s=90)
    wait_for(lambda: bound(history, "long") == 2, PATIENCE_S, "the gang to start")
    nodes = {life.node for life in history.of("long")}
    wait_for(lambda: nodes <= set(karpenter.going(client)), PATIENCE_S, "both nodes to be closed")
    assert ended(history, "long") == 0
    wait_for(lambda: ended(history, "long") == 2, PATIENCE_S, "the gang to end")
    assert len(history.of("long")) == 2, "a pod was evicted and made anew"
    assert len(bought.names) == 2


def test_a_gang_larger_than_the_pool_may_grow_gets_part_of_its_nodes_for_a_while_only(
    plane: Plane, client: Client, namespace: str, wait_for: Wait, bought: Bought, history: History
) -> None:
    """The pool ends at two nodes, the gang wants four: it starts nothing, and what was bought is taken away again."""
    karpenter.pool(client, LARGE, consolidate_after="1s", **{GPU: 16})
    submit(client, namespace, "wide", 4, timeout="20s")
    wait_for(lambda: len(bought.names) == 2, PATIENCE_S, "what the pool may buy")
    wait_for(lambda: "rests for" in words_of(client, namespace, "wide"), PATIENCE_S, "the gang to give up")
    wait_for(lambda: not karpenter.nodes(client), PATIENCE_S, "the nodes to go again")
    assert history.half_placed_s("wide", 4) == 0
    assert writes.loops(plane, namespace) == []


def test_a_gang_of_one_zone_gets_its_nodes_there_if_its_pods_say_so(
    client: Client, namespace: str, wait_for: Wait, bought: Bought, history: History
) -> None:
    """Karpenter does not know Muster's topology, and does know a pod affinity: it buys all nodes in one zone."""
    karpenter.pool(client, LARGE)
    one = asking("near", namespace, 4)
    one["metadata"]["annotations"][TOPOLOGY_REQUIRED] = karpenter.ZONE
    template = one["spec"]["tasks"][0]["template"]
    template["metadata"]["labels"] = {"gang": "near"}
    together = {"labelSelector": {"matchLabels": {"gang": "near"}}, "topologyKey": karpenter.ZONE}
    template["spec"]["affinity"] = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [together]}}
    client.create(JOBS, one, namespace)
    wait_for(lambda: runs(client, namespace, "near", 4), PATIENCE_S, "the gang to run")
    assert len({node.metadata.labels[karpenter.ZONE] for node in karpenter.nodes(client)}) == 1
    assert history.half_placed_s("near", 4) < HALF_S
    assert len(bought.names) == 4


def test_nodes_in_the_wrong_zones_do_not_come_and_go_for_ever(
    plane: Plane, client: Client, namespace: str, wait_for: Wait, bought: Bought, history: History
) -> None:
    """Without an affinity it is chance which nodes are near each other: after one round the gang rests."""
    karpenter.pool(client, LARGE, consolidate_after="1s")
    one = asking("apart", namespace, 9)
    one["metadata"]["annotations"][TOPOLOGY_REQUIRED] = karpenter.ZONE
    client.create(JOBS, one, namespace)
    wait_for(lambda: len(karpenter.nodes(client)) == 9, PATIENCE_S, "the nodes")
    wait_for(lambda: not karpenter.nodes(client), PATIENCE_S, "the nodes to go again")
    wait_for(lambda: "rests for" in words_of(client, namespace, "apart"), PATIENCE_S, "the gang to rest")
    assert len(bought.names) == 9
    assert history.half_placed_s("apart", 9) == 0
    assert writes.loops(plane, namespace) == []
