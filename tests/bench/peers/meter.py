"""What is measured of one submission: binds, CPU and memory by process, writes to the API server, the idle machine."""

import os
import re
import statistics
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from muster.kube.client import Client
from musterctl.plane.process import PlaneProcess
from tests.bench.throughput import Bindings, children, cpu_s
from tests.bench.usual import resident_mib

CLIENT = "client"
"""The name of this process among those that are measured: it submits and watches."""
_CALM_S = 1.0
_MOST_CALM_S = 15.0
_WRITES = frozenset({"POST", "PUT", "PATCH", "APPLY", "DELETE"})
_LIKE_READS = frozenset({"leases", "tokenreviews", "subjectaccessreviews", "selfsubjectaccessreviews"})
"""Resources of requests that are no part of a pod's way: leases of processes, and questions asked by POST."""
_REQUESTS = re.compile(r"^apiserver_request_total\{(.*)\} (\S+)$", re.MULTILINE)
_LABEL = re.compile(r'(\w+)="([^"]*)"')


class Sample(NamedTuple):
    """One submission, measured; the fields that are amounts per pod are divided by the pods that were bound."""

    pods: int
    lacking: int
    """Number of pods that were not bound in time."""
    first_s: float
    """Time from the first submission to the first binding."""
    last_s: float
    """Time from the first submission to the last binding."""
    cpu_ms: dict[str, float]
    """CPU milliseconds per pod of each process, until the last binding."""
    writes: dict[str, float]
    """Writes per pod by resource, until no more follow."""
    idle: float
    """Idle share of the machine until the last binding."""
    others: float
    """Share of the machine that processes outside of this measurement used."""
    memory_mib: dict[str, float]
    """Resident memory of each process afterwards."""

    @property
    def rate(self) -> float:
        """Return the pods per second from the first submission to the last binding."""
        return (self.pods - self.lacking) / self.last_s if self.last_s else 0.0

    def __str__(self) -> str:
        lacking = f", {self.lacking} of {self.pods} pods NOT BOUND" if self.lacking else ""
        shares = ", ".join(f"{name} {cost:.2f}" for name, cost in self.cpu_ms.items())
        return (
            f"{self.rate:.1f} pods/s, first bind {self.first_s:.2f} s, last bind {self.last_s:.2f} s{lacking}; "
            f"machine idle {self.idle:.0%}, used by others {self.others:.0%}\n"
            f"    CPU ms per pod: {shares}; writes per pod: {sum(self.writes.values()):.2f}"
        )


def median(samples: Iterable[Sample]) -> Sample:
    """Return a sample whose every figure is the median of these samples' figures."""
    found = list(samples)

    def middle(values: Iterable[Any]) -> Any:
        first, *_ = kept = list(values)
        if not isinstance(first, dict):
            return statistics.median(kept)
        return {name: statistics.median(each.get(name, 0.0) for each in kept) for name in first}

    return Sample(*map(middle, zip(*found, strict=True)))


class Meter:
    """A meter for the processes of one plane; the API server is one of them."""

    def __init__(self, client: Client, processes: Mapping[str, PlaneProcess]) -> None:
        self._client = client
        self._processes = processes

    def measure(self, submit: Callable[[], object], pods: int, timeout_s: float) -> Sample:
        """Submit, wait until so many pods are bound or the time is up, and return what it took."""
        before = self._writes()
        bindings = Bindings(self._client, pods)
        cpu, machine, started = self._cpu_s(), _machine_s(), time.monotonic()
        try:
            submit()
            bindings.done.wait(max(0.0, started + timeout_s - time.monotonic()))
            used = {name: now - cpu.get(name, 0.0) for name, now in self._cpu_s().items()}
            total, idle = (now - then for now, then in zip(_machine_s(), machine, strict=True))
        finally:
            bindings.stop()
        seen = sorted(bindings.bound.values()) or [started]
        after, bound = self.calm(), max(1, len(bindings.bound))
        return Sample(
            pods=pods,
            lacking=max(0, pods - len(bindings.bound)),
            first_s=seen[0] - started,
            last_s=seen[-1] - started,
            cpu_ms={name: seconds * 1000 / bound for name, seconds in used.items()},
            writes={name: each / bound for name, now in after.items() if (each := now - before.get(name, 0.0))},
            idle=idle / total,
            others=max(0.0, 1 - (idle + sum(used.values())) / total),
            memory_mib={name: sum(map(resident_mib, pids)) for name, pids in self._pids().items()},
        )

    def calm(self) -> dict[str, float]:
        """Wait until a second passes without a write, at most fifteen; return the number of writes by resource."""
        deadline, now = time.monotonic() + _MOST_CALM_S, self._writes()
        while True:
            before = now
            time.sleep(_CALM_S)
            now = self._writes()
            if now == before or time.monotonic() > deadline:
                return now

    def _writes(self) -> dict[str, float]:
        """Return the successful writes since the API server started, by resource."""
        counts: dict[str, float] = {}
        for labels, value in _REQUESTS.findall(self._client.request("GET", "/metrics").decode()):
            of = dict(_LABEL.findall(labels))
            if of["verb"] in _WRITES and of["resource"] not in _LIKE_READS and of["code"].startswith("2"):
                name = "/".join(filter(None, (of["resource"], of["subresource"])))
                counts[name] = counts.get(name, 0.0) + float(value)
        return counts

    def _cpu_s(self) -> dict[str, float]:
        return {name: cpu_s(part.pid) for name, part in self._processes.items() if part.pid} | {
            CLIENT: time.process_time()
        }

    def _pids(self) -> dict[str, list[int]]:
        return {name: [part.pid, *children(part.pid)] for name, part in self._processes.items() if part.pid}


def _machine_s() -> tuple[float, float]:
    """Return the CPU seconds of all cores since the machine started: all, and idle ones."""
    first = Path("/proc/stat").read_text(encoding="ascii").splitlines()[0]
    ticks = [int(each) / os.sysconf("SC_CLK_TCK") for each in first.split()[1:9]]
    return sum(ticks), ticks[3] + ticks[4]
