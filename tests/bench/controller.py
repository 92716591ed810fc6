"""The controller end to end: pods created per second, API calls, and CPU, on 8 nodes.

`MUSTER_BENCH_SCALE` (default 1) scales the number of Jobs.
"""

import os
import re
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from muster.api.kubernetes.core import PODS, Pod
from muster.api.volcano.batch import JOBS
from muster.kube.client import Client
from muster.kube.reflector import Reflector
from musterctl.plane.plane import Plane
from tests.bench.throughput import cpu_s, manifest

SCALE = float(os.environ.get("MUSTER_BENCH_SCALE", "1"))
STATUS_WRITES_BUDGET = 2.0
"""Writes of a Job's status per phase that it enters."""
CPU_MS_BUDGET = 1.0
"""CPU milliseconds of the controller per event of a pod."""
_WAIT_S = 600
_SAMPLE = re.compile(r"^([a-z_]+)(\{[^}]*\})? ([0-9.e+]+)$", re.MULTILINE)


class Used(NamedTuple):
    """What the controller has used so far."""

    cpu_s: float
    calls: float
    status_writes: float


class Events:
    """Counts the pods, and all that happens to them."""

    def __init__(self, client: Client) -> None:
        self.created: dict[str, float] = {}
        self.events = 0
        self._reflector = Reflector(client, PODS, namespace="default")
        self._reflector.add_handler(self._changed)
        self._reflector.start()
        self._reflector.wait_synced(30)

    def stop(self) -> None:
        """Ends the watch."""
        self._reflector.stop()

    def _changed(self, old: Pod | None, new: Pod | None) -> None:
        self.events += 1
        if old is None and new is not None:
            self.created.setdefault(new.metadata.uid, time.monotonic())


def run() -> Iterator[str]:
    """1,000 one-pod Jobs, then 10 Jobs of 300 pods; each Job runs to its end."""
    for jobs, members in ((max(1, round(1000 * SCALE)), 1), (max(1, round(10 * SCALE)), 300)):
        with tempfile.TemporaryDirectory() as folder, Plane(Path(folder) / "plane", bound=True) as plane:
            yield measure(plane, jobs, members)


def measure(plane: Plane, jobs: int, members: int) -> str:
    """One run on a plane of its own."""
    client = plane.client()
    events = Events(client)
    before, started = used(plane), time.monotonic()
    with ThreadPoolExecutor(8) as pool:
        names = [f"b-{number}" for number in range(jobs)]
        list(pool.map(lambda name: client.create(JOBS, job(name, members), "default"), names))
    ended = wait_for_the_end(client, jobs)
    after = used(plane)
    events.stop()
    seen = sorted(events.created.values())
    pods, phases = max(1, len(seen)), 3 * jobs  # Pending, Running, Completed
    cpu_ms = (after.cpu_s - before.cpu_s) * 1000
    per_event_ms = cpu_ms / max(1, events.events)
    calls, writes = after.calls - before.calls, after.status_writes - before.status_writes
    return (
        f"{jobs} Jobs x {members} pods, 8 nodes: {pods / (seen[-1] - started) if seen else 0:.0f} pods created/s"
        f"{'' if ended else ' (not all Jobs ended)'}\n"
        f"    API calls of the controller: {calls / pods:.2f} per pod, {calls / jobs:.1f} per job\n"
        f"    CPU: {cpu_ms / pods:.2f} ms per pod; {per_event_ms:.2f} ms per pod event"
        f" ({per_event_ms / CPU_MS_BUDGET:.2f} of the budget)\n"
        f"    status writes per phase change: {writes / phases:.2f}"
        f" ({writes / phases / STATUS_WRITES_BUDGET:.2f} of the budget)"
    )


def job(name: str, members: int) -> dict[str, object]:
    """A gang of small pods that run for a second."""
    content = manifest(name, members)
    template = content["spec"]["tasks"][0]["template"]
    template["metadata"] = {"annotations": {"kwok.muster.dev/run-seconds": "1"}}
    template["spec"]["restartPolicy"] = "Never"
    template["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "20m"}}
    return content


def wait_for_the_end(client: Client, jobs: int) -> bool:
    """Waits until all Jobs have completed; False if that takes too long."""
    deadline = time.monotonic() + _WAIT_S
    while time.monotonic() < deadline:
        if sum(one.status.state.phase == "Completed" for one in client.list(JOBS, "default")) >= jobs:
            return True
        time.sleep(1)
    return False


def used(plane: Plane) -> Used:
    """CPU of the process, and what its metrics count."""
    part = plane.part("controller")
    port = plane.state.ports["controller-status"]
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as answer:
        samples = _SAMPLE.findall(answer.read().decode())

    def total(name: str) -> float:
        return sum(float(value) for found, _, value in samples if found == name)

    return Used(
        cpu_s(part.pid or 0), total("muster_kube_requests_total"), total("muster_controller_status_writes_total")
    )
