"""Two priority classes on a plane, and gangs of them: for tests of who makes way for whom."""

from collections.abc import Iterator
from typing import Any

from gang_jobs import job

from muster.api.kubernetes.core import PRIORITY_CLASSES
from muster.api.muster.placement import PLACEMENTS, Placement
from muster.api.volcano.batch import JOBS
from muster.kube.client import Client
from musterctl.plane.plane import Plane


def make_classes(client: Client) -> None:
    """`low`, and `high`, which preempts it."""
    for name, value in (("low", 1), ("high", 1000)):
        body = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}}
        client.apply(PRIORITY_CLASSES, body | {"value": value})


def client_of(plane: Plane, namespace: str) -> Iterator[Client]:
    """For a fixture: a client, with both classes; afterwards the namespace's Jobs are gone and everything runs."""
    client = plane.client()
    make_classes(client)
    yield client
    plane.mend()
    for one in client.list(JOBS, namespace):
        client.delete(JOBS, one.metadata.name, namespace)


def gang(
    name: str,
    namespace: str,
    priority: str,
    *,
    replicas: int,
    gpus: int = 8,
    queue: str = "default",
    restarts: bool = True,
) -> dict[str, Any]:
    """A Job of one pod per node (of 8 GPUs), which starts again when it loses pods, or has only these made anew."""
    manifest = job(name, namespace, replicas=replicas, gpus=gpus)
    manifest["spec"] |= {
        "priorityClassName": priority,
        "queue": queue,
        "maxRetry": 100,
        "policies": [{"event": "PodEvicted", "action": "RestartJob"}] if restarts else [],
    }
    return manifest


def placement_of(client: Client, namespace: str, name: str) -> Placement | None:
    """The placement of a Job's gang; None before it has one."""
    found = client.list(PLACEMENTS, namespace)
    return next((each for each in found if each.metadata.name.startswith(f"{name}-")), None)
