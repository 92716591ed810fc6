"""Pods created on a real API server, with and without Muster's webhook matching: what a matching pod costs.

Three kinds of the same pod take turns: *plain* ones are not sent to the webhook, *queued* ones have a queue, and
*shaped* ones a queue and a framework. Nobody looks at the pods, so nothing but admission and storage is measured.
"""

import statistics
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from muster.api.kubernetes.core import PODS
from muster.api.volcano.scheduling import QUEUES
from muster.kube.client import Client
from musterctl.plane.plane import Plane
from tests.bench.timing import Result

PARTS = ("etcd", "kube-apiserver", "webhook")
QUEUED = {"muster.dev/queue": "default"}
KINDS = {"plain": {}, "queued": QUEUED, "shaped": {**QUEUED, "muster.dev/framework": "torch"}}
ROUNDS = 5
EACH = 60
CLIENTS = 8
BUDGET_MS = 3.0


def run() -> Iterator[Result | str]:
    """One client after the other pod, then eight at once."""
    with tempfile.TemporaryDirectory() as folder, Plane(Path(folder) / "plane", PARTS, bound=True) as plane:
        client = plane.client()
        client.create(QUEUES, {"metadata": {"name": "default"}, "spec": {}})
        for name in KINDS:
            create(client, name, f"warm-{name}", EACH)
        durations_ms: dict[str, list[float]] = {name: [] for name in KINDS}
        rates: dict[str, list[float]] = {name: [] for name in KINDS}
        for number in range(ROUNDS):
            for name in KINDS:
                durations_ms[name] += create(client, name, f"one-{number}-{name}", EACH)
                rates[name].append(together(client, name, f"many-{number}-{name}"))
    plain = statistics.median(durations_ms["plain"])
    yield Result("create a plain pod, 1 client: p50", plain)
    for name in ("queued", "shaped"):
        more = statistics.median(durations_ms[name]) - plain
        yield Result(f"what a {name} pod costs more, 1 client: p50", more, BUDGET_MS)
    for name, each in rates.items():
        yield f"{name} pods, {CLIENTS} clients: {statistics.median(each):,.0f} created a second"


def together(client: Client, kind: str, prefix: str) -> float:
    """Pods created a second by several clients."""
    started = time.perf_counter()
    with ThreadPoolExecutor(CLIENTS) as pool:
        list(pool.map(lambda number: create(client, kind, f"{prefix}-{number}", EACH), range(CLIENTS)))
    return CLIENTS * EACH / (time.perf_counter() - started)


def create(client: Client, kind: str, prefix: str, count: int) -> list[float]:
    """The time that each creation takes."""
    result = []
    for number in range(count):
        manifest = pod(f"{prefix}-{number}", kind)
        started = time.perf_counter()
        client.create(PODS, manifest, "default")
        result.append(1000 * (time.perf_counter() - started))
    return result


def pod(name: str, kind: str) -> dict[str, Any]:
    """A pod of one of four; its annotations say which."""
    place = {"muster.dev/rank": "1", "muster.dev/size": "4", "muster.dev/leader": "train-0.train"}
    container = {
        "name": "node",
        "image": "image",
        "env": [{"name": f"SETTING_{number}", "value": "x" * 60} for number in range(20)],
        "resources": {"requests": {"cpu": "8", "memory": "64Gi"}, "limits": {"nvidia.com/gpu": "8"}},
    }
    metadata = {"name": name, "labels": KINDS[kind], "annotations": place}
    return {"metadata": metadata, "spec": {"containers": [container]}}
