"""The whole controller on an API server in memory, without chance: it works until nothing is left to do.

Tests read the calls by which it changed objects, `create Job train`, and the events it recorded. Time passes, pods run
and end only when a test says so.
"""

import json
import random
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import jsonpatch
import msgspec
from guarded_api import NOW, GuardedApi
from simulated_cluster import Cluster
from simulated_faults import Faults

import controller
from muster.api.base import Resource
from muster.api.kubeflow.jobset import JOB_SETS
from muster.api.kubernetes.core import PODS
from muster.api.volcano.scheduling import POD_GROUPS
from muster.kube.errors import APIError

_PARTS = ("Queue", "Service", "NetworkPolicy", "PodGroup", "Pod")
_KINDS: tuple[Resource[Any], ...] = (JOB_SETS, POD_GROUPS)


class _Calm(GuardedApi):
    """What the controller asks is done; a test may have a kind of object refused."""

    refuses: APIError | None = None
    earlier: Sequence[Any] = ()
    """Objects as they were, which etcd has not compacted yet."""

    def __init__(self, *_: object) -> None:
        super().__init__(controller)
        self._version = 0
        self.meddle = lambda sent: self._refuse(sent.resource)

    def request(self, verb: str, path: str, query: Mapping[str, str] | None = None) -> bytes:
        """The kinds of a group, as the API server lists them, or what it still has of an earlier version."""
        assert verb == "GET"
        if query:
            version = query["resourceVersion"]
            return msgspec.json.encode(
                {"items": [each for each in self.earlier if each.metadata.resource_version == version]}
            )
        group = path.removeprefix("/apis/").rpartition("/")[0]
        found = [{"name": each.plural, "kind": each.kind, "namespaced": True} for each in _KINDS if each.group == group]
        return json.dumps(
            {"resources": [*({**each, "name": f"{each['name']}/status"} for each in found), *found]}
        ).encode()

    def json_patch(
        self, res: Resource[Any], name: str, operations: Sequence[Mapping[str, Any]], namespace: str | None = None
    ) -> Any:
        """See Client."""
        old = super().json_patch(res, name, operations, namespace)
        return self.change(res, name, jsonpatch.apply_patch(msgspec.to_builtins(old), operations), namespace)

    def _refuse(self, res: Resource[Any]) -> None:
        if self.refuses and res is not None and res.plural != "trainjobs":
            raise self.refuses


class Settled(Cluster):
    """A cluster that comes to rest after each act of a test."""

    api_type = _Calm
    api: _Calm
    plans = True
    """False while the planner gives gangs no place."""

    def __init__(self, **options: Any) -> None:
        self.options = options
        self.events: list[str] = []
        quiet = Faults(random.Random(0), 0.0, 0.0)  # noqa: S311 - nothing is left to chance: no call fails
        super().__init__(random.Random(0), quiet, lambda *_: None)  # noqa: S311
        self.now_s = NOW
        self.api._now_s = lambda: self.now_s

    def settle(self, after_s: float = 0.0) -> list[str]:
        """Let time pass and the controller work until nothing changes; return its writes."""
        self.now_s += after_s
        del self.api.sent[:]
        for _ in range(30):
            before = self.api.writes
            self.deliver(everything=True)
            worked = self.work(50)
            if self.plans:
                self.plan(everything=True)
            for pod in self.api.all(PODS):
                if pod.metadata.deletion_timestamp:
                    self.api.remove(PODS, pod, at_once=True)
            self.api.collect()
            if not worked and self.api.writes == before:
                break
        assert not self.defects
        return [
            f"{sent.site.rpartition(' ')[2]} {sent.resource.kind} {sent.key.rpartition('/')[2]}"
            for sent in self.api.sent
            if not sent.refused
        ]

    def acts(self, after_s: float = 0.0) -> list[str]:
        """The writes that follow, without those of a Job's parts, of statuses of Jobs and of queues."""
        writes = [*map(str.split, self.settle(after_s))]
        return [
            f"{verb} {kind} {name}"
            for verb, kind, name in writes
            if kind not in _PARTS and (verb, kind) != ("merge_patch", "Job") and not name.endswith("-svc")
        ]

    def told(self) -> list[str]:
        """The events since the last call: type, reason, message."""
        pending = self.controller._recorder._pending
        found = [f"{key.type} {key.reason}: {key.message}" for key in pending]
        pending.clear()
        return found

    def one(self, res: Resource[Any], name: str) -> Any:
        """An object of a kind, None if there is none."""
        with suppress(APIError):
            return self.api.find(res, name, "n")

    def set(self, res: Resource[Any], name: str, **patch: Mapping[str, Any] | bool) -> None:
        """Change parts of an object as its user, kubelet or another controller does."""
        for part, value in patch.items():
            self.api.change(res, name, {part: value}, "n", subresource="status" if part == "status" else "")

    def pods(self, phase: str, exit_code: int | None = None) -> None:
        """All pods enter a phase."""
        for pod in self.api.all(PODS):
            ready = str(phase == "Running")
            ended = {} if exit_code is None else {"state": {"terminated": {"exitCode": exit_code}}}
            status = {
                "phase": phase,
                "conditions": [{"type": "Ready", "status": ready}],
                "containerStatuses": [{"name": "node", **ended}],
            }
            self.set(PODS, pod.metadata.name, status=status)
