"""A cluster in memory around the real controller: planner, kubelets, garbage collector and users who act at random.

The controller is `controller.app.Controller` as it runs in production, without its threads: its caches are told of
changes late and in batches of any size, its workers take one key at a time, and it is replaced by a new one, which
knows nothing, at any moment.
"""

import random
from collections.abc import Callable, Mapping
from itertools import chain
from typing import Any

from simulated_api import Api, Change
from simulated_faults import Crash, Faults
from simulated_users import Users

from controller.app import Controller
from muster.api.base import Resource
from muster.api.kubernetes.core import PODS, Pod
from muster.api.muster.gang import gated
from muster.api.muster.placement import PLACEMENTS
from muster.api.volcano.scheduling import POD_GROUPS
from muster.kube.errors import APIError
from muster.kube.reflector import Reflector
from muster.workloads.table import gang_of

START_S = 1_700_000_000.0


class Cluster:
    """One run. `history` sees every change of the API server."""

    api_type: type[Api] = Api
    options: Mapping[str, Any] = {}
    gather_s = 0.0
    """How long events of a Job wait for others: time stands still until somebody lets it pass."""

    def __init__(self, chance: random.Random, faults: Faults, seen: Callable[..., None]) -> None:
        self.chance = chance
        self.now_s = START_S
        self.faults = faults
        self.api = self.api_type(self.faults, lambda: self.now_s, seen)
        self.users = Users(self.api, chance)
        self.defects: list[str] = []
        self.controller = self._new_controller()

    # The controller.

    def _new_controller(self) -> Controller:
        controller = Controller(
            self.api,  # type: ignore[arg-type]  # the same methods
            1,
            monotonic_s=lambda: self.now_s,
            wall_s=lambda: self.now_s,
            at_once=1,
            gather_s=self.gather_s,
            **self.options,
        )
        self.cursors: dict[str, int] = {}
        for name, reflector in controller.reflectors.items():
            self._list(name, reflector)
        controller.take_over(lambda: True)
        return controller

    def restart(self) -> None:
        """The controller dies; another starts with empty hands."""
        self.controller = self._new_controller()

    def deliver(self, *, everything: bool = False) -> bool:
        """Tells the caches of some changes; whether there were any."""
        told = False
        for name, reflector in self.controller.reflectors.items():
            waiting = self.api.changes(_resource(reflector))[self.cursors[name] :]
            if waiting and (everything or self.chance.random() < 0.6):
                count = len(waiting) if everything else self.chance.randint(1, len(waiting))
                for change in waiting[:count]:
                    _tell(reflector, change)
                self.cursors[name] += count
                told = True
        return told

    def relist(self) -> None:
        """A cache has lost its place: it lists, and is told of the differences only."""
        name, reflector = self.chance.choice([*self.controller.reflectors.items()])
        self._list(name, reflector)

    def _list(self, name: str, reflector: Reflector[Any]) -> None:
        found: set[str] = set()
        for _ in chain(
            reflector.mirror.put_all(self.api.all(_resource(reflector)), found), reflector.mirror.keep_only(found)
        ):
            pass
        self.cursors[name] = len(self.api.changes(_resource(reflector)))

    def work(self, passes: int) -> bool:
        """Lets the workers take keys; whether there were any."""
        worked = False
        for worker in self.controller.workers:
            for _ in range(passes):
                key = worker.queue.get(0)
                if key is None:
                    break
                worked = True
                try:
                    if worker.once(key) == "defect":
                        self.defects.append(f"{worker.name} {key}")
                except Crash:
                    self.restart()
                    return True
        return worked

    # The planner.

    def plan(self, *, everything: bool = False) -> bool:
        """Admits gangs, makes placements, ungates and binds pods, and says how gangs fare."""
        acted = False
        for group in self.api.all(POD_GROUPS):
            if everything or self.chance.random() < 0.5:
                acted |= self._plan_group(group, everything=everything)
        for pod in self.api.all(PODS):
            if pod.metadata.deletion_timestamp or pod.spec.node_name:
                continue
            if everything or self.chance.random() < 0.5:
                acted = True
                gates = {"schedulingGates": None} if gated(pod) else {"nodeName": "node-1"}
                self.api.change(PODS, pod.metadata.name, {"spec": gates}, "n")
        return acted

    def _plan_group(self, group: Any, *, everything: bool) -> bool:
        name, phase = group.metadata.name, group.status.phase
        own = [pod for pod in self.api.all(PODS) if gang_of(pod) == name]
        running = sum(pod.status.phase == "Running" for pod in own)
        least = max(1, group.spec.min_member)
        wanted = phase
        if phase in {"", "Pending"}:
            wanted = "Inqueue"
            if self.chance.random() < 0.4 and name not in {p.metadata.name for p in self.api.all(PLACEMENTS)}:
                self._place(group)
        elif running >= least:
            wanted = "Running"
        elif phase == "Running":
            wanted = "Unknown"
        if not everything and phase == "Running" and self.chance.random() < 0.05:
            wanted = "Unknown"
        if wanted == phase:
            return False
        self.api.change(POD_GROUPS, name, {"status": {"phase": wanted}}, "n")
        return True

    def _place(self, group: Any) -> None:
        owner = {"apiVersion": POD_GROUPS.api_version, "kind": "PodGroup", "uid": group.metadata.uid}
        meta = {"name": group.metadata.name, "ownerReferences": [owner | {"name": group.metadata.name}]}
        sets = [{"name": task, "runs": [{"node": "node-1", "count": 2}]} for task in group.spec.min_task_member]
        spec = {"podGroupUID": group.metadata.uid, "epoch": 1, "podSets": sets}
        self.api.add(PLACEMENTS, {"metadata": meta, "spec": spec, "status": {"phase": "Planned"}}, "n")

    # The kubelets, and whoever evicts.

    def run_pods(self, *, everything: bool = False) -> bool:
        """Pods start, restart, end, and go."""
        acted = False
        for pod in self.api.all(PODS):
            if everything or self.chance.random() < 0.4:
                acted |= self._run_pod(pod, calm=everything)
        return acted

    def _run_pod(self, pod: Pod, *, calm: bool) -> bool:
        chance = self.chance.random()
        if pod.metadata.deletion_grace_period_seconds == 0:
            return False  # nobody but who deletes it again removes it
        if pod.metadata.deletion_timestamp:
            if not calm and chance < 0.3 and not pod.finished:
                self._phase(pod, "Failed", exit_code=137)
            else:
                self.api.remove(PODS, pod, at_once=True)
            return True
        if not pod.spec.node_name:
            return False
        if pod.status.phase == "Pending":
            self._phase(pod, "Running")
            return True
        if pod.status.phase != "Running" or calm:
            return False
        if chance < 0.22:
            self._phase(pod, "Succeeded", exit_code=0)
        elif chance < 0.5:
            self._phase(pod, "Failed", exit_code=self.chance.choice([1, 3]))
        elif chance < 0.57:
            restarts = sum(status.restart_count for status in pod.status.container_statuses) + 1
            self._phase(pod, "Running", restarts=restarts)
        return True

    def _phase(self, pod: Pod, phase: str, *, exit_code: int | None = None, restarts: int = 0) -> None:
        container: dict[str, Any] = {"name": "main", "ready": phase == "Running", "restartCount": restarts}
        if exit_code is not None:
            container["state"] = {"terminated": {"exitCode": exit_code}}
        status = {"phase": phase, "containerStatuses": [container]}
        self.api.change(PODS, pod.metadata.name, {"status": status}, "n", subresource="status")

    def evict(self) -> None:
        """Somebody deletes a pod, perhaps at once and for good."""
        pods = self.api.all(PODS)
        if pods:
            self.api.remove(PODS, self.chance.choice(pods), at_once=self.chance.random() < 0.3)

    def storm(self) -> None:
        """All pods of a task that run fail at once."""
        running = [pod for pod in self.api.all(PODS) if pod.status.phase == "Running"]
        if running:
            task = self.chance.choice(running).metadata.name.rpartition("-")[0]
            for pod in running:
                if pod.metadata.name.startswith(f"{task}-") and not pod.metadata.deletion_timestamp:
                    self._phase(pod, "Failed", exit_code=self.chance.choice([1, 1, 3]))

    # Time.

    def step(self) -> None:
        """One thing happens."""
        happens: list[tuple[int, Callable[[], object]]] = [
            (30, self.deliver),
            (30, lambda: self.work(self.chance.randint(1, 3))),
            (12, self.plan),
            (14, self.run_pods),
            (5, self.pass_time),
            (2, self.users.command),
            (2, self.users.scale),
            (2, self.evict),
            (6, self.storm),
            (2, self.restart),
            (1, self.relist),
            (1, self.users.delete_job),
            (1, lambda: self.users.submit() if self.users.made < 3 else None),
            (1, self.users.delete_group),
            (2, self.api.collect),
        ]
        (act,) = self.chance.choices([act for _, act in happens], [weight for weight, _ in happens])
        act()

    def pass_time(self) -> None:
        """Up to some seconds."""
        self.now_s += self.chance.choice([0.05, 0.5, 3.0, 12.0])

    def converge(self) -> bool:
        """Nothing fails any more and nobody acts but for the machinery; whether it comes to rest."""
        self.faults.cease()
        quiet = 0
        for _ in range(400):
            before = self.api.writes
            self.deliver(everything=True)
            self.work(50)
            self.plan(everything=True)
            self.run_pods(everything=True)
            self.api.collect()
            if self.api.writes != before:
                quiet = 0
                continue
            quiet += 1
            if quiet > 6:
                return True
            self.now_s += 31.0
        return False


def _resource(reflector: Reflector[Any]) -> Resource[Any]:
    return reflector._resource


def _tell(reflector: Reflector[Any], change: Change) -> None:
    kind, obj = change
    try:
        if kind == "DELETED":
            reflector.mirror.remove(obj.metadata.key)
        else:
            reflector.mirror.add_object(obj)
    except APIError as error:  # pragma: no cover - handlers do no I/O
        raise AssertionError("a handler talked to the API server") from error
