"""How long a real extender takes to know a large cluster, and what it weighs then; the API server is on the same CPUs.

It answers (`/healthz`) long before it is ready (`/readyz`): only then are its caches filled, and does it plan and bind.
"""

import os
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from muster.api.core import PODS
from musterctl.plane.components import EXTENDER
from musterctl.plane.plane import Plane
from tests.bench.drain import pod, wait_filled
from tests.bench.throughput import NODE_COUNT, make_nodes
from tests.bench.usual import resident_mib

PARTS = ("etcd", "kube-apiserver", EXTENDER)
POD_COUNT = int(os.environ.get("MUSTER_BENCH_PODS", "50000"))
TURNS = 3
_REST_S = 7.0
"""What the lists took is given back by then."""


def run() -> Iterator[str]:
    """A line per start."""
    with tempfile.TemporaryDirectory() as folder, Plane(Path(folder) / "plane", PARTS, bound=True) as plane:
        client, part = plane.client(), plane.part(EXTENDER)
        part.stop()
        make_nodes(client, NODE_COUNT)
        with ThreadPoolExecutor(16) as pool:
            list(pool.map(lambda number: client.create(PODS, bound_pod(number), "default"), range(POD_COUNT)))
        for _ in range(TURNS):
            began = time.monotonic()
            part.start()
            wait_filled(plane)
            ready_s = time.monotonic() - began
            time.sleep(_REST_S)
            size = f"{NODE_COUNT} nodes, {POD_COUNT} pods"
            yield f"{size}: ready after {ready_s:.2f} s, {resident_mib(part.pid or 0):.0f} MiB"
            part.stop()


def bound_pod(number: int) -> dict[str, Any]:
    """A small pod on a node."""
    one = pod(f"pod-{number}")
    return {**one, "spec": {**one["spec"], "nodeName": f"node-{number % NODE_COUNT:05d}"}}
