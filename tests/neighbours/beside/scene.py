"""One namespace of a plane with a neighbour, and what must hold in it whatever happens."""

import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from gang_jobs import job, runs
from watching import Watching

from beside import writes
from muster.api.base import Resource
from muster.api.kubernetes.core import EVENTS, NODES, PODS, PRIORITY_CLASSES, Pod
from muster.api.volcano.batch import JOBS
from muster.api.volcano.scheduling import POD_GROUPS, PodGroup
from muster.kube.client import Client
from muster.kube.errors import NotFound
from muster.kube.reflector import Reflector
from muster.workloads.table import gang_of
from musterctl.plane.plane import Plane

JSON = dict[str, Any]
_RAW_PODS: Resource[JSON] = Resource("", "v1", "pods", "Pod", JSON)
HALF_PLACED_S = 45.0
"""A gang that begins to start has started whole by then, or holds nothing: a barrier, a deadline, an eviction."""

_DENIED_BY_MUSTER = '.muster.dev" denied the request'
_OWNER_GONE = "that owns this pod is gone"
"""A controller makes a pod of what was deleted a moment ago: the pod would go at once, and nobody misses it."""


class _Move(NamedTuple):
    """A pod has taken a node, or given it back."""

    uid: str
    holds: bool
    moment_s: float


class Scene(Watching):
    """Pods and PodGroups of a namespace as watches tell them, from before the first of them on."""

    def __init__(self, plane: Plane, namespace: str, wait_for: Callable[..., Any]) -> None:
        self.plane = plane
        self.client: Client = plane.client()
        self.namespace = namespace
        self.wait_for = wait_for
        self.expected_refusals = 0
        """Refusals of Muster that belong to the test."""
        self.repairs = 0
        """Repairs of each gang that belong to the test; what is said of one may be as much as of a start."""
        self.seen: dict[str, Pod] = {}
        """Every pod that ever was, by UID, as it was last."""
        self._refused = writes.refused(plane)
        self._moves = defaultdict[str, list[_Move]](list)
        self._least: dict[str, int] = {}
        self._lock = threading.Lock()
        pods, groups = (Reflector(self.client, each, namespace=namespace) for each in (PODS, POD_GROUPS))
        pods.add_handler(self._pod_changed)
        groups.add_handler(self._group_changed)
        super().__init__(groups, pods)

    def create(self, resource: Resource[Any], manifest: JSON) -> Any:
        """Creates an object in the namespace."""
        return self.client.create(resource, manifest, self.namespace)

    def find(self, resource: Resource[Any], name: str) -> Any:
        """An object of the namespace, or None."""
        try:
            return self.client.get(resource, name, self.namespace)
        except NotFound:
            return None

    def patch(self, resource: Resource[Any], name: str, **spec: Any) -> None:
        """Changes the spec of an object."""
        self.client.merge_patch(resource, name, {"spec": spec}, self.namespace)

    def pods(self, **labels: str) -> list[Pod]:
        """The pods that are there and not on their way out, by name; `labels` must be theirs, `_` stands for `/`."""
        found = self.client.list(PODS, self.namespace)
        alive = [pod for pod in found if not pod.metadata.deletion_timestamp and not pod.finished]
        return sorted(
            (pod for pod in alive if labels.items() <= pod.metadata.labels.items()), key=lambda pod: pod.metadata.name
        )

    def running(self, count: int, prefix: str = "", *, timeout_s: float = 90.0) -> list[Pod]:
        """Waits until exactly so many pods are there whose names begin so, and all run."""

        def found() -> list[Pod] | None:
            pods = [pod for pod in self.pods() if pod.metadata.name.startswith(prefix)]
            return pods if len(pods) == count and all(pod.status.phase == "Running" for pod in pods) else None

        return self.wait_for(found, timeout_s, f"{count} pods {prefix}* to run") or []

    def waiting(self, count: int, prefix: str = "", *, timeout_s: float = 60.0) -> list[Pod]:
        """Waits until exactly so many pods are there whose names begin so, all at a gate, and a PodGroup says why."""

        def found() -> list[Pod] | None:
            pods = [pod for pod in self.pods() if pod.metadata.name.startswith(prefix)]
            return pods if len(pods) == count and all(pod.spec.scheduling_gates for pod in pods) else None

        pods = self.wait_for(found, timeout_s, f"{count} gated pods {prefix}*")
        gangs = {gang_of(pod) for pod in pods}
        self.wait_for(lambda: gangs <= set(self.reasons()), 30, f"reasons for {gangs}")
        return list(pods)

    def reasons(self) -> dict[str, str]:
        """Why gangs wait, in the words of their PodGroups."""
        found = {}
        for group in self.client.list(POD_GROUPS, self.namespace):
            for each in group.status.conditions:
                if each.type == "Unschedulable" and each.status == "True":
                    found[group.metadata.name] = each.message
        return found

    def groups(self) -> dict[str, PodGroup]:
        """The PodGroups by name."""
        return {group.metadata.name: group for group in self.client.list(POD_GROUPS, self.namespace)}

    def env(self, pod: Pod) -> dict[str, str]:
        """The variables of the first container; one that comes from a label of the pod has its value."""
        found = {}
        for each in self.client.get(_RAW_PODS, pod.metadata.name, self.namespace)["spec"]["containers"][0]["env"]:
            path = ((each.get("valueFrom") or {}).get("fieldRef") or {}).get("fieldPath", "")
            label = path.removeprefix("metadata.labels['").removesuffix("']")
            found[each["name"]] = each.get("value", pod.metadata.labels.get(label, ""))
        return found

    def events(self, kind: str, name: str) -> list[str]:
        """Reasons and messages of the Events about an object."""
        return [
            f"{event.reason}: {event.message}"
            for event in self.client.list(EVENTS, self.namespace)
            if (event.involved_object.get("kind"), event.involved_object.get("name")) == (kind, name)
        ]

    def label_of_node(self, pod: Pod, key: str) -> str:
        """The label of the node that the pod is on."""
        return str(self.client.get(NODES, pod.spec.node_name).metadata.labels.get(key, ""))

    def ends(self, pod: Pod, phase: str = "Failed", code: int = 1) -> None:
        """Has a pod end now, as its kubelet would say it."""
        statuses = [
            {
                "name": each.name,
                "image": "none",
                "imageID": "",
                "ready": False,
                "restartCount": 0,
                "state": {"terminated": {"exitCode": code, "reason": "Error" if code else "Completed"}},
            }
            for each in pod.spec.containers
        ]
        patch = {"metadata": {"uid": pod.metadata.uid}, "status": {"phase": phase, "containerStatuses": statuses}}
        self.client.merge_patch(PODS, pod.metadata.name, patch, self.namespace, subresource="status")

    @contextmanager
    def evicted(self, pods: int, gpus: int = 8) -> Iterator[None]:
        """Has a Volcano Job of higher priority, of so many pods, take nodes from gangs that run, and end again."""
        name = f"{self.namespace}-high"
        self.client.create(PRIORITY_CLASSES, {"metadata": {"name": name}, "value": 1000})
        one = job("high", self.namespace, replicas=pods, gpus=gpus)
        one["spec"]["priorityClassName"] = name
        try:
            self.create(JOBS, one)
            self.wait_for(lambda: runs(self.client, self.namespace, "high", pods), 120, "the Job of high priority")
            yield
        finally:
            self.client.delete(JOBS, "high", self.namespace)
            self.client.delete(PRIORITY_CLASSES, name)

    @contextmanager
    def cordoned(self, count: int) -> Iterator[None]:
        """Keeps so many nodes from taking pods."""
        nodes = [node.metadata.name for node in self.client.list(NODES)][:count]
        for name in nodes:
            self.client.merge_patch(NODES, name, {"spec": {"unschedulable": True}})
        try:
            yield
        finally:
            for name in nodes:
                self.client.merge_patch(NODES, name, {"spec": {"unschedulable": None}})

    def check(self) -> None:
        """No gang is half placed, nothing was written in a loop, and Muster refused only what the test wanted."""
        half_s = self.half_placed_s()
        late = {gang: took_s for gang, took_s in half_s.items() if took_s > HALF_PLACED_S}
        counts = {each: count for each, count in writes.most_in_a_minute(self.plane).items() if self._mine(each)}
        slowest_s, most = max(half_s.values(), default=0.0), max(counts.values(), default=0)
        sys.stderr.write(
            f"{self.namespace}: {sum(self.starts().values())} starts of gangs, the slowest {slowest_s:.1f} s from its "
            f"first node to its minimum; {most} writes to one object in a minute at most\n"
        )
        assert not late, f"gangs that were half placed, and for how many seconds: {late}"
        starts = {gang: count + self.repairs for gang, count in self.starts().items()}
        assert not (found := writes.loops(self.plane, self.namespace, starts)), found
        refused = {route: count - self._refused.get(route, 0) for route, count in writes.refused(self.plane).items()}
        unwanted = sum(refused.values()) - self.expected_refusals
        told = self._denials()
        excused = told and all(_OWNER_GONE in each for each in told)
        assert unwanted == 0 or (unwanted > 0 and excused), f"Muster's refusals by route: {refused}; Events: {told}"

    def _denials(self) -> list[str]:
        """Muster's refusals of pods, in the words that their controllers had for them."""
        found = [event.message for event in self.client.list(EVENTS, self.namespace)]
        return [each for each in found if _DENIED_BY_MUSTER in each]

    def _mine(self, each: writes.Written) -> bool:
        return each.namespace == self.namespace

    def half_placed_s(self) -> dict[str, float]:
        """The longest time that each gang took from its first node to its minimum; for ever, if it stopped there."""
        with self._lock:
            return {gang: _longest_start_s(found, self._least.get(gang, 1)) for gang, found in self._moves.items()}

    def starts(self) -> dict[str, int]:
        """How often each gang began to hold nodes after it had held none."""
        with self._lock:
            return {gang: _starts(found) for gang, found in self._moves.items()}

    def _pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        pod = new or old
        assert pod is not None
        holds = bool(new and new.spec.node_name and not new.finished)
        held = bool(old and old.spec.node_name and not old.finished)
        with self._lock:
            self.seen[pod.metadata.uid] = pod
            if holds != held:
                self._moves[gang_of(pod) or ""].append(_Move(pod.metadata.uid, holds, time.monotonic()))

    def _group_changed(self, old: PodGroup | None, new: PodGroup | None) -> None:
        del old
        if new:
            with self._lock:
                name = new.metadata.name
                self._least[name] = max(self._least.get(name, 1), new.spec.min_member)


def _longest_start_s(moves: list[_Move], least: int) -> float:
    """The longest of all times between the first node of a start and its minimum, or its end without it."""
    holders, since, longest = set[str](), None, 0.0
    started = False
    for move in [*moves, None]:
        moment_s = move.moment_s if move else time.monotonic()
        if since is not None:
            longest = max(longest, moment_s - since)
        if move is None:
            break
        (holders.add if move.holds else holders.discard)(move.uid)
        started = len(holders) >= least or (started and bool(holders))
        since = None if started or not holders else moment_s if since is None else since
    return longest


def _starts(moves: list[_Move]) -> int:
    """How often there was a first holder."""
    holders, count = set[str](), 0
    for move in moves:
        count += move.holds and not holders
        (holders.add if move.holds else holders.discard)(move.uid)
    return count
