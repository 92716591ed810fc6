"""Queues as users and existing clients see them."""

from collections.abc import Callable
from typing import Any

import pytest
from jobs import Story, job, task

from muster.api.base import Resource
from muster.api.kubernetes.core import PODS
from muster.api.volcano.batch import COMMANDS, JOBS
from muster.api.volcano.scheduling import OVER_CAPABILITY, POD_GROUPS, QUEUES, Queue
from muster.kube.client import Client
from muster.kube.errors import Invalid

pytestmark = pytest.mark.plane
WaitFor = Callable[..., Any]
MakeQueue = Callable[..., Queue]
QUOTAS: Resource[dict[str, Any]] = Resource("", "v1", "resourcequotas", "ResourceQuota", dict[str, Any])


def command(client: Client, namespace: str, action: str, target: Queue) -> None:
    """Asks for a queue to be opened or closed."""
    owner = {
        "apiVersion": QUEUES.api_version,
        "kind": "Queue",
        "name": target.metadata.name,
        "uid": target.metadata.uid,
    }
    client.create(COMMANDS, {"metadata": {"generateName": "q-"}, "action": action, "target": owner}, namespace)


def test_a_new_queue_is_usable_at_once(client: Client, namespace: str, make_queue: MakeQueue) -> None:
    """A Job enters it right after it was created; it has its defaults and a parent."""
    made = make_queue("new")
    assert (made.spec.weight, made.spec.reclaimable) == (1, True)
    manifest = job("j", namespace, task("w", 1), queue=made.metadata.name)
    with Story(client, namespace) as story:
        story.create(manifest)


def test_closed_with_what_is_in_it(client: Client, namespace: str, make_queue: MakeQueue, wait_for: WaitFor) -> None:
    """Closing while a gang runs, then Closed; no new Job enters; opened again by another Command."""
    made = make_queue("q")
    name = made.metadata.name
    with Story(client, namespace) as story:
        story.create(job("j", namespace, task("w", 2, cpu="500m"), queue=name))
        wait_for(lambda: story.phase("j") == "Running")
        wait_for(lambda: client.get(QUEUES, name).status.allocated.get("cpu") == "1")
        wait_for(lambda: client.get(QUEUES, name).status.running == 1)
        command(client, namespace, "CloseQueue", made)
        wait_for(lambda: client.get(QUEUES, name).status.state == "Closing")
        client.merge_patch(QUEUES, name, {"spec": {"weight": 3}})
        with pytest.raises(Invalid, match=f"queue `{name}` status is `Closing`"):
            story.create(job("k", namespace, task("w", 1), queue=name))
        client.delete(JOBS, "j", namespace)
        wait_for(lambda: client.get(QUEUES, name).status.state == "Closed")
        wait_for(lambda: client.get(QUEUES, name).status.allocated.get("cpu") == "0")
        command(client, namespace, "OpenQueue", made)
        wait_for(lambda: client.get(QUEUES, name).status.state == "Open")
        wait_for(lambda: not client.list(COMMANDS, namespace))


def test_members_that_the_queue_cannot_hold_use_no_quota(
    client: Client, namespace: str, make_queue: MakeQueue, wait_for: WaitFor
) -> None:
    """Of 12 members, the queue holds 4. At most two more exist, so the quota of 7 pods has one left for others."""
    name = make_queue("small", capability={"cpu": "400m"}).metadata.name
    client.create(QUOTAS, {"metadata": {"name": "pods"}, "spec": {"hard": {"pods": "7"}}}, namespace)

    def waits_for_the_queue() -> bool:
        waits = [each.status.true_condition("Unschedulable") for each in client.list(POD_GROUPS, namespace)]
        return any(each and each.reason == OVER_CAPABILITY for each in waits)

    def running(prefix: str) -> int:
        names = [each.metadata.name for each in client.list(PODS, namespace) if each.status.phase == "Running"]
        return sum(each.startswith(prefix) for each in names)

    with Story(client, namespace) as story:
        story.create(job("large", namespace, task("w", 12), queue=name, minAvailable=2))
        wait_for(lambda: running("large") == 4)
        wait_for(waits_for_the_queue)
        story.create(job("other", namespace, task("w", 1)))
        wait_for(lambda: running("other") == 1)
        assert len(client.list(PODS, namespace)) <= 7
        client.delete(QUOTAS, "pods", namespace)
        client.merge_patch(QUEUES, name, {"spec": {"capability": {"cpu": "1200m"}}})
        wait_for(lambda: running("large") == 12)
