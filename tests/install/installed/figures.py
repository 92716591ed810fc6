"""Figures of a run, printed at its end: times, refusals, memory and CPU of each container of Muster's."""

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from realnode import cgroups

from installed.chart import Pod, Release
from installed.cluster import Cluster
from muster.resources.quantity import parse

_FIGURES: dict[str, str] = {}
_MIB: Final = 1 << 20
_PERIOD_S: Final = 20.0
"""How long CPU is measured: some periods of everything that is done regularly."""


class Use(NamedTuple):
    """What a container has used so far."""

    memory: int
    """Its working set in bytes: what it would miss."""
    cpu_s: float


def note(what: str, value: str) -> None:
    """Notes a figure for the end of the run."""
    _FIGURES[what] = value


def lines() -> list[str]:
    """Everything that was noted, a line each."""
    return [f"{what}: {value}" for what, value in _FIGURES.items()]


@contextlib.contextmanager
def timed(what: str) -> Iterator[None]:
    """Notes how long its body took."""
    start = time.monotonic()
    yield
    note(what, f"{time.monotonic() - start:.1f} s")


def at_rest(cluster: Cluster, release: Release) -> dict[str, int]:
    """Notes memory and CPU of every container of the release, and of all; the memory in bytes, by container."""
    pods = release.pods()
    before = {name: use(group) for name, group in _groups(cluster, pods)}
    time.sleep(_PERIOD_S)
    memory, total_cpu = {}, 0.0
    for name, group in _groups(cluster, pods):
        now = use(group)
        cpu = (now.cpu_s - before[name].cpu_s) / _PERIOD_S
        memory[name] = now.memory
        total_cpu += cpu
        note(f"at rest: {name}", f"{now.memory / _MIB:.0f} MiB, {cpu * 1000:.0f} mCPU")
    note("at rest: all of Muster", f"{sum(memory.values()) / _MIB:.0f} MiB, {total_cpu * 1000:.0f} mCPU")
    return memory


def size(quantity: str) -> int:
    """An amount of memory as the API server writes it, in bytes."""
    return int(parse(quantity))


def use(group: str) -> Use:
    """What the control group of a container has used, in either version of control groups."""
    trees = cgroups.hierarchies()
    files = {name: file for tree in trees for name in _FILES if (file := tree / group / name).exists()}
    stat = dict(line.split() for line in files["memory.stat"].read_text().splitlines())
    if "cpu.stat" in files and "memory.current" in files:
        used, idle = int(files["memory.current"].read_text()), int(stat["inactive_file"])
        spent = dict(line.split() for line in files["cpu.stat"].read_text().splitlines())
        return Use(used - idle, int(spent["usage_usec"]) / 1e6)
    used, idle = int(files["memory.usage_in_bytes"].read_text()), int(stat["total_inactive_file"])
    return Use(used - idle, int(files["cpuacct.usage"].read_text()) / 1e9)


_FILES: Final = ("memory.current", "memory.usage_in_bytes", "memory.stat", "cpu.stat", "cpuacct.usage")


def _groups(cluster: Cluster, pods: list[Pod]) -> Iterator[tuple[str, str]]:
    """Each container by `pod/container`, and the path of its control group below a hierarchy."""
    for pod in pods:
        for status in pod["status"]["containerStatuses"]:
            identity = status["containerID"].partition("://")[2]
            node = cluster.node(pod["spec"]["nodeName"])
            tree = next(each for each in cgroups.hierarchies() if list((each / node.group).rglob("memory.stat")))
            found: Path = next((tree / node.group).rglob(identity))
            yield f"{pod['metadata']['name']}/{status['name']}", str(found.relative_to(tree))
