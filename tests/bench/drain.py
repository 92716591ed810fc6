"""How fast a backlog drains, against plain pods of a stock kube-scheduler, in turns in one run.

Each side starts with the backlog before it; time counts from the first binding to the last, CPU from when its processes
are ready, the extender with its caches filled: what it costs to start has nothing to do with a pod. *Planned* gangs
have their placements and pinned pods: what is measured is filter and bind. One member is enough for them to start, as a
scheduler that finds 3,000 members at once takes them in any order, which the planner never lets happen. *Gated* gangs
of 100 have nothing but pods behind gates: plan, placement, gate off, pin on and the barrier come on top.
"""

import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from muster.api.kubernetes.core import PODS
from muster.api.kubernetes.meta import format_time
from muster.api.muster.gang import DEFAULT_POD_SET, pinned_affinity
from muster.api.muster.placement import PLACEMENTS
from muster.api.volcano.scheduling import POD_GROUPS, QUEUES
from muster.kube.client import Client
from musterctl.plane.health import trouble_at, wait_until
from musterctl.plane.plane import Plane
from tests.bench.throughput import NODE_COUNT, Bindings, Run, costs, make_nodes, remove_pods

PARTS = ("etcd", "kube-apiserver", "kube-scheduler", "extender", "muster-scheduler")
OURS = ("extender", "muster-scheduler")
GANGS, MEMBERS = 30, 100
Pods = list[dict[str, Any]]


def plain_pods(_: Client, turn: int) -> Pods:
    """Pods of the cluster's own scheduler."""
    return [pod(f"plain-{turn}-{number}") for number in range(GANGS * MEMBERS)]


def gated_pods(client: Client, turn: int) -> Pods:
    """Members of gangs that were let in and wait behind their gates."""
    pods = []
    for gang in range(GANGS):
        name = f"gang-{turn}-{gang}"
        _group(client, name)
        for rank in range(MEMBERS):
            member = _member(name, rank)
            member["spec"] |= {"schedulingGates": [{"name": "muster.dev/gang"}]}
            pods.append(member)
    return pods


def planned_pods(client: Client, turn: int) -> Pods:
    """Members of gangs whose placements stand, born pinned; ten pods to a node."""
    pods = []
    for gang in range(GANGS):
        name = f"planned-{turn}-{gang}"
        uid = _group(client, name, least=1)
        nodes = [f"node-{gang * MEMBERS // 10 + number:05d}" for number in range(MEMBERS // 10)]
        pod_sets = [{"name": DEFAULT_POD_SET, "runs": [{"node": node, "count": 10} for node in nodes]}]
        spec = {"podGroupUID": uid, "epoch": 1, "deadline": format_time(time.time() + 600), "podSets": pod_sets}
        status = {"phase": "Planned", "planned": MEMBERS, "bound": 0}
        client.create(PLACEMENTS, {"metadata": {"name": name}, "spec": spec, "status": status}, "default")
        for rank in range(MEMBERS):
            member, node = _member(name, rank), nodes[rank // 10]
            member["metadata"]["annotations"] |= {"muster.dev/node": node, "muster.dev/epoch": "1"}
            member["spec"] |= {"affinity": pinned_affinity(None, node)}
            pods.append(member)
    return pods


def _group(client: Client, name: str, least: int = MEMBERS) -> str:
    group = {"metadata": {"name": name}, "spec": {"minMember": least}, "status": {"phase": "Inqueue"}}
    return client.create(POD_GROUPS, group, "default").metadata.uid


def _member(gang: str, rank: int) -> dict[str, Any]:
    member = pod(f"{gang}-{rank}")
    labels = {"apps.kubernetes.io/pod-index": str(rank)}
    member["metadata"] |= {"annotations": {"scheduling.k8s.io/group-name": gang}, "labels": labels}
    member["spec"] |= {"schedulerName": "muster"}
    return member


def pod(name: str) -> dict[str, Any]:
    """A small pod."""
    resources = {"requests": {"cpu": "1", "memory": "1Gi"}}
    spec = {"containers": [{"name": "main", "image": "none", "resources": resources}]}
    return {"metadata": {"name": name}, "spec": spec}


SIDES: dict[str, tuple[tuple[str, ...], Callable[[Client, int], Pods]]] = {
    "stock": (("kube-scheduler",), plain_pods),
    "planned": (OURS, planned_pods),
    "gated": (OURS, gated_pods),
}
"""What runs, and what makes the backlog."""


def run(turns: int = 1) -> Iterator[Run]:
    """Each side, in turns."""
    with tempfile.TemporaryDirectory() as folder, Plane(Path(folder) / "plane", PARTS, bound=True) as plane:
        client = plane.client()
        make_nodes(client, NODE_COUNT)
        client.create(QUEUES, {"metadata": {"name": "default"}, "spec": {}})
        for turn in range(turns):
            for side in SIDES:
                yield drain(plane, client, side, turn)


def wait_filled(plane: Plane) -> None:
    """Waits until the extender's caches are filled; it answers before."""
    url = f"{plane.commandlines.url('extender-status')}/readyz"
    wait_until(plane.part("extender"), lambda: trouble_at(url, plane.commandlines.pki.ca_file), timeout_s=30)


def drain(plane: Plane, client: Client, side: str, turn: int) -> Run:
    """One drain; its rate is from the first binding to the last."""
    parts, make = SIDES[side]
    for part in ("muster-scheduler", "extender", "kube-scheduler"):
        plane.part(part).stop()
    pods = make(client, turn)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda pod: client.create(PODS, pod, "default"), pods))
    bindings = Bindings(client, len(pods))
    for part in parts:
        plane.part(part).start()
        plane.wait_ready(part)
        if part == "extender":
            wait_filled(plane)
    before, started = costs(plane, {}), time.monotonic()
    bindings.done.wait(120)
    bindings.stop()
    result = bindings.result(f"drain of {len(pods)} pods, {side}", started, costs(plane, before))
    remove_pods(client)
    for resource in (PLACEMENTS, POD_GROUPS):
        for item in client.list(resource, "default"):
            client.delete(resource, item.metadata.name, "default")
    seen = sorted(bindings.bound.values())
    rate = (len(seen) - 1) / (seen[-1] - seen[0]) if len(seen) > 1 else 0.0
    return result._replace(pods_s=rate)
