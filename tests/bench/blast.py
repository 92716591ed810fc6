"""What a tenant does to others: the time until another tenant's gang has its nodes, beside hopeless gangs and floods.

Each gang is followed by a stock Job of the same pods, for kube-controller-manager and the cluster's own kube-scheduler,
which Muster never sees. `now` is the median ratio of such pairs beside the same flood, so a change of the machine's
other load affects both; `slowed` divides it by the ratio at rest. The CPU time of each process follows, in cores.
"""

import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Any

import yaml

from muster.api.kubernetes.core import INDEXED_JOBS, NAMESPACES, PODS, Pod
from muster.api.kubernetes.meta import Resource
from muster.api.volcano.batch import JOBS
from muster.api.volcano.scheduling import POD_GROUPS, QUEUES
from muster.kube.client import Client
from muster.kube.errors import APIError, NotFound
from muster.kube.reflector import Reflector
from musterctl.plane.plane import Plane
from musterctl.plane.state import CONTROLLER_MANAGER, SCHEDULER
from tests.bench.throughput import PARTS, costs, make_nodes, warm_up

NODES = 200
ROUNDS, MEMBERS = 15, 8
HOPELESS, SHAPES = 12, 600
THREADS = 2
"""Of each flood; each of them sends as fast as it is answered."""
SETTLE_S = 5.0
LONGEST_S = 120.0
GOOD, BAD = "good", "bad"


class Starts:
    """The times at which pods of a namespace got their nodes, by the beginning of their names."""

    def __init__(self, client: Client) -> None:
        self._bound: dict[str, set[str]] = {}
        self._changed = threading.Condition()
        self._reflector = Reflector(client, PODS, namespace=GOOD)
        self._reflector.add_handler(self._seen)
        self._reflector.start()
        self._reflector.wait_synced(30)

    def stop(self) -> None:
        """End the watch."""
        self._reflector.stop()

    def wait(self, name: str) -> float:
        """Return the monotonic time when all members of this name have a node."""
        with self._changed:
            if not self._changed.wait_for(lambda: len(self._bound.get(name, ())) == MEMBERS, LONGEST_S):
                raise TimeoutError(f"{name} has {len(self._bound.get(name, ()))} of {MEMBERS} pods after {LONGEST_S} s")
            return time.monotonic()

    def _seen(self, _: Pod | None, new: Pod | None) -> None:
        if new is not None and new.spec.node_name:
            with self._changed:
                self._bound.setdefault(new.metadata.name.partition("-")[0], set()).add(new.metadata.uid)
                self._changed.notify_all()


Attack = Callable[[Client], AbstractContextManager[None]]


def run() -> Iterator[str]:
    """At rest, and beside each attack, one after the other on one plane."""
    with (
        tempfile.TemporaryDirectory() as folder,
        Plane(
            Path(folder) / "plane",
            (*PARTS, CONTROLLER_MANAGER, SCHEDULER),
            bound=True,
            arguments={CONTROLLER_MANAGER: ["--node-monitor-grace-period=10h"]},  # nodes without a kubelet stay Ready
        ) as plane,
    ):
        client = plane.client()
        make_nodes(client, NODES)
        for name in (GOOD, BAD):
            client.create(NAMESPACES, {"metadata": {"name": name}})
            client.create(QUEUES, {"metadata": {"name": name}, "spec": {"deserved": {"nvidia.com/gpu": NODES * 4}}})
        warm_up(plane, client)
        numbers, rest = count(), 0.0
        for what, attack in {"at rest": _nothing, **ATTACKS}.items():
            with attack(client):
                time.sleep(SETTLE_S)
                began_s, cpu = time.monotonic(), costs(plane, {})
                gangs, stock, now = measure(client, numbers)
                took_s, cpu = time.monotonic() - began_s, costs(plane, cpu)
            rest = rest or now
            cores = ", ".join(f"{name} {seconds / took_s:.2f}" for name, seconds in cpu.items())
            yield (
                f"{what:24} gangs {gangs:6.3f} s   stock Jobs {stock:6.3f} s   now {now:5.2f} times   "
                f"slowed {now / rest:5.2f}\n    {cores}"
            )


def measure(client: Client, numbers: Iterator[int]) -> tuple[float, float, float]:
    """Return the median times from submission to the last node of gangs and stock Jobs, and of the pairs' ratios."""
    starts, times = Starts(client), (list[float](), list[float]())
    for number in (next(numbers) for _ in range(ROUNDS)):
        for kind, submit in enumerate((_submit_gang, _submit_stock_job)):
            name, began_s = f"{'gs'[kind]}{number}", time.monotonic()
            submit(client, name)
            times[kind].append(starts.wait(name) - began_s)
    starts.stop()
    _remove_all(client, GOOD)
    ratios = [one / other for one, other in zip(*times, strict=True)]
    return statistics.median(times[0]), statistics.median(times[1]), statistics.median(ratios)


def _remove_all(client: Client, namespace: str) -> None:
    """Delete the namespace's Jobs and pods; the garbage collector does the same meanwhile."""
    resources: tuple[Resource[Any], ...] = (JOBS, INDEXED_JOBS, PODS)
    for resource in resources:
        for each in client.list(resource, namespace):
            with suppress(NotFound):
                client.delete(resource, each.metadata.name, namespace, grace_period_s=0)


def _submit_gang(client: Client, name: str) -> None:
    client.create(JOBS, gang(name, GOOD), GOOD)


def _submit_stock_job(client: Client, name: str) -> None:
    template = {"spec": pod_spec(restartPolicy="Never")}
    spec = {"parallelism": MEMBERS, "completions": MEMBERS, "template": template}
    client.create(INDEXED_JOBS, {"metadata": {"name": name}, "spec": spec}, GOOD)


def pod_spec(gpus: int = 1, **more: Any) -> dict[str, Any]:
    """The spec of a pod that asks for GPUs."""
    amounts = {"cpu": "100m", "nvidia.com/gpu": str(gpus)}
    return {"containers": [{"name": "main", "image": "none", "resources": {"limits": amounts}}], **more}


def gang(name: str, queue: str, members: int = MEMBERS, gpus: int = 1, **spec: Any) -> dict[str, Any]:
    """A Volcano Job of one task."""
    task = {"name": "w", "replicas": members, "template": {"spec": pod_spec(gpus, **spec)}}
    content = {"schedulerName": "volcano", "queue": queue, "minAvailable": members, "tasks": [task]}
    return {"metadata": {"name": name}, "spec": content}


@contextmanager
def _nothing(_: Client) -> Iterator[None]:
    yield


def _one_of(names: list[str]) -> dict[str, Any]:
    term = {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": names}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}


def _jobs(*made: dict[str, Any]) -> Attack:
    @contextmanager
    def attack(client: Client) -> Iterator[None]:
        for each in made:
            client.create(JOBS, each, BAD)
        yield
        _remove_all(client, BAD)

    return attack


def _flood(send: Callable[[Client, int], None]) -> Attack:
    @contextmanager
    def attack(client: Client) -> Iterator[None]:
        over, numbers = threading.Event(), count()
        client.create(POD_GROUPS, {"metadata": {"name": "flips"}, "spec": {"minMember": 1, "queue": BAD}}, BAD)

        def sends() -> None:
            while not over.is_set():
                try:
                    send(client, next(numbers))
                except APIError:  # 429 is an answer, too
                    time.sleep(0.01)

        with ExitStack() as stack:
            for thread in [threading.Thread(target=sends) for _ in range(THREADS)]:
                thread.start()
                stack.callback(thread.join)
            stack.callback(over.set)
            yield
        client.delete(POD_GROUPS, "flips", BAD)

    return attack


def _dry_run(client: Client, number: int) -> None:
    client.create(JOBS, gang(f"dry-{number}", BAD), BAD, dry_run=True)


def _condition(client: Client, number: int) -> None:
    told = {"type": "Unschedulable", "status": ("True", "False")[number % 2], "reason": f"R{number}", "message": "x"}
    client.merge_patch(POD_GROUPS, "flips", {"status": {"conditions": [told]}}, BAD)


_YAML = yaml.safe_dump(gang("yaml", BAD) | {"metadata": {"name": "yaml", "annotations": {"text": "x: [1]\n" * 30_000}}})


def _yaml(client: Client, _: int) -> None:
    path = f"/apis/{JOBS.group}/{JOBS.version}/namespaces/{BAD}/jobs?dryRun=All"
    client.request("POST", path, body=_YAML.encode(), content_type="application/yaml")


ATTACKS: dict[str, Attack] = {
    f"{HOPELESS} hopeless gangs": _jobs(
        *(gang(f"hopeless-{n}", BAD, 3, 8, affinity=_one_of([f"node-{n:05d}", "none"])) for n in range(HOPELESS))
    ),
    f"{SHAPES} odd shapes": _jobs(
        *(gang(f"odd-{n}", BAD, 1, 8, affinity=_one_of([f"no-{n}-{i}" for i in range(50)])) for n in range(SHAPES))
    ),
    "a flood of dry runs": _flood(_dry_run),
    "a flood of conditions": _flood(_condition),
    "a flood of YAML": _flood(_yaml),
}
"""Attack → what another tenant does meanwhile."""
