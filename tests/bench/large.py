"""A cluster of 20,000 nodes and 100,000 running pods, end to end: `make bench-large`, some twenty minutes.

Nodes are objects without a kubelet and without leases, and pods run as far as anybody can read: what is measured is
Muster and kube-scheduler beside a real API server and etcd, on the same CPUs. Durations therefore say what two cores
can do together; CPU seconds say whose work grows. MUSTER_BENCH_NODES and MUSTER_BENCH_PODS say how large it is.
"""

import os
import re
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

from muster.api.kubernetes.core import NAMESPACES, NODES, PODS
from muster.api.volcano.scheduling import POD_GROUPS, QUEUES
from muster.kube.client import Client
from musterctl.plane.health import wait_until
from musterctl.plane.plane import Plane
from musterctl.plane.state import CONTROLLER, EXTENDER, WEBHOOK
from tests.bench import usual
from tests.bench.throughput import NODE_COUNT, PARTS, children, costs, cpu_s, make_nodes, measure, warm_up

POD_COUNT = int(os.environ.get("MUSTER_BENCH_PODS", "100000"))
GANG = 100
"""Members of the gangs that run already."""
QUEUE_COUNT, WAITING = 1_000, 10_000
SIZES = ((1, 512), (1, 4_096), (30, 100), (200, 1))
LOST_S = 60
_WORKERS = 16
_READY_S = 300.0
_REST_S = 20.0
_CALM_S = 30.0
_CYCLE = re.compile(r'^muster_cycle_seconds_(count|sum)\{part="(\w+)"\} (\S+)$', re.MULTILINE)


def run() -> Iterator[str]:
    """One line for each thing that is measured."""
    with (
        tempfile.TemporaryDirectory() as folder,
        Plane(Path(folder) / "plane", PARTS, bound=True) as plane,
        closing(plane.client()) as client,
    ):
        for part in (EXTENDER, CONTROLLER):
            plane.part(part).stop()
        yield f"filled in {_fill(client):.0f} s: {NODE_COUNT} nodes, {POD_COUNT} pods of gangs of {GANG}"
        yield from _starts(plane)
        warm_up(plane, client)
        for gangs, members in SIZES:
            yield from _cycles(plane, partial(measure, plane, client, gangs, members))
        yield from _many_waiting(plane, client)
        yield from _cycles(plane, lambda: _losing_nodes(plane, client))
        yield f"memory in the end: {_memory(plane)}"


def _fill(client: Client) -> float:
    """Makes nodes, and running gangs with their members; the seconds that takes."""
    began = time.monotonic()
    make_nodes(client, NODE_COUNT)
    client.create(NAMESPACES, {"metadata": {"name": "team"}})
    _each(lambda number: client.create(POD_GROUPS, _running_gang(number), "team"), range(POD_COUNT // GANG))
    _each(lambda number: client.create(PODS, _running_pod(number), "team"), range(POD_COUNT))
    return time.monotonic() - began


def _each(act: Callable[[int], object], numbers: Iterable[int]) -> None:
    with ThreadPoolExecutor(_WORKERS) as pool:
        for _ in pool.map(act, numbers):
            pass


def _running_gang(number: int) -> dict[str, Any]:
    spec = {"minMember": GANG, "queue": "default"}
    return {"metadata": {"name": f"job{number}-uid"}, "spec": spec, "status": {"phase": "Running"}}


def _running_pod(number: int) -> dict[str, Any]:
    """A member that the API server takes: it gives the identity, and nobody has made the Job that would own it."""
    one = usual.pod(number, NODE_COUNT)
    kept = {key: one["metadata"][key] for key in ("name", "labels", "annotations")}
    return {"metadata": kept, "spec": {**one["spec"], "volumes": []}}


def _starts(plane: Plane) -> Iterator[str]:
    """How long each process takes to know the cluster, and what it weighs a while later."""
    for name in (EXTENDER, CONTROLLER, WEBHOOK, "muster-scheduler"):
        part = plane.part(name)
        part.stop()
        began = time.monotonic()
        part.start()
        plane.wait_ready(name, _READY_S)
        wait_until(part, partial(plane.trouble, name), _READY_S)
        ready_s = time.monotonic() - began
        yield f"{name}: ready after {ready_s:.1f} s, with {cpu_s(part.pid or 0):.1f} s of CPU"
    time.sleep(_REST_S)
    yield f"memory {_REST_S:.0f} s later: {_memory(plane)}"


def _memory(plane: Plane) -> str:
    found = {name: [part.pid, *children(part.pid)] for name, part in plane.parts.items() if part.pid}
    return ", ".join(f"{name} {sum(map(usual.resident_mib, pids)):.0f} MiB" for name, pids in found.items())


def _cycles(plane: Plane, work: Callable[[], object]) -> Iterator[str]:
    """What the work says, and the planning cycles meanwhile: their number, and how long one took."""
    before = _samples(plane)
    yield str(work())
    after = _samples(plane)
    for part in sorted({part for _, part in after}):
        count, total = (after[kind, part] - before.get((kind, part), 0.0) for kind in ("count", "sum"))
        if count:
            yield f"    {count:.0f} cycles, {part}: {total / count * 1000:.1f} ms each"


def _samples(plane: Plane) -> dict[tuple[str, str], float]:
    url = f"http://127.0.0.1:{plane.state.ports['extender-status']}/metrics"
    with urllib.request.urlopen(url, timeout=60) as answer:
        return {(kind, part): float(value) for kind, part, value in _CYCLE.findall(answer.read().decode())}


def _many_waiting(plane: Plane, client: Client) -> Iterator[str]:
    """Gangs that their queues' capability keeps out: what it costs that they come, and that they are there."""
    queue = {"spec": {"weight": 1, "capability": {"cpu": "1"}}}
    _each(lambda number: client.create(QUEUES, {"metadata": {"name": f"q{number}"}, **queue}), range(QUEUE_COUNT))

    def come() -> str:
        before = {name: cpu_s(part.pid) for name, part in plane.parts.items() if part.pid}
        began = time.monotonic()
        _each(lambda number: client.create(POD_GROUPS, _waiting_gang(number), "default"), range(WAITING))
        wait_until(plane.part(EXTENDER), lambda: _untold(client), _READY_S)
        took_s, cpu = time.monotonic() - began, costs(plane, before)
        return f"{WAITING} waiting gangs in {QUEUE_COUNT} queues: all are told why after {took_s:.0f} s, {_shown(cpu)}"

    yield from _cycles(plane, come)
    yield from _cycles(plane, lambda: f"with these, nothing changes: {_calm(plane)}")
    yield from _cycles(plane, lambda: f"with these, {measure(plane, client, 30, 100)}")
    groups = [group.metadata.name for group in client.list(POD_GROUPS, "default")]
    _each(lambda number: client.delete(POD_GROUPS, groups[number], "default"), range(len(groups)))


def _waiting_gang(number: int) -> dict[str, Any]:
    spec = {"minMember": 1, "queue": f"q{number % QUEUE_COUNT}", "minResources": {"cpu": "2"}}
    return {"metadata": {"name": f"waits-{number}"}, "spec": spec}


def _untold(client: Client) -> str:
    """What is missing until each of the waiting gangs has its reason."""
    found = sum(not group.why_waiting for group in client.list(POD_GROUPS, "default"))
    return f"{found} gangs have no reason" if found else ""


def _calm(plane: Plane) -> str:
    """CPU of each process while nobody does anything."""
    before = {name: cpu_s(part.pid) for name, part in plane.parts.items() if part.pid}
    time.sleep(_CALM_S)
    return f"in {_CALM_S:.0f} s {_shown(costs(plane, before))}"


def _shown(cpu: dict[str, float]) -> str:
    return "CPU s: " + ", ".join(f"{name} {each:.1f}" for name, each in cpu.items())


def _losing_nodes(plane: Plane, client: Client) -> str:
    """A node is deleted every second while gangs come."""
    ended = threading.Event()

    def lose() -> None:
        for number in range(LOST_S):
            if ended.wait(1.0):
                return
            client.delete(NODES, f"node-{number * 7:05d}")

    thread = threading.Thread(target=lose)
    thread.start()
    try:
        return f"a node is lost every second: {measure(plane, client, 30, 100)}"
    finally:
        ended.set()
        thread.join()
