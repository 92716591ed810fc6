"""Gangs end to end on a real control plane: pods per second from the first submission to the last binding."""

import os
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from muster.api.kubernetes.core import NODES, PODS, Pod
from muster.api.names import JOB_NAME
from muster.api.volcano.batch import JOBS
from muster.kube.client import Client
from muster.kube.reflector import Reflector
from musterctl.plane.plane import Plane

PARTS = ("etcd", "kube-apiserver", "webhook", "extender", "muster-scheduler", "controller")
NODE_COUNT = int(os.environ.get("MUSTER_BENCH_NODES", "5000"))


class Run(NamedTuple):
    """One run: how fast, and at what cost."""

    what: str
    pods_s: float
    """Pods per second, from the first submission (of a drain, from the first binding) to the last binding."""
    first_s: float
    """From the first submission to the first binding."""
    cpu_ms: dict[str, float]
    """CPU milliseconds per pod of each process."""
    lacking: int = 0
    """Pods that were not bound in time."""
    firsts_s: tuple[float, ...] = ()
    """Of each gang, from its own submission to the first binding of a member; in order."""

    def __str__(self) -> str:
        lacking = f" ({self.lacking} were not bound)" if self.lacking else ""
        shares = ", ".join(f"{name} {cost:.1f}" for name, cost in self.cpu_ms.items())
        waits = ", ".join(f"{part} % {within:.2f} s" for part, within in self.quantiles().items())
        gangs = f"\n    from a gang's submission to its first bind: {waits}" if waits else ""
        return (
            f"{self.what}, {NODE_COUNT} nodes: {self.pods_s:.0f} pods/s{lacking}, first bind {self.first_s:.2f} s\n"
            f"    CPU ms per pod: {shares}{gangs}"
        )

    def quantiles(self) -> dict[int, float]:
        """So many per cent of the gangs had their first binding within so many seconds."""
        count = len(self.firsts_s)
        return {part: self.firsts_s[max(0, -(-count * part // 100) - 1)] for part in (10, 50, 90, 100)} if count else {}


class Bindings:
    """Counts bound pods and notes when the first and the last was seen."""

    def __init__(self, client: Client, wanted: int) -> None:
        self.bound: dict[str, float] = {}
        self.firsts: dict[str, float] = {}
        """Name of a Job → when a pod of it was first seen bound."""
        self.done = threading.Event()
        self._wanted = wanted
        self._reflector = Reflector(client, PODS, namespace="default")
        self._reflector.add_handler(self._changed)
        self._reflector.start()
        self._reflector.wait_synced(30)

    def stop(self) -> None:
        """End the watch."""
        self._reflector.stop()

    def result(self, what: str, started: float, cpu_s: dict[str, float]) -> Run:
        """What this amounts to: `started` in monotonic seconds, CPU seconds of each process."""
        seen, wanted = sorted(self.bound.values()), self._wanted
        pods = max(len(seen), 1)
        rate, first = (len(seen) / (seen[-1] - started), seen[0] - started) if seen else (0.0, 0.0)
        shares = {name: seconds * 1000 / pods for name, seconds in cpu_s.items()}
        return Run(what, rate, first, shares, wanted - len(seen))

    def _changed(self, _: Pod | None, new: Pod | None) -> None:
        if new is not None and new.spec.node_name:
            self.bound.setdefault(new.metadata.uid, time.monotonic())
            self.firsts.setdefault(new.metadata.labels.get(JOB_NAME, ""), time.monotonic())
            if len(self.bound) >= self._wanted:
                self.done.set()


SIZES = ((30, 100), (10, 300), (1000, 1))
"""Gangs, and members of each."""
WARM_UP = (1, 50)


def run() -> Iterator[Run]:
    """Gangs of each size."""
    with tempfile.TemporaryDirectory() as folder, Plane(Path(folder) / "plane", PARTS, bound=True) as plane:
        client = plane.client()
        make_nodes(client, NODE_COUNT)
        warm_up(plane, client)
        for gangs, members in SIZES:
            yield measure(plane, client, gangs, members)


def make_nodes(client: Client, number: int) -> None:
    """Node objects without a kubelet: nothing has to run for a pod to be bound."""

    def make(index: int) -> None:
        name = f"node-{index:05d}"
        amounts = {"cpu": "32", "memory": "256Gi", "pods": "110", "nvidia.com/gpu": "8"}
        labels = {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "muster.dev/rack": f"rack-{index // 32}"}
        meta = {"name": name, "labels": labels}
        status = {"allocatable": amounts, "capacity": amounts, "conditions": [{"type": "Ready", "status": "True"}]}
        client.create(NODES, {"metadata": meta, "status": status})

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(make, range(number)))


def warm_up(plane: Plane, client: Client) -> None:
    """A gang that does not count: processes that have just been started open their connections for it.

    In a cluster they have been up for long, and what is waited for is the first gang of many, not of a process's life.
    """
    measure(plane, client, *WARM_UP)


def measure(plane: Plane, client: Client, gangs: int, members: int) -> Run:
    """One run."""
    bindings = Bindings(client, gangs * members)
    started = time.monotonic()
    cpu = {name: cpu_s(part.pid) for name, part in plane.parts.items() if part.pid}
    submitted: dict[str, float] = {}

    def submit(name: str) -> None:
        submitted[name] = time.monotonic()
        client.create(JOBS, manifest(name, members), "default")

    with ThreadPoolExecutor(8) as pool:
        names = [f"b{members}-{number}" for number in range(gangs)]
        list(pool.map(submit, names))
    bindings.done.wait(300)
    bindings.stop()
    result = bindings.result(f"{gangs} Jobs x {members} pods", started, costs(plane, cpu))
    waits = sorted(first - submitted[name] for name, first in bindings.firsts.items() if name in submitted)
    result = result._replace(firsts_s=tuple(waits))
    for name in names:
        client.delete(JOBS, name, "default")
    remove_pods(client)
    return result


def costs(plane: Plane, before: dict[str, float]) -> dict[str, float]:
    """CPU seconds of each process since then."""
    return {name: cpu_s(part.pid) - before.get(name, 0.0) for name, part in plane.parts.items() if part.pid}


def remove_pods(client: Client) -> None:
    """Deletes all pods; no garbage collector runs here."""
    with ThreadPoolExecutor(8) as pool:
        names = [pod.metadata.name for pod in client.list(PODS, "default")]
        list(pool.map(lambda name: client.delete(PODS, name, "default", grace_period_s=0), names))


def manifest(name: str, members: int) -> dict[str, Any]:
    """A gang of small pods."""
    container = {"name": "main", "image": "none", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}
    task = {"name": "worker", "replicas": members, "template": {"spec": {"containers": [container]}}}
    return {"metadata": {"name": name}, "spec": {"schedulerName": "volcano", "minAvailable": members, "tasks": [task]}}


def cpu_s(pid: int) -> float:
    """CPU seconds of a process and its children so far (user and system)."""
    ticks = 0
    for process in [pid, *children(pid)]:
        try:
            fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def children(pid: int) -> list[int]:
    """Direct children (a gunicorn master's worker)."""
    try:
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []
