"""Queues as users and existing clients see them."""

from collections.abc import Callable
from typing import Any

import pytest
from jobs import Story, job, task

from muster.api.volcano.batch import COMMANDS, JOBS
from muster.api.volcano.scheduling import QUEUES, Queue
from muster.kube.client import Client
from muster.kube.errors import Invalid

pytestmark = pytest.mark.plane
WaitFor = Callable[..., Any]
MakeQueue = Callable[..., Queue]


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
