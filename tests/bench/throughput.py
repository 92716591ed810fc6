"""Gangs end to end on a real control plane: pods per second from the first submission to the last binding."""

import os
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from muster.api.batch import JOBS
from muster.api.core import NODES, PODS, Pod
from muster.kube.client import Client
from muster.kube.reflector import Reflector
from musterctl.plane.plane import Plane

PARTS = ("etcd", "kube-apiserver", "webhook", "extender", "muster-scheduler", "controller")
NODE_COUNT = int(os.environ.get("MUSTER_BENCH_NODES", "5000"))


class Bindings:
    """Counts bound pods and notes when the first and the last was seen."""

    def __init__(self, client: Client, wanted: int) -> None:
        self.bound: dict[str, float] = {}
        self.done = threading.Event()
        self._wanted = wanted
        self._reflector = Reflector(client, PODS, namespace="default")
        self._reflector.add_handler(self._changed)
        self._reflector.start()
        self._reflector.wait_synced(30)

    def stop(self) -> None:
        """End the watch."""
        self._reflector.stop()

    def _changed(self, _: Pod | None, new: Pod | None) -> None:
        if new is not None and new.spec.node_name:
            self.bound.setdefault(new.metadata.uid, time.monotonic())
            if len(self.bound) >= self._wanted:
                self.done.set()


def run() -> Iterator[str]:
    """30 gangs of 100 pods, then 1,000 gangs of one pod."""
    with tempfile.TemporaryDirectory() as folder, Plane(Path(folder) / "plane", PARTS, bound=True) as plane:
        client = plane.client()
        make_nodes(client, NODE_COUNT)
        for gangs, members in ((30, 100), (1000, 1)):
            yield measure(plane, client, gangs, members)


def make_nodes(client: Client, number: int) -> None:
    """Node objects without a kubelet: nothing has to run for a pod to be bound."""

    def make(index: int) -> None:
        name = f"node-{index:05d}"
        amounts = {"cpu": "32", "memory": "256Gi", "pods": "110", "nvidia.com/gpu": "8"}
        meta = {"name": name, "labels": {"kubernetes.io/hostname": name, "muster.dev/rack": f"rack-{index // 32}"}}
        status = {"allocatable": amounts, "capacity": amounts, "conditions": [{"type": "Ready", "status": "True"}]}
        client.create(NODES, {"metadata": meta, "status": status})

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(make, range(number)))


def measure(plane: Plane, client: Client, gangs: int, members: int) -> str:
    """One run."""
    bindings = Bindings(client, gangs * members)
    started = time.monotonic()
    cpu = {name: cpu_s(part.pid) for name, part in plane.parts.items() if part.pid}
    with ThreadPoolExecutor(8) as pool:
        names = [f"b{members}-{number}" for number in range(gangs)]
        list(pool.map(lambda name: client.create(JOBS, manifest(name, members), "default"), names))
    complete = bindings.done.wait(300)
    bindings.stop()
    seen = sorted(bindings.bound.values())
    took = (seen[-1] - started) if seen else 0.0
    used = {name: cpu_s(plane.part(name).pid or 0) - before for name, before in cpu.items()}
    shares = ", ".join(f"{name} {seconds * 1000 / max(len(seen), 1):.1f}" for name, seconds in used.items())
    for name in names:
        client.delete(JOBS, name, "default")
    for pod in client.list(PODS, "default"):  # no garbage collector runs here
        client.delete(PODS, pod.metadata.name, "default", grace_period_s=0)
    rate, first = (len(seen) / took, seen[0] - started) if seen else (0.0, 0.0)
    lacking = "" if complete else f" (only {len(seen)} were bound)"
    return (
        f"{gangs} Jobs x {members} pods, {NODE_COUNT} nodes: {rate:.0f} pods/s{lacking}, first bind {first:.2f} s\n"
        f"    CPU ms per pod: {shares}"
    )


def manifest(name: str, members: int) -> dict[str, Any]:
    """A gang of small pods."""
    resources = {"requests": {"cpu": "1", "memory": "1Gi"}}
    container = {"name": "main", "image": "none", "resources": resources}
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
