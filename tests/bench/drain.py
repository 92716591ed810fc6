"""How fast a backlog of gangs drains, against plain pods of a stock kube-scheduler, in turns in one run.

Both start with the backlog before them; time counts from the first binding to the last. Muster's share holds all it
does for a gang whose pods exist: plan, placement, gate off and pin on, filter, barrier, bind.
"""

import statistics
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from muster.api.core import PODS
from muster.api.placement import PLACEMENTS
from muster.api.scheduling import POD_GROUPS, QUEUES
from muster.kube.client import Client
from muster.local.plane import Plane
from tests.bench.throughput import NODE_COUNT, Bindings, make_nodes

PARTS = ("etcd", "kube-apiserver", "kube-scheduler", "extender", "muster-scheduler")
GANGS, MEMBERS = 30, 100
TURNS = 2


def run() -> Iterator[str]:
    """Pods per second of both, and the ratio."""
    with tempfile.TemporaryDirectory() as folder, Plane(Path(folder) / "plane", PARTS, bound=True) as plane:
        client = plane.client()
        make_nodes(client, NODE_COUNT)
        client.create(QUEUES, {"metadata": {"name": "default"}, "spec": {}})
        rates: dict[str, list[float]] = {"stock": [], "muster": []}
        for turn in range(TURNS):
            rates["stock"].append(drain(plane, client, ("kube-scheduler",), plain_pods(turn)))
            rates["muster"].append(drain(plane, client, ("extender", "muster-scheduler"), gated_pods(client, turn)))
    stock, muster = statistics.median(rates["stock"]), statistics.median(rates["muster"])
    yield (
        f"drain of {GANGS * MEMBERS} pods, {NODE_COUNT} nodes: stock {stock:.0f} pods/s, "
        f"gated gangs {muster:.0f} pods/s, ratio {muster / stock:.2f} (budget 0.90)"
    )


def drain(plane: Plane, client: Client, parts: tuple[str, ...], pods: list[dict[str, Any]]) -> float:
    """Pods per second from the first binding to the last."""
    for part in ("muster-scheduler", "extender", "kube-scheduler"):
        plane.part(part).stop()
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda pod: client.create(PODS, pod, "default"), pods))
    bindings = Bindings(client, len(pods))
    for part in parts:
        plane.part(part).start()
        plane.wait_ready(part)
    bindings.done.wait(300)
    bindings.stop()
    seen = sorted(bindings.bound.values())
    with ThreadPoolExecutor(8) as pool:
        names = [pod.metadata.name for pod in client.list(PODS, "default")]
        list(pool.map(lambda name: client.delete(PODS, name, "default", grace_period_s=0), names))
    for resource in (PLACEMENTS, POD_GROUPS):
        for item in client.list(resource, "default"):
            client.delete(resource, item.metadata.name, "default")
    if len(seen) < len(pods):
        raise RuntimeError(f"only {len(seen)} of {len(pods)} pods were bound")
    return (len(seen) - 1) / (seen[-1] - seen[0])


def plain_pods(turn: int) -> list[dict[str, Any]]:
    """Pods of the cluster's own scheduler."""
    return [pod(f"plain-{turn}-{number}") for number in range(GANGS * MEMBERS)]


def gated_pods(client: Client, turn: int) -> list[dict[str, Any]]:
    """Members of gangs that were let in and wait behind their gates."""
    pods = []
    for gang in range(GANGS):
        name = f"gang-{turn}-{gang}"
        group = {"metadata": {"name": name}, "spec": {"minMember": MEMBERS}, "status": {"phase": "Inqueue"}}
        client.create(POD_GROUPS, group, "default")
        for rank in range(MEMBERS):
            member = pod(f"{name}-{rank}")
            member["metadata"] |= {
                "annotations": {"scheduling.k8s.io/group-name": name},
                "labels": {"apps.kubernetes.io/pod-index": str(rank)},
            }
            member["spec"] |= {"schedulerName": "muster", "schedulingGates": [{"name": "muster.dev/gang"}]}
            pods.append(member)
    return pods


def pod(name: str) -> dict[str, Any]:
    """A small pod."""
    resources = {"requests": {"cpu": "1", "memory": "1Gi"}}
    return {
        "metadata": {"name": name},
        "spec": {"containers": [{"name": "main", "image": "none", "resources": resources}]},
    }
