"""Innocent tenants beside hostile ones: the gangs of the first start as without the others.

The same load is measured three times in one run: at rest; while each hostile tenant does something every second, which
leaves the machine some room; and while they do all that they can. The ratios of the times from submission to all pods
running are printed; nothing is asserted of times. What a flood does to the API server and to the machine delays
everybody: beside each gang an equal Job of Kubernetes' own is submitted, which Muster never sees, and its ratio is
printed as well.
"""

import contextlib
import os
import random
import statistics
import sys
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from gang_jobs import job, metric
from hostile import Worker, at_work
from tenants import Tenant, tenant

from muster.api.base import Resource
from muster.api.kubernetes.core import NAMESPACES, PODS, Pod
from muster.api.volcano.batch import JOBS, Job
from muster.kube.client import Client
from muster.kube.errors import AlreadyExists, ServerError, Unreachable
from muster.kube.reflector import Reflector
from musterctl.plane.plane import Plane

QUOTAS: Resource[dict[str, Any]] = Resource("", "v1", "resourcequotas", "ResourceQuota", dict[str, Any])
STOCK_JOBS: Resource[dict[str, Any]] = Resource("batch", "v1", "jobs", "Job", dict[str, Any])
INNOCENT, HOSTILE = 4, 2
MIB = 2**20
QUOTA = {"pods": "300", "requests.nvidia.com/gpu": "8"}
"""What the administrator lets a hostile tenant have: what he gets by rights delays others by rights."""
PAUSES_S = {"steady storm": 1.0, "flood": 0.2}
"""What a hostile tenant waits between two deeds, on average."""
COMPLETED_S = 180.0
ENDED_S = 900.0
"""For namespaces with thousands of objects to be deleted, some of a megabyte: that keeps the API server busy."""


class Innocents:
    """Tenants that submit small gangs, the same ones each time, and what a watch tells of these.

    Beside each gang they submit an equal Job of Kubernetes' own, for the cluster's own scheduler.
    """

    def __init__(self, tenants: list[Tenant], load: float) -> None:
        self._tenants = tenants
        self._load = load
        self._submitted: dict[str, float] = {}
        self._replicas: dict[str, int] = {}
        self._started: dict[str, dict[str, float]] = {}
        self._phases: dict[str, str] = {}

    @contextlib.contextmanager
    def watched(self, admin: Client) -> Iterator[None]:
        """Follows the Jobs and pods of these tenants during the block."""
        watches: list[Reflector[Any]] = []
        for one in self._tenants:
            jobs, pods = (
                Reflector(admin, JOBS, namespace=one.namespace),
                Reflector(admin, PODS, namespace=one.namespace),
            )
            jobs.add_handler(self.job_seen)
            pods.add_handler(self.pod_seen)
            watches += [jobs, pods]
        try:
            for watch in watches:
                watch.start()
                assert watch.wait_synced(10)
            yield
        finally:
            for watch in watches:
                watch.stop()

    def job_seen(self, old: Job | None, new: Job | None) -> None:
        """A Job of Muster's has changed."""
        del old
        if new is not None:
            self._phases[new.metadata.name] = new.status.state.phase

    def pod_seen(self, old: Pod | None, new: Pod | None) -> None:
        """A pod has changed; the first time that it runs counts."""
        del old
        if new is not None and new.status.phase in {"Running", "Succeeded"}:
            for owner in new.metadata.owner_references:
                self._started.setdefault(owner.name, {}).setdefault(new.metadata.uid, time.monotonic())

    def submit(self, kind: str, count: int) -> list[str]:
        """Submits gangs one after the other, and waits until the last has completed; answers their names."""
        made, chance = [], random.Random(self._load)  # noqa: S311 - the load is no secret
        for number in range(count):
            one = self._tenants[number % len(self._tenants)]
            name, replicas = f"{kind}-{number}", chance.choice([1, 2, 4, 8])
            gang = job(name, one.namespace, replicas=replicas, gpus=1, run_s=1.0, cpu="10m")
            self._submit(one, JOBS, name, gang, replicas)
            made.append(name)
            time.sleep(chance.uniform(0.05, 0.25))
            self._submit(one, STOCK_JOBS, stock(name), stock_job(stock(name), replicas), replicas)
            time.sleep(chance.uniform(0.05, 0.25))
        deadline = time.monotonic() + COMPLETED_S
        while left := self._left(made):
            assert time.monotonic() < deadline, f"innocent gangs that have not completed: {left}"
            time.sleep(0.1)
        return made

    def _submit(self, one: Tenant, resource: Resource[Any], name: str, manifest: Any, replicas: int) -> None:
        """Submits as often as the API server is too busy; the time counts from the first try."""
        self._submitted[name], self._replicas[name] = time.monotonic(), replicas
        deadline = time.monotonic() + COMPLETED_S
        while True:
            try:
                one.client.create(resource, manifest, one.namespace)
            except AlreadyExists:
                return
            except (ServerError, Unreachable):
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.1)
            else:
                return

    def _left(self, made: list[str]) -> dict[str, str | None]:
        gangs = {name: self._phases.get(name) for name in made if self._phases.get(name) != "Completed"}
        return gangs | {stock(name): None for name in made if self._whole(stock(name)) is None}

    def _whole(self, name: str) -> float | None:
        """When as many of its pods ran as it asked for, in monotonic seconds; None before."""
        times = sorted(self._started.get(name, {}).values())
        return times[self._replicas[name] - 1] if len(times) >= self._replicas[name] else None

    def times_s(self, submitted: list[str]) -> list[float]:
        """From submission until all pods have run."""
        return [whole - self._submitted[name] for name in submitted if (whole := self._whole(name)) is not None]


def stock(name: str) -> str:
    """The name of the Job of Kubernetes' own beside a gang."""
    return f"stock-{name}"


def stock_job(name: str, replicas: int) -> dict[str, Any]:
    """A Job of Kubernetes' own with as many pods, which end as soon."""
    container = {"name": "main", "image": "none", "resources": {"requests": {"cpu": "10m"}}}
    metadata = {"annotations": {"kwok.muster.dev/run-seconds": "1.0"}}
    template = {"metadata": metadata, "spec": {"restartPolicy": "Never", "containers": [container]}}
    return {
        "metadata": {"name": name},
        "spec": {"parallelism": replicas, "completions": replicas, "template": template},
    }


def processes(plane: Plane) -> dict[str, list[int]]:
    """The pids of each part: its own, and those of its children."""
    children: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text(encoding="utf-8").rpartition(")")[2].split()
        except OSError:
            continue  # it has ended meanwhile
        children.setdefault(int(fields[1]), []).append(int(stat.parent.name))
    return {part.name: [pid, *sorted(children.get(pid, []))] for part in plane.parts.values() if (pid := part.pid)}


def most_memory(pids: list[int]) -> int:
    """The most bytes that any of the processes has ever held."""
    lines = [line for pid in pids for line in Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines()]
    return max(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:"))


def cpu_s(pids: dict[str, list[int]]) -> dict[str, float]:
    """The CPU seconds that each part has used so far, and the tests themselves."""
    ticks = os.sysconf("SC_CLK_TCK")

    def used(pid: int) -> float:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / ticks

    return {part: sum(map(used, some)) for part, some in {**pids, "tests": [os.getpid()]}.items()}


@contextlib.contextmanager
def measured(what: str, pids: dict[str, list[int]]) -> Iterator[None]:
    """Prints how many CPUs each part used during the block."""
    start_s, before = time.monotonic(), cpu_s(pids)
    yield
    wall_s, after = time.monotonic() - start_s, cpu_s(pids)
    cpus = {part: (after[part] - before[part]) / wall_s for part in before}
    told = ", ".join(f"{part} {cpus[part]:.2f}" for part in sorted(cpus, key=lambda part: -cpus[part]))
    sys.stderr.write(f"\nCPUs {what} ({wall_s:.0f} s, {sum(cpus.values()):.2f} in all): {told}\n")


Making = Callable[[Plane, Tenant, list[str], random.Random], Worker]
"""Makes a hostile tenant act, with the namespaces of the others."""


def run_storm(
    plane: Plane, folder: Path, seed: int, *, gangs: int, making: Making, limits: dict[str, int],
    check: Callable[[Plane], None] = lambda _: None, tidy: bool = True,
) -> None:  # fmt: skip
    """The same load at rest and in both storms, and what must hold of it; `limits`: bytes of memory, by part.

    `check` looks at the plane before all is deleted. A plane that ends with the test need not be `tidy`.
    """
    chance = random.Random(seed)  # noqa: S311 - the order of events is no secret
    admin, mark = plane.client(), uuid.uuid4().hex[:6]
    innocent = [tenant(plane, f"innocent-{mark}-{number}", folder) for number in range(INNOCENT)]
    bad = [tenant(plane, f"hostile-{mark}-{number}", folder) for number in range(HOSTILE)]
    for one in bad:
        admin.create(QUOTAS, {"metadata": {"name": "all"}, "spec": {"hard": QUOTA}}, one.namespace)
    others = [one.namespace for one in innocent]
    hostile = [making(plane, one, others, random.Random(chance.random())) for one in bad]  # noqa: S311
    innocents = Innocents(innocent, chance.random())
    before, failed = processes(plane), metric(plane, "extender", "muster_cycles_failed_total")
    with innocents.watched(admin):
        innocents.submit("first", INNOCENT)
        with measured("at rest", before):
            runs = {"at rest": innocents.submit("calm", gangs)}
        for storm, pause_s in PAUSES_S.items():
            with at_work(hostile, pause_s):
                time.sleep(5 * pause_s)
                with measured(storm, before):
                    runs[storm] = innocents.submit(storm.replace(" ", "-"), gangs)
        report(innocents, runs, hostile)
        assert processes(plane) == before, "a process has restarted"
        assert metric(plane, "extender", "muster_cycles_failed_total") == failed, "a planning cycle has failed"
        check_memory(before, limits)
        check(plane)
    if tidy:
        end(admin, [*innocent, *bad])


def report(innocents: Innocents, runs: dict[str, list[str]], hostile: list[Worker]) -> None:
    """Prints how long gangs took to start, and what the hostile have done."""
    for what, name in (("gangs", str), ("stock", stock)):
        times = {run: innocents.times_s([name(gang) for gang in gangs]) for run, gangs in runs.items()}
        figures = {run: (statistics.median(some), max(some)) for run, some in times.items()}
        rest = figures["at rest"]
        told = [
            f"{run} median {median:.2f} s ({median / rest[0]:.1f} times), max {most:.2f} s ({most / rest[1]:.1f} times)"
            for run, (median, most) in figures.items()
        ]
        sys.stderr.write(f"{what}, submit → all running: {'; '.join(told)}\n")
    did: Counter[tuple[str, int]] = sum((he.told for he in hostile), Counter())
    words = [f"{deed} {code or 'done'}: {count}" for (deed, code), count in sorted(did.items())]
    sys.stderr.write(f"{sum(did.values())} deeds: {', '.join(words)}\n")


def check_memory(pids: dict[str, list[int]], limits: dict[str, int]) -> None:
    """No process of ours has held more than its budget."""
    held = {part: most_memory(pids[part]) for part in limits}
    sys.stderr.write("most memory: " + ", ".join(f"{part} {held[part] / MIB:.0f} MiB" for part in held) + "\n")
    for part, most in limits.items():
        assert held[part] <= most, f"{part} has held {held[part] / MIB:.0f} MiB of {most / MIB:.0f}"


def end(admin: Client, tenants: list[Tenant]) -> None:
    """Deletes the tenants, and waits until nothing of theirs takes room."""
    for one in tenants:
        admin.delete(NAMESPACES, one.namespace)
    deadline = time.monotonic() + ENDED_S
    while any(_has_pods(admin, one) for one in tenants):
        assert time.monotonic() < deadline, "pods are left over"
        time.sleep(0.2)


def _has_pods(admin: Client, one: Tenant) -> bool:
    """True if the tenant has pods, or the API server is too busy with deleting them to say so."""
    try:
        return bool(admin.list(PODS, one.namespace))
    except (Unreachable, ServerError):
        return True
