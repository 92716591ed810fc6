"""What happens between plan and binding: a gang whose placement fails is planned again and runs whole."""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from gangs import History, job, metric

from muster.api.batch import JOBS
from muster.api.core import LEASES, NODES, PODS
from muster.api.names import SCHEDULER_LEASE, SYSTEM_NAMESPACE
from muster.api.placement import PLACEMENTS, Placement
from muster.api.scheduling import POD_GROUPS
from muster.kube.client import Client
from muster.kube.errors import NotFound
from muster.local.plane import Plane

pytestmark = pytest.mark.plane
RECOVERY_S = 90.0


@pytest.fixture
def client(plane: Plane) -> Iterator[Client]:
    """A client; afterwards everything runs again and every node is schedulable."""
    client = plane.client()
    yield client
    plane.start()
    for node in client.list(NODES):
        if node.spec.unschedulable:
            client.merge_patch(NODES, node.metadata.name, {"spec": {"unschedulable": None}})


@pytest.fixture
def planned(
    plane: Plane, client: Client, namespace: str, wait_for: Callable[..., Any]
) -> Callable[[int, int], Placement]:
    """Stops kube-scheduler and submits a gang: its placement stands, its pods are pinned, none is bound.

    The extender plans on while kube-scheduler's lease lasts.
    """

    def make(replicas: int, gpus: int) -> Placement:
        wait_for(lambda: metric(plane, "extender", "muster_leading") == 1, 30, "the extender to lead")
        plane.part("muster-scheduler").kill()
        client.create(JOBS, job("gang", namespace, replicas=replicas, gpus=gpus), namespace)
        wait_for(lambda: len(client.list(PODS, namespace)) == replicas, 30, "the pods")
        placement: Placement = client.list(PLACEMENTS, namespace)[0]
        return placement

    return make


def successor(plane: Plane, client: Client) -> None:
    """Start kube-scheduler again without waiting until the lease of the dead one runs out."""
    with contextlib.suppress(NotFound):
        client.delete(LEASES, SCHEDULER_LEASE, SYSTEM_NAMESPACE)
    plane.part("muster-scheduler").start()


def runs(client: Client, namespace: str, replicas: int) -> bool:
    """Whether the Job runs with all its pods."""
    status = client.get(JOBS, "gang", namespace).status
    return status.state.phase == "Running" and status.running == replicas


def epoch(client: Client, namespace: str) -> int:
    """The epoch of the gang's placement; 0 if there is none."""
    return max((placement.spec.epoch for placement in client.list(PLACEMENTS, namespace)), default=0)


def nodes_of_pods(client: Client, namespace: str) -> set[str]:
    """Where pods are bound."""
    return {pod.spec.node_name for pod in client.list(PODS, namespace) if pod.spec.node_name}


def test_a_node_that_is_cordoned_before_the_binding_is_not_used(
    plane: Plane, client: Client, namespace: str, planned: Callable[..., Placement], wait_for: Callable[..., Any]
) -> None:
    """The placement is abandoned, pinned pods are deleted, the next epoch goes elsewhere."""
    first = planned(4, 8)
    cordoned = first.spec.pod_sets[0].runs[0].node
    with History(client, namespace) as history:
        client.merge_patch(NODES, cordoned, {"spec": {"unschedulable": True}})
        wait_for(lambda: epoch(client, namespace) > first.spec.epoch, 30, "a new placement")
        successor(plane, client)
        wait_for(lambda: runs(client, namespace, 4), RECOVERY_S, "the gang to run")
        assert cordoned not in nodes_of_pods(client, namespace)
        assert history.half_placed_s("gang-", 4) < 10
    client.delete(JOBS, "gang", namespace)


def test_a_slot_that_somebody_else_takes_is_given_up(
    plane: Plane, client: Client, namespace: str, planned: Callable[..., Placement], wait_for: Callable[..., Any]
) -> None:
    """A pod that was bound by another hand holds the GPUs of a planned node."""
    first = planned(4, 8)
    stolen = first.spec.pod_sets[0].runs[0].node
    thief = {
        "metadata": {"name": "thief"},
        "spec": {
            "nodeName": stolen,
            "containers": [{"name": "main", "image": "none", "resources": {"limits": {"nvidia.com/gpu": 1}}}],
        },
    }
    client.create(PODS, thief, namespace)
    successor(plane, client)
    wait_for(lambda: runs(client, namespace, 4), RECOVERY_S, "the gang to run")
    members = [pod for pod in client.list(PODS, namespace) if pod.metadata.name != "thief"]
    assert stolen not in {pod.spec.node_name for pod in members}
    assert epoch(client, namespace) > first.spec.epoch
    client.delete(JOBS, "gang", namespace)


def test_a_placement_that_somebody_deletes_is_made_again(
    plane: Plane, client: Client, namespace: str, planned: Callable[..., Placement], wait_for: Callable[..., Any]
) -> None:
    """With a later epoch than that of the pods that are pinned already."""
    first = planned(4, 8)
    client.delete(PLACEMENTS, first.metadata.name, namespace)
    successor(plane, client)
    wait_for(lambda: runs(client, namespace, 4), RECOVERY_S, "the gang to run")
    client.delete(JOBS, "gang", namespace)


def test_a_placement_that_somebody_edits_does_no_harm(
    plane: Plane, client: Client, namespace: str, planned: Callable[..., Placement], wait_for: Callable[..., Any]
) -> None:
    """All members on one node, says the edit; the pods are pinned elsewhere, so they are planned again."""
    first = planned(4, 8)
    node = first.spec.pod_sets[0].runs[0].node
    spec = {"podSets": [{"name": "worker", "runs": [{"node": node, "count": 4}]}]}
    client.merge_patch(PLACEMENTS, first.metadata.name, {"spec": spec}, namespace)
    successor(plane, client)
    with History(client, namespace) as history:
        wait_for(lambda: runs(client, namespace, 4), RECOVERY_S, "the gang to run")
        alive = [life for life in history.of("gang-") if life.gone is None]
        assert len({life.node for life in alive}) == 4
    client.delete(JOBS, "gang", namespace)


def test_a_pod_group_that_somebody_deletes_is_made_again(
    plane: Plane, client: Client, namespace: str, planned: Callable[..., Placement], wait_for: Callable[..., Any]
) -> None:
    """Its placement goes with it; a new one follows."""
    first = planned(4, 8)
    client.delete(POD_GROUPS, first.metadata.name, namespace)
    successor(plane, client)
    wait_for(lambda: runs(client, namespace, 4), RECOVERY_S, "the gang to run")
    client.delete(JOBS, "gang", namespace)


def test_a_member_that_is_deleted_on_its_way_comes_again(
    plane: Plane, client: Client, namespace: str, planned: Callable[..., Placement], wait_for: Callable[..., Any]
) -> None:
    """Its seat is still held."""
    planned(4, 8)
    victim = client.list(PODS, namespace)[0]
    client.delete(PODS, victim.metadata.name, namespace, uid=victim.metadata.uid)
    successor(plane, client)
    wait_for(lambda: runs(client, namespace, 4), RECOVERY_S, "the gang to run")
    client.delete(JOBS, "gang", namespace)


def test_the_api_server_goes_away_in_the_middle_of_a_gang(
    plane: Plane, client: Client, namespace: str, wait_for: Callable[..., Any]
) -> None:
    """Everybody waits for it and goes on."""
    client.create(JOBS, job("gang", namespace, replicas=32, gpus=2), namespace)
    wait_for(lambda: client.list(PODS, namespace), 30, "the first pod")
    plane.part("kube-apiserver").kill()
    plane.part("kube-apiserver").start()
    plane.wait_ready("kube-apiserver")
    with History(client, namespace) as history:
        wait_for(lambda: runs(client, namespace, 32), RECOVERY_S, "the gang to run")
        alive = [life for life in history.of("gang-") if life.gone is None]
        assert sorted(life.member.index for life in alive if life.member) == list(range(32))
    client.delete(JOBS, "gang", namespace)
