"""How fast a backlog drains, against plain pods of a stock kube-scheduler, in turns in one run.

Each side starts with the backlog before it; time counts from the first binding to the last. *Planned* gangs have their
placements and pinned pods: what is measured is filter and bind. One member is enough for them to start, as a scheduler
that finds 3,000 members at once takes them in any order, which the planner never lets happen. *Gated* gangs of 100 have
nothing but pods behind gates: plan, placement, gate off, pin on and the barrier come on top.
"""

import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from muster.api.core import PODS
from muster.api.gang import DEFAULT_POD_SET, pinned_affinity
from muster.api.meta import format_time
from muster.api.placement import PLACEMENTS
from muster.api.scheduling import POD_GROUPS, QUEUES
from muster.kube.client import Client
from musterctl.plane.plane import Plane
from tests.bench.throughput import NODE_COUNT, Bindings, cpu_s, make_nodes

PARTS = ("etcd", "kube-apiserver", "kube-scheduler", "extender", "muster-scheduler")
OURS = ("extender", "muster-scheduler")
GANGS, MEMBERS = 30, 100
TURNS = 2
Pods = list[dict[str, Any]]


def run() -> Iterator[str]:
    """Pods per second of each, and the ratios to stock."""
    sides: dict[str, tuple[tuple[str, ...], Callable[[Client, int], Pods]]] = {
        "stock": (("kube-scheduler",), plain_pods),
        "planned": (OURS, planned_pods),
        "gated": (OURS, gated_pods),
    }
    rates: dict[str, list[float]] = {side: [] for side in sides}
    costs: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as folder, Plane(Path(folder) / "plane", PARTS, bound=True) as plane:
        client = plane.client()
        make_nodes(client, NODE_COUNT)
        client.create(QUEUES, {"metadata": {"name": "default"}, "spec": {}})
        for turn in range(TURNS):
            for side, (parts, make) in sides.items():
                rate, costs[side] = drain(plane, client, parts, lambda turn=turn, make=make: make(client, turn))
                rates[side].append(rate)
    medians = {side: statistics.median(each) for side, each in rates.items()}
    for side, rate in medians.items():
        budget = " (budget 0.90)" if side == "planned" else ""
        yield (
            f"drain of {GANGS * MEMBERS} pods, {NODE_COUNT} nodes, {side}: {rate:.0f} pods/s, "
            f"{rate / medians['stock']:.2f} of stock{budget}\n    CPU ms per pod: {costs[side]}"
        )


def drain(plane: Plane, client: Client, parts: tuple[str, ...], make: Callable[[], Pods]) -> tuple[float, str]:
    """Pods per second from the first binding to the last, and what it cost each process."""
    for part in ("muster-scheduler", "extender", "kube-scheduler"):
        plane.part(part).stop()
    pods = make()
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda pod: client.create(PODS, pod, "default"), pods))
    bindings = Bindings(client, len(pods))
    before = {name: cpu_s(part.pid) for name, part in plane.parts.items() if part.pid}
    for part in parts:
        plane.part(part).start()
        plane.wait_ready(part)
    bindings.done.wait(120)
    bindings.stop()
    used = {name: cpu_s(part.pid) - before.get(name, 0.0) for name, part in plane.parts.items() if part.pid}
    seen = sorted(bindings.bound.values())
    with ThreadPoolExecutor(8) as pool:
        names = [pod.metadata.name for pod in client.list(PODS, "default")]
        list(pool.map(lambda name: client.delete(PODS, name, "default", grace_period_s=0), names))
    for resource in (PLACEMENTS, POD_GROUPS):
        for item in client.list(resource, "default"):
            client.delete(resource, item.metadata.name, "default")
    if len(seen) < len(pods):
        raise RuntimeError(f"only {len(seen)} of {len(pods)} pods were bound")
    cost = ", ".join(f"{name} {seconds * 1000 / len(pods):.1f}" for name, seconds in used.items())
    return (len(seen) - 1) / (seen[-1] - seen[0]), cost


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
        runs = [{"node": node, "count": 10} for node in nodes]
        spec = {
            "podGroupUID": uid,
            "epoch": 1,
            "deadline": format_time(time.time() + 600),
            "podSets": [{"name": DEFAULT_POD_SET, "runs": runs}],
        }
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
    member["metadata"] |= {
        "annotations": {"scheduling.k8s.io/group-name": gang},
        "labels": {"apps.kubernetes.io/pod-index": str(rank)},
    }
    member["spec"] |= {"schedulerName": "muster"}
    return member


def pod(name: str) -> dict[str, Any]:
    """A small pod."""
    resources = {"requests": {"cpu": "1", "memory": "1Gi"}}
    return {
        "metadata": {"name": name},
        "spec": {"containers": [{"name": "main", "image": "none", "resources": resources}]},
    }
