"""How long a real extender takes to know a large cluster, and what it weighs then; the API server is on the same CPUs.

It answers (`/healthz`) long before it is ready (`/readyz`): only then are its caches filled, and does it plan and bind.
Bytecode should be there, as it is in the image (`make bytecode`): a start that compiles takes 0.3 s more. CPU seconds
say what the list costs whom.
"""

import os
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from muster.api.kubernetes.core import PODS
from musterctl.plane.plane import Plane
from musterctl.plane.state import EXTENDER
from tests.bench.drain import pod, wait_filled
from tests.bench.throughput import NODE_COUNT, cpu_s, make_nodes
from tests.bench.usual import resident_mib

SERVERS = ("kube-apiserver", "etcd")
PARTS = (*SERVERS, EXTENDER)
POD_COUNT = int(os.environ.get("MUSTER_BENCH_PODS", "50000"))
TURNS = 7
"""More than elsewhere: in about half of them the API server collects its garbage, which is half a second."""
_REST_S = 7.0
"""What the lists took is given back by then."""


class Start(NamedTuple):
    """One start."""

    ready_s: float
    cpu_s: dict[str, float]
    """Until then, of the extender and the servers."""
    mib: float
    """What it weighs a while later."""

    def __str__(self) -> str:
        cpu = ", ".join(f"{name} {each:.1f}" for name, each in self.cpu_s.items())
        size = f"{NODE_COUNT} nodes, {POD_COUNT} pods"
        return f"{size}: ready after {self.ready_s:.2f} s, CPU s: {cpu}; {self.mib:.0f} MiB"


def run() -> Iterator[Start]:
    """Starts on one cluster."""
    with tempfile.TemporaryDirectory() as folder, Plane(Path(folder) / "plane", PARTS, bound=True) as plane:
        client, part = plane.client(), plane.part(EXTENDER)
        part.stop()
        make_nodes(client, NODE_COUNT)
        with ThreadPoolExecutor(16) as pool:
            list(pool.map(lambda number: client.create(PODS, bound_pod(number), "default"), range(POD_COUNT)))
        for _ in range(TURNS):
            before = {name: cpu_s(plane.part(name).pid or 0) for name in SERVERS}
            began = time.monotonic()
            part.start()
            wait_filled(plane)
            ready_s = time.monotonic() - began
            used = {name: cpu_s(plane.part(name).pid or 0) - before.get(name, 0.0) for name in (EXTENDER, *SERVERS)}
            time.sleep(_REST_S)
            yield Start(ready_s, used, resident_mib(part.pid or 0))
            part.stop()


def bound_pod(number: int) -> dict[str, Any]:
    """A small pod on a node."""
    one = pod(f"pod-{number}")
    return {**one, "spec": {**one["spec"], "nodeName": f"node-{number % NODE_COUNT:05d}"}}
