"""A tenant who names another team's queue and Kubernetes' own priority class gains nothing: the team's gang stays."""

from collections.abc import Callable
from typing import Any

import pytest
from gang_jobs import RECOVERY_S, job, runs
from tenants import Tenant, pod, uids_of

from muster.api.kubernetes.core import NAMESPACES, PODS, PRIORITY_CLASSES
from muster.api.names import NAMESPACE_SELECTOR, QUEUE, QUEUE_LOCKED
from muster.api.volcano.batch import JOBS
from muster.api.volcano.scheduling import NO_ROOM, POD_GROUPS, QUEUES, PodGroup
from muster.kube.client import Client
from muster.kube.errors import APIError
from musterctl.plane.plane import Plane

CONFIG = """
actions: enqueue, allocate, reclaim, preempt
tiers:
  - plugins: [{name: gang}, {name: priority}, {name: proportion}, {name: predicates}]
"""
CRITICAL = "system-node-critical"
WaitFor = Callable[..., Any]
pytestmark = [pytest.mark.plane, pytest.mark.alone(planning_config=CONFIG)]


@pytest.fixture
def client(plane: Plane) -> Client:
    """A client with all rights, and a class of the team's."""
    client = plane.client()
    body = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "low"}, "value": 1}
    client.apply(PRIORITY_CLASSES, body)
    return client


def make_queue(client: Client, name: str, selector: str = "") -> None:
    """A queue for namespaces with these labels, or for all."""
    said = {"annotations": {NAMESPACE_SELECTOR: selector}} if selector else {}
    client.apply(QUEUES, {"metadata": {"name": name, **said}, "spec": {"weight": 1}})


def a_group(name: str, queue: str) -> dict[str, Any]:
    """A gang of one that calls itself critical."""
    return {"metadata": {"name": name}, "spec": {"minMember": 1, "queue": queue, "priorityClassName": CRITICAL}}


def why(group: PodGroup) -> str:
    """The reason of the condition that says that a gang waits."""
    waits = (each for each in group.status.conditions if each.type == "Unschedulable" and each.status == "True")
    return next((each.reason for each in waits), "")


def test_gang_stays(client: Client, namespace: str, make_tenant: Callable[[str], Tenant], wait_for: WaitFor) -> None:
    """First by its priority, then by the queue, at admission and in the planner."""
    make_queue(client, "vision")
    client.merge_patch(NAMESPACES, namespace, {"metadata": {"labels": {"team": "vision"}}})
    manifest = job("prod", namespace, replicas=8)
    manifest["spec"] |= {"queue": "vision", "priorityClassName": "low"}
    client.create(JOBS, manifest, namespace)
    wait_for(lambda: runs(client, namespace, "prod", 8), RECOVERY_S, "the team's gang")
    before = uids_of(client, namespace)

    greedy = make_tenant("greedy")
    ours = greedy.client
    ours.create(POD_GROUPS, a_group("grab", "vision"), greedy.namespace)
    member = pod("grab", gpus=8, metadata={"annotations": {"scheduling.k8s.io/group-name": "grab"}})
    ours.create(PODS, member, greedy.namespace)
    # The cycle that says so has looked for victims, too.
    wait_for(lambda: why(ours.get(POD_GROUPS, "grab", greedy.namespace)) == NO_ROOM, 30, "the gang that waits for room")
    assert uids_of(client, namespace) == before

    make_queue(client, "vision", "team=vision")
    wait_for(lambda: why(ours.get(POD_GROUPS, "grab", greedy.namespace)) == "QueueNotForNamespace", 30, "it closes")
    refused = "is not allowed to use queue 'vision': queue 'vision' is for namespaces with team=vision"
    with pytest.raises(APIError, match=refused):
        ours.create(POD_GROUPS, a_group("again", "vision"), greedy.namespace)
    labelled = pod("lone", scheduler="muster", metadata={"labels": {QUEUE: "vision"}})
    with pytest.raises(APIError, match="usable queues are: default"):
        ours.create(PODS, labelled, greedy.namespace)
    assert uids_of(client, namespace) == before
    assert runs(client, namespace, "prod", 8)


def test_a_locked_namespace_is_kept(client: Client, make_tenant: Callable[[str], Tenant], wait_for: WaitFor) -> None:
    """A pod's own label is set back, a Job that names another queue is refused."""
    make_queue(client, "ours")
    held = make_tenant("held")
    client.merge_patch(NAMESPACES, held.namespace, {"metadata": {"labels": {QUEUE: "ours", QUEUE_LOCKED: "true"}}})

    def set_back() -> bool:
        """Whether the webhook has seen the labels of the namespace."""
        made = held.client.create(PODS, pod("a", metadata={"labels": {QUEUE: "default"}}), held.namespace)
        found = made.metadata.labels[QUEUE] == "ours"
        held.client.delete(PODS, made.metadata.name, held.namespace)
        return found

    wait_for(set_back, 30, "the webhook")
    manifest = job("j", held.namespace, replicas=1, gpus=0)
    manifest["spec"]["queue"] = "speech"
    make_queue(client, "speech")
    with pytest.raises(APIError, match="the namespace is locked to queue 'ours'"):
        held.client.create(JOBS, manifest, held.namespace)
    manifest["spec"].pop("queue")
    assert held.client.create(JOBS, manifest, held.namespace).spec.queue == "ours"
