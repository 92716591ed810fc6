"""kube-scheduler's own gangs (alpha in 1.36) on a plane like that of the throughput measurement, for comparison.

30 gangs of 100 pods, created by this client with all its pods, so that no controller takes part.
"""

import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from muster.api.base import Resource
from muster.api.core import PODS
from muster.kube.client import Client
from musterctl.plane.plane import Plane
from tests.bench.throughput import NODE_COUNT, Bindings, Run, costs, make_nodes

GANGS, MEMBERS = 30, 100
GATES = "--feature-gates=GenericWorkload=true,GangScheduling=true"
ARGUMENTS = {
    "kube-apiserver": (GATES, "--runtime-config=scheduling.k8s.io/v1alpha2=true"),
    "kube-scheduler": (GATES,),
}
NATIVE_GROUPS: Resource[dict[str, Any]] = Resource(
    "scheduling.k8s.io", "v1alpha2", "podgroups", "PodGroup", dict[str, Any]
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
        yield measure(plane, client)


def measure(plane: Plane, client: Client) -> Run:
    """One run."""
    bindings = Bindings(client, GANGS * MEMBERS)
    started = time.monotonic()
    cpu = costs(plane, {})
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: _submit(client, f"gang-{number}"), range(GANGS)))
    bindings.done.wait(300)
    bindings.stop()
    return bindings.result(f"kube-scheduler's own gangs, {GANGS} x {MEMBERS} pods", started, costs(plane, cpu))


def _submit(client: Client, name: str) -> None:
    group = {
        "apiVersion": NATIVE_GROUPS.api_version,
        "kind": NATIVE_GROUPS.kind,
        "metadata": {"name": name},
        "spec": {"schedulingPolicy": {"gang": {"minCount": MEMBERS}}},
    }
    client.create(NATIVE_GROUPS, group, "default")
    resources = {"requests": {"cpu": "1", "memory": "1Gi"}}
    spec = {
        "schedulingGroup": {"podGroupName": name},
        "containers": [{"name": "main", "image": "none", "resources": resources}],
    }
    for rank in range(MEMBERS):
        client.create(PODS, {"metadata": {"name": f"{name}-{rank}"}, "spec": spec}, "default")
