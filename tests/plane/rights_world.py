"""Two tenants of one plane: what one has, and whether it is as it was after the other one has tried something."""

import contextlib
import json
import ssl
import urllib.error
import urllib.request
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jobs import job, task
from tenants import JSON, Tenant, tenant, uids_of

from muster.api.kubernetes.core import NAMESPACES, NODES, PODS, SECRETS, Pod
from muster.api.muster.placement import PLACEMENTS
from muster.api.volcano.batch import COMMANDS, JOBS, Job
from muster.api.volcano.scheduling import POD_GROUPS, QUEUES, Queue
from muster.kube.client import Client
from muster.kube.errors import APIError, NotFound
from muster.volcano.podgroup import group_name
from musterctl.plane.plane import Plane

WaitFor = Callable[..., Any]
SIZE = 2
"""Pods of the innocent tenant's Job, with a GPU each."""
WIDE = 6
"""Pods of the gang that he submits afterwards, which takes as many whole nodes of eight."""
_WAIT_S = 60.0


@dataclass(slots=True)
class World:
    """The innocent tenant's Job runs in his queue; the other one has a Job too, and a queue is closed."""

    plane: Plane
    admin: Client
    wait_for: WaitFor
    innocent: Tenant
    he: Tenant
    queue: Queue
    closed: Queue
    train: Job
    mine: Job
    before: tuple[Any, ...] = ()
    made: list[str] = field(default_factory=list)

    @property
    def group(self) -> str:
        """The PodGroup of the innocent tenant's Job."""
        return group_name(self.train)

    @property
    def my_group(self) -> str:
        """The PodGroup of the other one's Job."""
        return group_name(self.mine)

    @property
    def member(self) -> Pod:
        """A pod of the innocent tenant's Job."""
        return self.admin.get(PODS, f"{self.train.metadata.name}-w-0", self.innocent.namespace)

    @property
    def nodes(self) -> list[str]:
        """The names of all nodes."""
        return [node.metadata.name for node in self.admin.list(NODES)]

    def as_it_is(self) -> tuple[Any, ...]:
        """What of the innocent tenant's must not change."""
        namespace, name = self.innocent.namespace, self.train.metadata.name
        status = self.admin.get(JOBS, name, namespace).status
        group = self.admin.get(POD_GROUPS, self.group, namespace)
        queue = self.admin.get(QUEUES, self.queue.metadata.name)
        placement = self.admin.get(PLACEMENTS, self.group, namespace)
        uids = {pod: uid for pod, uid in uids_of(self.admin, namespace).items() if pod.startswith(f"{name}-")}
        return (
            ("Job", status.state.phase, status.running, status.failed, status.retry_count),
            ("PodGroup", group.status.phase, group.spec.min_member, group.spec.queue),
            ("queue", queue.status.state, queue.spec.weight, dict(queue.status.allocated)),
            ("Placement", placement.metadata.uid, placement.spec.epoch, placement.status.phase),
            ("Secret", self.admin.get(SECRETS, f"{name}-ssh", namespace).metadata.resource_version),
            ("pods", uids),
        )

    def assert_unharmed(self) -> None:
        """Nothing of the innocent tenant's has changed."""
        changed = [(now, was) for now, was in zip(self.as_it_is(), self.before, strict=True) if now != was]
        assert not changed, f"as it is, and as it was: {changed}"

    def assert_another_gang_starts(self) -> None:
        """The innocent tenant gets most of the cluster for a moment, as if he were alone."""
        name = f"wide-{uuid.uuid4().hex[:6]}"
        wide = job(name, self.innocent.namespace, task("w", WIDE))
        wide["spec"]["tasks"][0]["template"]["spec"]["containers"][0]["resources"] = {"limits": {"nvidia.com/gpu": 8}}
        self.innocent.client.create(JOBS, wide, self.innocent.namespace)
        try:
            self.wait_for(lambda: self._phase(name) == "Running", _WAIT_S, f"the gang {name} of {WIDE} whole nodes")
        finally:
            self.innocent.client.delete(JOBS, name, self.innocent.namespace, propagation="Foreground")
            self.wait_for(lambda: not self._pods_of(name), _WAIT_S, f"the pods of {name} to go")

    def clean(self) -> None:
        """Deletes what the other tenant has made, but for his first Job."""
        namespace = self.he.namespace
        keep = {self.mine.metadata.name, self.my_group}
        for resource in (JOBS, POD_GROUPS, COMMANDS):
            for one in self.admin.list(resource, namespace):
                if one.metadata.name not in keep:
                    with contextlib.suppress(NotFound):  # it may go with its owner, or have been carried out
                        self.admin.delete(resource, one.metadata.name, namespace)
        for pod in self.admin.list(PODS, namespace):
            if not pod.metadata.name.startswith(f"{self.mine.metadata.name}-"):
                with contextlib.suppress(APIError):
                    self.admin.delete(PODS, pod.metadata.name, namespace, grace_period_s=0)

    def post_to_extender(self, path: str, body: JSON, **headers: str) -> tuple[int, JSON]:
        """What the extender's port answers him."""
        return _post(f"http://127.0.0.1:{self.plane.state.ports['extender']}{path}", body, headers)

    def post_to_webhook(self, path: str, body: JSON) -> tuple[int, JSON]:
        """What the webhook answers to a review that an API server sends for him."""
        url, pki = f"https://127.0.0.1:{self.plane.state.ports['webhook']}{path}", self.plane.root / "pki"
        context = ssl.create_default_context(cafile=str(pki / "ca.crt"))
        context.load_cert_chain(pki / "webhook-clients" / "client.crt", pki / "webhook-clients" / "client.key")
        return _post(url, body, {}, context)

    def _phase(self, name: str) -> str:
        return self.admin.get(JOBS, name, self.innocent.namespace).status.state.phase

    def _pods_of(self, name: str) -> list[str]:
        return [pod for pod in uids_of(self.admin, self.innocent.namespace) if pod.startswith(f"{name}-")]


@contextmanager
def two_tenants(plane: Plane, folder: Path, wait_for: WaitFor) -> Iterator[World]:
    """The world, and the end of all that it has."""
    admin, mark = plane.client(), uuid.uuid4().hex[:6]
    innocent, he = (tenant(plane, f"{who}-{mark}", folder) for who in ("innocent", "hostile"))
    queue = admin.create(QUEUES, {"metadata": {"name": f"innocent-{mark}"}, "spec": {"weight": 3}})
    closed = admin.create(QUEUES, {"metadata": {"name": f"closed-{mark}"}, "spec": {}})
    jobs = []
    for who, into in ((innocent, queue.metadata.name), (he, "default")):
        manifest = job("train" if who is innocent else "mine", who.namespace, task("w", SIZE), queue=into)
        manifest["spec"]["plugins"] = {"ssh": [], "svc": []}
        limits = {"limits": {"nvidia.com/gpu": 1}} if who is innocent else {}
        manifest["spec"]["tasks"][0]["template"]["spec"]["containers"][0]["resources"] = limits
        jobs.append(who.client.create(JOBS, manifest, who.namespace))
    one = World(plane, admin, wait_for, innocent, he, queue, closed, *jobs)
    try:
        for which in jobs:
            name, namespace = which.metadata.name, which.metadata.namespace
            wait_for(lambda n=name, ns=namespace: admin.get(JOBS, n, ns).status.running == SIZE, _WAIT_S, name)
        admin.merge_patch(QUEUES, closed.metadata.name, {"status": {"state": "Closed"}}, subresource="status")
        wait_for(lambda: _settled(one), _WAIT_S, "queue and gang to tell that the Job runs")
        one.before = one.as_it_is()
        yield one
    finally:
        for who in (innocent, he):
            admin.delete(NAMESPACES, who.namespace)
        for name in (queue.metadata.name, closed.metadata.name):
            wait_for(lambda name=name: _deleted(admin, name), _WAIT_S, f"queue {name} to be empty")


def _settled(world: World) -> bool:
    queue = world.admin.get(QUEUES, world.queue.metadata.name)
    group = world.admin.get(POD_GROUPS, world.group, world.innocent.namespace)
    placement = world.admin.get(PLACEMENTS, world.group, world.innocent.namespace)
    gpus = queue.status.allocated.get("nvidia.com/gpu")
    return gpus == str(SIZE) and group.status.phase == "Running" and placement.status.phase == "Bound"


def _deleted(admin: Client, queue: str) -> bool:
    try:
        admin.delete(QUEUES, queue)
    except APIError as error:
        return error.status == 404
    return True


def _post(
    url: str, body: JSON, headers: dict[str, str], context: ssl.SSLContext | None = None
) -> tuple[int, dict[str, Any]]:
    sent = {"Content-Type": "application/json", **headers}
    request = urllib.request.Request(url, json.dumps(body).encode(), sent)  # noqa: S310 - a port of the plane
    try:
        with urllib.request.urlopen(request, timeout=30, context=context) as answer:  # noqa: S310
            return answer.status, json.loads(answer.read())
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.loads(error.read() or b"{}")
