"""Manifests of gangs, a record of what a watch told about their pods, and gangs that are disturbed as they start."""

import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from math import inf
from typing import Any

from builders import manifests
from watching import Watching

from muster.api.base import Resource
from muster.api.kubernetes.core import PODS, Pod
from muster.api.muster.gang import Slot
from muster.api.volcano.batch import JOBS
from muster.kube.client import Client
from muster.kube.errors import APIError, NotFound
from muster.kube.reflector import Reflector
from muster.workloads.table import gang_of, slot_of
from musterctl.plane.plane import Plane

RECOVERY_S = 90.0
"""A gang runs again within this time after something was killed, the slowest lease included."""

ATTEMPTS_S = 60.0


def job(
    name: str,
    namespace: str,
    *,
    replicas: int,
    gpus: int = 8,
    run_s: float | None = None,
    min_available: int | None = None,
    cpu: str = "1",
) -> dict[str, Any]:
    """A Volcano Job with one task `worker`; each pod asks for `gpus`, and ends after `run_s` if that is given."""
    annotations = {} if run_s is None else {"kwok.muster.dev/run-seconds": str(run_s)}
    resources = {"requests": {"cpu": cpu}, "limits": {"nvidia.com/gpu": gpus} if gpus else {}}
    spec = {"restartPolicy": "Never", "containers": [{"name": "main", "image": "none", "resources": resources}]}
    task = manifests.task("worker", replicas, template={"metadata": {"annotations": annotations}, "spec": spec})
    least = replicas if min_available is None else min_available
    return manifests.job(name, [task], namespace, scheduler_name="volcano", min_available=least)


def attempt(fn: Callable[[], object], *, refused: bool = False) -> None:
    """Does it until the API server and the webhook take it, which may be on their way up, or slow.

    What is there already, or gone, is no trouble; neither is what admission does not want, where it may be `refused`.
    """
    deadline = time.monotonic() + ATTEMPTS_S
    while True:
        try:
            fn()
        except NotFound:
            return
        except APIError as error:
            if error.status == HTTPStatus.CONFLICT or (refused and error.status == HTTPStatus.FORBIDDEN):
                return
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)
        else:
            return


@dataclass(slots=True)
class Life:
    """What was seen of one pod."""

    gang: str
    slot: Slot | None
    created: float
    node: str = ""
    bound: float | None = None
    nodes: set[str] = field(default_factory=set)
    phases: list[str] = field(default_factory=list)
    done: bool = False
    """It has succeeded, and not while it was being deleted: its owner does not count on one that goes."""
    ended: float | None = None
    """It has succeeded or failed."""
    gone: float | None = None

    def met(self, other: "Life") -> bool:
        """Whether both held their nodes at some time together."""
        return self._from() < other._until() and other._from() < self._until()

    def _from(self) -> float:
        return inf if self.bound is None else self.bound

    def _until(self) -> float:
        return min(inf if self.ended is None else self.ended, inf if self.gone is None else self.gone)


class History(Watching):
    """Every pod of a namespace by UID, as a watch told it; times are monotonic seconds."""

    def __init__(self, client: Client, namespace: str) -> None:
        self.pods: dict[str, Life] = {}
        self._lock = threading.Lock()
        pods = Reflector(client, PODS, namespace=namespace)
        pods.add_handler(self._changed)
        super().__init__(pods)

    def of(self, gang: str) -> list[Life]:
        """The pods of a gang whose name begins so."""
        with self._lock:
            return [life for life in self.pods.values() if life.gang.startswith(gang)]

    def half_placed_s(self, gang: str, minimum: int) -> float:
        """The longest time for which 0 < bound < minimum, until now if it still is so."""
        lives = self.of(gang)
        changes = [(life.bound, 1) for life in lives if life.bound is not None]
        changes += [(life.gone, -1) for life in lives if life.bound is not None and life.gone is not None]
        longest, bound, since = 0.0, 0, 0.0
        for moment, change in sorted(changes):
            if 0 < bound < minimum:
                longest = max(longest, moment - since)
            elif change:
                since = moment
            bound += change
        return max(longest, time.monotonic() - since) if 0 < bound < minimum else longest

    def told(self, gang: str) -> str:
        """The lives of a gang's pods, a line each, in seconds since the first was created."""
        lives = sorted(self.of(gang), key=lambda life: life.created)

        def at(moment: float | None) -> str:
            return "-" if moment is None else f"{moment - lives[0].created:.1f}"

        return "\n".join(
            f"{life.slot}: created {at(life.created)}, bound {at(life.bound)} on {life.node or '-'}, "
            f"ended {at(life.ended)}, gone {at(life.gone)}: {', '.join(life.phases)}"
            for life in lives
        )

    def start_of(self, gang: str) -> float:
        """When its first pod was bound."""
        return min(life.bound for life in self.of(gang) if life.bound is not None)

    def end_of(self, gang: str) -> float:
        """When its last pod was bound."""
        return max(life.bound for life in self.of(gang) if life.bound is not None)

    def _changed(self, old: Pod | None, new: Pod | None) -> None:
        now = time.monotonic()
        pod = new or old
        assert pod is not None
        with self._lock:
            life = self.pods.setdefault(pod.metadata.uid, Life(gang_of(pod) or "", slot_of(pod.metadata), now))
            life.gang = gang_of(pod) or life.gang
            if new is None:
                life.gone = now
                return
            if new.status.phase not in life.phases:
                life.phases.append(new.status.phase)
            if new.status.phase in {"Succeeded", "Failed"}:
                life.ended = life.ended or now
            life.done |= new.status.phase == "Succeeded" and new.metadata.deletion_timestamp is None
            if new.spec.node_name:
                life.bound = life.bound or now
                life.node = new.spec.node_name
                life.nodes.add(new.spec.node_name)


@dataclass(frozen=True, slots=True)
class Submitted:
    """The Job `gang`, on its way: its pods are watched, and processes of the plane can be taken away from it."""

    plane: Plane
    client: Client
    namespace: str
    replicas: int
    history: History
    wait_for: Callable[..., Any]

    def wait_until_there_is(self, resource: Resource[Any]) -> None:
        """How far the gang is to come: its PodGroup, its Placement, its first pod."""
        self.wait_for(lambda: self.client.list(resource, self.namespace), 30, f"the first of {resource.plural}")

    def restart(self, *parts: str) -> None:
        """Kill processes at whatever instruction they are, and start them again."""
        for name in parts:
            self.plane.part(name).kill()
            self.plane.part(name).start()

    def wait_until_it_runs_whole(self) -> None:
        """Every slot is taken once, and no pod was on more than one node."""
        self.wait_for(lambda: runs(self.client, self.namespace, "gang", self.replicas), RECOVERY_S, "the gang to run")
        alive = [life for life in self.history.of("gang-") if life.gone is None]
        assert sorted(life.slot.rank for life in alive if life.slot) == list(range(self.replicas))
        assert all(len(life.nodes) == 1 for life in alive)


@contextmanager
def submitted(
    plane: Plane, namespace: str, wait_for: Callable[..., Any], *, replicas: int, gpus: int = 8, without: str = ""
) -> Iterator[Submitted]:
    """A gang from its submission on, `without` a part of the plane; in the end the plane is whole and the Job gone."""
    client = plane.client()
    try:
        if without:
            plane.part(without).kill()
        with History(client, namespace) as history:
            client.create(JOBS, job("gang", namespace, replicas=replicas, gpus=gpus), namespace)
            yield Submitted(plane, client, namespace, replicas, history, wait_for)
    finally:
        plane.mend()
        client.delete(JOBS, "gang", namespace)


def runs(client: Client, namespace: str, name: str, replicas: int) -> bool:
    """Whether a Volcano Job runs with all its pods."""
    status = client.get(JOBS, name, namespace).status
    return status.state.phase == "Running" and status.running == replicas


def lone_pod(name: str, namespace: str, scheduler: str = "default-scheduler") -> dict[str, Any]:
    """A pod of no gang that asks for nothing."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"schedulerName": scheduler, "containers": [{"name": "main", "image": "none"}]},
    }


def phase_of(kubectl: Callable[..., Any], name: str, namespace: str) -> str:
    """The phase of a Volcano Job."""
    status = kubectl.json("get", "vcjob", name, "--namespace", namespace).get("status", {})  # type: ignore[attr-defined]
    return str(status.get("state", {}).get("phase", ""))


def metric(plane: Plane, part: str, line: str) -> float:
    """One sample of a process's metrics; 0 if it has none yet."""
    port = plane.state.ports[f"{part}-status"]
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as answer:
        lines = answer.read().decode().splitlines()
    return next((float(text.rpartition(" ")[2]) for text in lines if text.startswith(line + " ")), 0.0)
