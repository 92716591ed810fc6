"""What one write costs the API server in CPU, by kind of object and by who writes it; with and without our webhooks.

Each kind is written many times, one after the other, and the CPU time of kube-apiserver in between is divided by that.
What it uses while nothing happens is measured first and taken off.
"""

import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from msgspec import to_builtins

from muster.api import names
from muster.api.kubernetes.core import EVENTS, PODS
from muster.api.kubernetes.meta import OwnerReference
from muster.api.muster.placement import PLACEMENTS
from muster.api.volcano.batch import JOBS, Job
from muster.api.volcano.scheduling import POD_GROUPS, QUEUES
from muster.kube.client import Client
from muster.volcano.podgroup import group_name, pod_group
from muster.volcano.tasks import owner_of
from musterctl.plane import rights
from musterctl.plane.plane import Plane
from tests.bench.throughput import cpu_s, manifest

PARTS = ("etcd", "kube-apiserver")
EACH = 300
_IDLE_S = 3.0
_NAMESPACE = "default"
Write = Callable[[int], object]


def run() -> Iterator[str]:
    """A plane with the webhook, then one without."""
    for parts, what in (((*PARTS, "webhook"), "with webhooks"), (PARTS, "without webhooks")):
        with tempfile.TemporaryDirectory() as folder, Plane(Path(folder) / "plane", parts, bound=True) as plane:
            plane.client().create(QUEUES, {"metadata": {"name": "default"}, "spec": {}})
            yield from measured(plane, what)


def measured(plane: Plane, what: str) -> Iterator[str]:
    """One line per kind of write."""
    pid = plane.part("kube-apiserver").pid or 0
    before, started = cpu_s(pid), time.monotonic()
    time.sleep(_IDLE_S)  # not a wait for something: this is how long is measured
    idle = (cpu_s(pid) - before) / (time.monotonic() - started)
    yield f"{what}: kube-apiserver uses {idle * 1000:.0f} ms CPU a second for itself"
    for name, write in writes(plane):
        for number in range(-20, 0):
            write(number)
        before, started = cpu_s(pid), time.monotonic()
        for number in range(EACH):
            write(number)
        used = cpu_s(pid) - before - idle * (time.monotonic() - started)
        yield f"    {name:54} {used / EACH * 1000:6.2f} ms"


def writes(plane: Plane) -> Iterator[tuple[str, Write]]:
    """The kinds of writes in an order in which each finds what it is about."""
    user = plane.client()
    controller, extender = (_client(plane, account) for account in ("muster-controller", "muster-scheduler"))
    yield "create a Job, a user with a certificate", lambda n: user.create(JOBS, manifest(_name(n), 1), _NAMESPACE)
    jobs = {job.metadata.name: job for job in user.list(JOBS, _NAMESPACE)}
    running = {"status": {"state": {"phase": "Running", "reason": "Because"}, "running": 1}}
    yield (
        "patch a Job's status, controller",
        lambda n: controller.merge_patch(JOBS, _name(n), running, _NAMESPACE, subresource="status"),
    )
    yield (
        "create a Job's PodGroup, controller",
        lambda n: controller.create(POD_GROUPS, pod_group(jobs[_name(n)], {}), _NAMESPACE),
    )
    groups = {group.metadata.name: group for group in user.list(POD_GROUPS, _NAMESPACE)}

    def change(number: int, body: dict[str, Any]) -> object:
        return extender.merge_patch(POD_GROUPS, group_name(jobs[_name(number)]), body, _NAMESPACE)

    yield "patch a PodGroup's status, extender", lambda n: change(n, {"status": {"phase": "Inqueue"}})
    note = '{"spec":{"epoch":1,"podSets":[{"name":"worker","runs":[{"node":"node-0"}]}]}}'
    noted = {"metadata": {"annotations": {names.PLACEMENT: note}}, "status": {"phase": "Running", "running": 1}}
    yield "patch its status and note a placement, extender", lambda n: change(n, noted)
    yield (
        "create a Placement, extender",
        lambda n: extender.create(PLACEMENTS, _placement(jobs[_name(n)], groups), _NAMESPACE),
    )
    bound = {"status": {"phase": "Bound", "bound": 1, "started": True}}
    yield (
        "patch a Placement, extender",
        lambda n: extender.merge_patch(PLACEMENTS, group_name(jobs[_name(n)]), bound, _NAMESPACE),
    )
    yield "read a Placement, controller", lambda n: controller.get(PLACEMENTS, group_name(jobs[_name(n)]), _NAMESPACE)
    yield (
        "read a Placement, a user with a certificate",
        lambda n: user.get(PLACEMENTS, group_name(jobs[_name(n)]), _NAMESPACE),
    )
    yield "create a pod, controller", lambda n: controller.create(PODS, _pod(n, jobs[_name(n)]), _NAMESPACE)
    yield "create an Event, extender", lambda n: extender.create(EVENTS, _event(n), _NAMESPACE)


def _client(plane: Plane, account: str) -> Client:
    """A client with the token of a process of ours."""
    target = plane.root / f"bench-{account}.kubeconfig"
    return Client.load(rights.kubeconfig(plane.kubeconfig, account, plane.root / "tokens", target))


def _name(number: int) -> str:
    return f"w{number}" if number >= 0 else f"warm{-number}"


def _placement(job: Job, groups: dict[str, Any]) -> dict[str, Any]:
    group = groups[group_name(job)].metadata
    owner = OwnerReference(api_version=POD_GROUPS.api_version, kind=POD_GROUPS.kind, name=group.name, uid=group.uid)
    runs = [{"name": "worker", "runs": [{"node": "node-0"}]}]
    spec = {"podGroupUID": group.uid, "epoch": 1, "deadline": "2030-01-01T00:00:00Z", "podSets": runs}
    metadata = {"name": group.name, "ownerReferences": [to_builtins(owner)]}
    return {"metadata": metadata, "spec": spec, "status": {"phase": "Planned", "planned": 1}}


def _pod(number: int, job: Job) -> dict[str, Any]:
    spec = manifest("x", 1)["spec"]["tasks"][0]["template"]["spec"]
    metadata = {"name": _name(number), "ownerReferences": [to_builtins(owner_of(job))]}
    return {"metadata": metadata, "spec": {**spec, "schedulerName": "volcano"}}


def _event(number: int) -> dict[str, Any]:
    about = {"apiVersion": "v1", "kind": "Pod", "name": _name(number), "namespace": _NAMESPACE}
    return {"metadata": {"name": _name(number)}, "involvedObject": about, "reason": "Scheduled", "type": "Normal"}
