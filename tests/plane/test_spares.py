"""Spares on a plane: a lost member is back on one of them, whoever borrowed it leaves, and all is told."""

import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from gang_jobs import job, metric, runs
from planes import Muster
from priorities import make_classes

from muster.api import names
from muster.api.kubernetes.core import EVENTS, NODES, PODS, Pod
from muster.api.muster.placement import PLACEMENTS, Placement
from muster.api.volcano.batch import JOBS
from muster.kube.client import Client
from musterctl.plane.plane import Plane
from musterctl.plane.state import EXTENDER

WaitFor = Callable[..., Any]
BACK_S = 30.0
pytestmark = [pytest.mark.plane, pytest.mark.alone(nodes=5)]


@pytest.fixture
def client(plane: Plane, namespace: str, wait_for: WaitFor) -> Iterator[Client]:
    """A client; afterwards the namespace's Jobs are gone, and every node takes pods."""
    client = plane.client()
    yield client
    plane.mend()
    for one in client.list(JOBS, namespace):
        client.delete(JOBS, one.metadata.name, namespace)
    for node in client.list(NODES):
        if node.spec.unschedulable:
            client.merge_patch(NODES, node.metadata.name, {"spec": {"unschedulable": None}})
    wait_for(lambda: not client.list(PODS, namespace), 60, "the pods to be gone")


def submit(
    client: Client, namespace: str, name: str, replicas: int, annotations: dict[str, str], priority: str = ""
) -> None:
    """A gang of one pod per node, which gets lost pods back one by one."""
    manifest = job(name, namespace, replicas=replicas)
    manifest["spec"] |= {"priorityClassName": priority} if priority else {}
    manifest["metadata"]["annotations"] = annotations
    client.create(JOBS, manifest, namespace)


def placement(client: Client, namespace: str, name: str) -> Placement:
    """The placement of a Job's gang."""
    [found] = [each for each in client.list(PLACEMENTS, namespace) if each.metadata.name.startswith(f"{name}-")]
    return found


def pod_of(client: Client, namespace: str, name: str, rank: int) -> Pod:
    """The pod of a rank."""
    return client.get(PODS, f"{name}-worker-{rank}", namespace)


def spares(client: Client, namespace: str, name: str) -> list[str]:
    """The nodes that a gang keeps."""
    return [each.node for each in placement(client, namespace, name).spec.spares]


def lose(client: Client, namespace: str, name: str, rank: int) -> Pod:
    """A member is gone, and its node takes no pods any more; returns the pod."""
    lost = pod_of(client, namespace, name, rank)
    client.merge_patch(NODES, lost.spec.node_name, {"spec": {"unschedulable": True}})
    client.delete(PODS, lost.metadata.name, namespace, uid=lost.metadata.uid, grace_period_s=0)
    return lost


def back(client: Client, namespace: str, lost: Pod) -> Pod | None:
    """The pod of the same name that has a node again."""
    found = next((each for each in client.list(PODS, namespace) if each.metadata.name == lost.metadata.name), None)
    again = found is not None and found.metadata.uid != lost.metadata.uid and found.spec.node_name
    return found if again else None


def test_a_member_comes_to_a_spare(client: Client, namespace: str, wait_for: WaitFor, muster: Muster) -> None:
    """The others go on; nobody else was placed there, and what is missing is told and kept once it is free."""
    submit(client, namespace, "train", 3, {names.SPARES: "1"})
    wait_for(lambda: runs(client, namespace, "train", 3), BACK_S, "the gang to run")
    [spare] = spares(client, namespace, "train")
    assert f"1 spare slot is kept for lost members on {spare}" in muster("explain", "job", "train", "-n", namespace)
    assert "(8 kept as spares)" in muster("queue", "top", "--resource", "nvidia.com/gpu")
    submit(client, namespace, "other", 2, {})
    before = {rank: pod_of(client, namespace, "train", rank).metadata.uid for rank in (0, 2)}
    lost = lose(client, namespace, "train", 1)
    started_s = time.monotonic()
    found = wait_for(lambda: back(client, namespace, lost), BACK_S, "the member to be back")
    sys.stderr.write(f"\na lost rank has a node again after {time.monotonic() - started_s:.2f} s\n")
    taken = {pod_of(client, namespace, "train", rank).spec.node_name for rank in range(3)}
    assert found.spec.node_name == spare or spare in spares(client, namespace, "train")
    assert {rank: pod_of(client, namespace, "train", rank).metadata.uid for rank in (0, 2)} == before
    client.delete(JOBS, "other", namespace)
    client.merge_patch(NODES, lost.spec.node_name, {"spec": {"unschedulable": None}})
    wait_for(lambda: len(spares(client, namespace, "train")) == 1, BACK_S, "another spare")
    assert not taken & set(spares(client, namespace, "train"))


@pytest.mark.slow
def test_borrowers_leave_first(plane: Plane, client: Client, namespace: str, wait_for: WaitFor) -> None:
    """They know where they run; the extender may be killed while they go."""
    submit(client, namespace, "train", 3, {names.SPARES: "2"})
    wait_for(lambda: runs(client, namespace, "train", 3), BACK_S, "the gang to run")
    for name in ("b", "c"):
        submit(client, namespace, name, 1, {names.BORROWS: "true"})
        wait_for(lambda name=name: runs(client, namespace, name, 1), BACK_S, f"{name} to run on a spare")
        assert pod_of(client, namespace, name, 0).metadata.annotations[names.RUNS_ON_SPARE] == "true"
        [loan] = placement(client, namespace, name).spec.borrows
        assert loan.lender == placement(client, namespace, "train").spec.pod_group_uid
    messages = [each.message for each in client.list(EVENTS, namespace) if each.reason == "BorrowsSpares"]
    assert all("it is evicted as soon as one of them loses a member" in each for each in messages)
    assert messages
    running = {name: pod_of(client, namespace, name, 0).metadata.uid for name in ("b", "c")}
    lost = lose(client, namespace, "train", 1)
    plane.part(EXTENDER).kill()
    plane.mend()
    wait_for(lambda: back(client, namespace, lost), 90, "the member to be back")

    def still() -> list[str]:
        pods = {each.metadata.uid for each in client.list(PODS, namespace) if each.spec.node_name}
        return [name for name, uid in running.items() if uid in pods]

    assert len(still()) == 1
    assert metric(plane, "extender", 'muster_queue_spare_seats{queue="default",what="lent"}') >= 1


def test_spares_give_way_before_anybody_is_evicted(client: Client, namespace: str, wait_for: WaitFor) -> None:
    """A gang of a higher priority starts on one of two; the members run on, and the other one stays kept."""
    make_classes(client)
    submit(client, namespace, "train", 3, {names.SPARES: "2"}, "low")
    wait_for(lambda: runs(client, namespace, "train", 3), BACK_S, "the gang to run")
    wait_for(lambda: len(spares(client, namespace, "train")) == 2, BACK_S, "its spares")
    before = [pod_of(client, namespace, "train", rank).metadata.uid for rank in range(3)]
    submit(client, namespace, "urgent", 1, {}, "high")
    wait_for(lambda: runs(client, namespace, "urgent", 1), BACK_S, "the other one to run")
    assert len(spares(client, namespace, "train")) == 1
    assert pod_of(client, namespace, "urgent", 0).spec.node_name not in spares(client, namespace, "train")
    assert [pod_of(client, namespace, "train", rank).metadata.uid for rank in range(3)] == before
    assert not [each for each in client.list(EVENTS, namespace) if each.reason in {"Evict", "Evicted"}]


def test_a_mistake_is_refused(client: Client, namespace: str) -> None:
    """With the field, and how to write it."""
    with pytest.raises(
        Exception, match=r"metadata.annotations\[muster.dev/spares\].*is not a number of spares; write a num"
    ):
        submit(client, namespace, "train", 3, {names.SPARES: "two"})
