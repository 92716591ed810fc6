"""kube-scheduler's own gangs (beta in 1.37) on a plane like that of the throughput measurement, for comparison.

30 gangs of 100 pods, created by this client with all its pods, so that no controller takes part.
"""

import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from muster.api.base import Resource
from muster.api.kubernetes.core import PODS
from muster.kube.client import Client
from musterctl.plane.plane import Plane
from tests.bench.throughput import NODE_COUNT, WARM_UP, Bindings, Run, costs, make_nodes, remove_pods

GANGS, MEMBERS = 30, 100
GATES = "--feature-gates=GenericWorkload=true"
ARGUMENTS = {"kube-apiserver": (GATES, "--runtime-config=scheduling.k8s.io/v1beta1=true"), "kube-scheduler": (GATES,)}
NATIVE_GROUPS: Resource[dict[str, Any]] = Resource(
    "scheduling.k8s.io", "v1beta1", "podgroups", "PodGroup", dict[str, Any]
)


def run() -> Iterator[Run]:
    """Pods per second from the first submission to the last binding."""
    parts = ("etcd", "kube-apiserver", "kube-scheduler")
    with (
        tempfile.TemporaryDirectory() as folder,
        Plane(Path(folder) / "plane", parts, bound=True, arguments=ARGUMENTS) as plane,
    ):
        client = plane.client()
        make_nodes(client, NODE_COUNT)
        measure(plane, client, *WARM_UP)
        yield measure(plane, client, GANGS, MEMBERS)


def measure(plane: Plane, client: Client, gangs: int, members: int) -> Run:
    """One run."""
    bindings = Bindings(client, gangs * members)
    started = time.monotonic()
    cpu = costs(plane, {})
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: _submit(client, f"gang-{members}-{number}", members), range(gangs)))
    bindings.done.wait(300)
    bindings.stop()
    result = bindings.result(f"kube-scheduler's own gangs, {gangs} x {members} pods", started, costs(plane, cpu))
    remove_pods(client)
    return result


def _submit(client: Client, name: str, members: int) -> None:
    group = {
        "apiVersion": NATIVE_GROUPS.api_version,
        "kind": NATIVE_GROUPS.kind,
        "metadata": {"name": name},
        "spec": {"schedulingPolicy": {"gang": {"minCount": members}}},
    }
    client.create(NATIVE_GROUPS, group, "default")
    containers = [{"name": "main", "image": "none", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}]
    spec = {"schedulingGroup": {"podGroupName": name}, "containers": containers}
    for rank in range(members):
        client.create(PODS, {"metadata": {"name": f"{name}-{rank}"}, "spec": spec}, "default")
