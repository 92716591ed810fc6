"""Queues get their shares of a real plane, at every level, and none exceeds its capability."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from gang_jobs import job

from muster.api.kubernetes.core import PODS
from muster.api.volcano.batch import JOBS
from muster.api.volcano.scheduling import POD_GROUPS, QUEUES, Queue, QueueStatus
from muster.kube.client import Client

pytestmark = [pytest.mark.plane, pytest.mark.alone]
GPUS = 64
"""Of the session's plane."""
WaitFor = Callable[..., Any]
MakeQueue = Callable[..., Queue]


def in_queue(queue: str, manifest: dict[str, Any]) -> dict[str, Any]:
    """The Job, in this queue."""
    manifest["spec"]["queue"] = queue
    return manifest


def bound(client: Client, namespace: str) -> Counter[str]:
    """Pods of the namespace that hold a node, by queue."""
    groups = {group.metadata.name: group.spec.queue for group in client.list(POD_GROUPS, namespace)}
    counts: Counter[str] = Counter()
    for pod in client.list(PODS, namespace):
        if pod.spec.node_name and not pod.finished:
            name = pod.metadata.annotations.get("scheduling.k8s.io/group-name", "")
            counts[groups.get(name, pod.metadata.labels.get("muster.dev/queue", ""))] += 1
    return counts


def holders(client: Client) -> dict[str, int]:
    """Pods of all namespaces that hold a node, by namespace and queue, to tell what is in the way of a share."""
    namespaces = {pod.metadata.namespace for pod in client.list(PODS)}
    counts = {f"{name}: {queue}": number for name in namespaces for queue, number in bound(client, name).items()}
    return dict(sorted(counts.items()))


@pytest.mark.slow
def test_three_levels_settle_at_shares(
    client: Client, namespace: str, make_queue: MakeQueue, wait_for: WaitFor
) -> None:
    """Two departments 3:1; in the larger one, two teams 1:2. All of them always have more to do."""
    large, small = (make_queue(name, weight=weight).metadata.name for name, weight in (("large", 3), ("small", 1)))
    one, two = (
        make_queue(name, parent=large, weight=weight).metadata.name for name, weight in (("one", 1), ("two", 2))
    )
    for number in range(20):
        for name, size in ((one, 4), (two, 4), (small, 4)):
            manifest = job(f"{name.rpartition('-')[2]}-{number}", namespace, replicas=size, gpus=1)
            client.create(JOBS, in_queue(name, manifest), namespace)
    wanted = {one: GPUS * 3 // 4 // 3, two: GPUS * 3 // 4 * 2 // 3, small: GPUS // 4}
    wait_for(lambda: bound(client, namespace) == wanted, 60, lambda: f"{wanted} to be bound of {holders(client)}")
    status = wait_for(lambda: told(client, large), 30, "the shares to be told in the status")
    assert status.fair_share["nvidia.com/gpu"] == str(GPUS * 3 // 4)
    for name in (one, two, small):
        for number in range(2):
            client.delete(JOBS, f"{name.rpartition('-')[2]}-{number}", namespace)
    wait_for(lambda: bound(client, namespace) == wanted, 60, lambda: f"{wanted} again to be bound of {holders(client)}")


def test_a_capability_holds_for_all_pods(
    client: Client, namespace: str, make_queue: MakeQueue, wait_for: WaitFor
) -> None:
    """Plain pods and a gang share it; what is over waits until something ends."""
    team = make_queue("team", capability={"nvidia.com/gpu": 6}).metadata.name
    for number in range(5):
        client.create(PODS, plain_pod(f"plain-{number}", team), namespace)
    wait_for(lambda: bound(client, namespace)[team] == 5, 30, "five plain pods to be bound")
    client.create(JOBS, in_queue(team, job("gang", namespace, replicas=3, gpus=1, min_available=2)), namespace)
    wait_for(lambda: "QueueOverCapability" in reasons(client, namespace), 30, "the gang to say why it waits")
    client.create(PODS, plain_pod("plain-5", team), namespace)
    wait_for(lambda: bound(client, namespace)[team] == 6, 30, "the sixth plain pod to be bound")
    client.create(PODS, plain_pod("plain-6", team), namespace)
    for number in range(4):
        client.delete(PODS, f"plain-{number}", namespace)
    wait_for(lambda: len(gang_nodes(client, namespace)) >= 2, 60, "the gang to start")
    assert bound(client, namespace)[team] <= 6


def told(client: Client, queue: str) -> QueueStatus | None:
    """The status of a queue once its fair share stands there."""
    status = client.get(QUEUES, queue).status
    return status if status.fair_share.get("nvidia.com/gpu") == str(GPUS * 3 // 4) else None


def plain_pod(name: str, queue: str) -> dict[str, Any]:
    """A pod without a gang that asks for a GPU."""
    resources = {"requests": {"cpu": "1"}, "limits": {"nvidia.com/gpu": 1}}
    return {
        "metadata": {"name": name, "labels": {"volcano.sh/queue-name": queue, "muster.dev/queue": queue}},
        "spec": {"schedulerName": "muster", "containers": [{"name": "main", "image": "none", "resources": resources}]},
    }


def reasons(client: Client, namespace: str) -> set[str]:
    """Why gangs of the namespace wait."""
    return {condition.reason for group in client.list(POD_GROUPS, namespace) for condition in group.status.conditions}


def gang_nodes(client: Client, namespace: str) -> list[str]:
    """The nodes of the members of the Job `gang`."""
    pods = client.list(PODS, namespace)
    return [pod.spec.node_name for pod in pods if pod.metadata.name.startswith("gang-") and pod.spec.node_name]
