"""An API server in memory, with the part of `muster.kube.client.Client` that the controller uses.

It keeps what the real one promises: resource versions that grow, preconditions, generations, subresources, owners, and
pods that take their time to go. A `Faults` decides which calls fail, and whether they had their effect before.
"""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from merge_patches import applied
from simulated_faults import Crash, Faults

from muster.api.base import Resource
from muster.api.kubernetes.core import PODS, Pod
from muster.api.kubernetes.meta import Object, format_time
from muster.api.volcano.batch import JOBS
from muster.api.volcano.scheduling import QUEUES
from muster.kube.codec import content_of
from muster.kube.errors import AlreadyExists, Conflict, NotFound

WITH_STATUS = (JOBS, QUEUES, PODS)
"""Kinds whose status is a subresource."""

Change = tuple[str, Object]
Seen = Callable[[Resource[Any], Object | None, Object | None], None]


class Api:
    """The objects by kind, and the log of changes of each kind."""

    def __init__(self, faults: Faults, now_s: Callable[[], float], seen: Seen) -> None:
        self.faults = faults
        self.objects: dict[str, dict[str, Any]] = {}
        self.log: dict[str, list[Change]] = {}
        self.writes = 0
        self._now_s = now_s
        self._seen = seen
        self._version = 0

    # What the controller calls.

    def get(self, res: Resource[Any], name: str, namespace: str | None = None, **_: Any) -> Any:
        """See Client."""
        self.faults.before("get")
        return self.find(res, name, namespace)

    def create(self, res: Resource[Any], obj: Any, namespace: str | None = None, **_: Any) -> Any:
        """See Client."""
        self.faults.before("create")
        made = self.add(res, obj, namespace)
        self.faults.after()
        return made

    def apply(self, res: Resource[Any], obj: Any, **_: Any) -> Any:
        """See Client; the whole of what the controller applies is its own."""
        self.faults.before("patch")
        content = content_of(res, obj)
        meta = content["metadata"]
        if self._key(res, meta["name"], meta.get("namespace")) not in self.kind(res):
            return self.add(res, obj)
        return self.change(res, meta["name"], content, meta.get("namespace"))

    def merge_patch(
        self, res: Resource[Any], name: str, patch: Mapping[str, Any], namespace: str | None = None, **more: Any
    ) -> Any:
        """See Client."""
        self.faults.before("patch")
        changed = self.change(res, name, patch, namespace, subresource=more.get("subresource", ""))
        self.faults.after()
        return changed

    def delete(self, res: Resource[Any], name: str, namespace: str | None = None, **more: Any) -> None:
        """See Client."""
        self.faults.before("delete")
        found = self.find(res, name, namespace)
        meta = found.metadata
        if more.get("uid") not in {None, meta.uid} or more.get("resource_version") not in {None, meta.resource_version}:
            raise Conflict(f"{res.kind} {name} is another one")
        if self.faults.between() and res is PODS and not self._graceful(found):
            self._mark(res, found, grace_period_s=0)
            raise Crash
        self.remove(res, found, foreground=more.get("propagation") == "Foreground")
        self.faults.after()

    # What everybody else does; nothing fails.

    def kind(self, res: Resource[Any]) -> dict[str, Any]:
        """The objects of a kind."""
        return self.objects.setdefault(f"{res.group}/{res.plural}", {})

    def changes(self, res: Resource[Any]) -> list[Change]:
        """Every change of a kind, in order."""
        return self.log.setdefault(f"{res.group}/{res.plural}", [])

    def all(self, res: Resource[Any]) -> list[Any]:
        """The objects of a kind."""
        return [*self.kind(res).values()]

    def find(self, res: Resource[Any], name: str, namespace: str | None = None) -> Any:
        """One object; raises NotFound."""
        found = self.kind(res).get(self._key(res, name, namespace))
        if found is None:
            raise NotFound(f"there is no {res.kind} {name}")
        return found

    def add(self, res: Resource[Any], obj: Any, namespace: str | None = None) -> Any:
        """Creates an object."""
        content = content_of(res, obj)
        meta = content["metadata"]
        if res.namespaced:
            meta["namespace"] = namespace or meta.get("namespace") or "n"
        if not meta.get("name"):
            meta["name"] = f"{meta['generateName']}{self._version}"
        if self._key(res, meta["name"], meta.get("namespace")) in self.kind(res):
            raise AlreadyExists(f"{res.kind} {meta['name']} exists")
        meta |= {"uid": f"uid-{self._version}", "generation": 1, "creationTimestamp": format_time(self._now_s())}
        if res in WITH_STATUS:
            content.pop("status", None)
        if res is JOBS:
            content["status"] = {"state": {"phase": "Pending"}}  # the CRD's default
        if res is PODS:
            content["status"] = {"phase": "Pending"}
        return self._put(res, content, None)

    def change(
        self,
        res: Resource[Any],
        name: str,
        patch: Mapping[str, Any],
        namespace: str | None = None,
        *,
        subresource: str = "",
    ) -> Any:
        """A merge patch."""
        old = self.find(res, name, namespace)
        wanted = patch.get("metadata") or {}
        if wanted.get("resourceVersion") not in {None, old.metadata.resource_version}:
            raise Conflict(f"{res.kind} {name} has changed")
        if wanted.get("uid") not in {None, old.metadata.uid}:
            raise Conflict(f"{res.kind} {name} is another one")
        parts = {"status"} if subresource else set(patch) - ({"status"} if res in WITH_STATUS else set())
        before = msgspec.to_builtins(old)
        content = applied(before, {part: value for part, value in patch.items() if part in parts})
        if content == before:
            return old
        if content.get("spec") != before.get("spec"):
            content["metadata"]["generation"] = old.metadata.generation + 1
        return self._put(res, content, old)

    def remove(self, res: Resource[Any], found: Any, *, foreground: bool = False, at_once: bool = False) -> None:
        """Deletes an object; a pod that runs is given time, and a Job deleted in the foreground waits for its pods."""
        if not at_once and (foreground or (res is PODS and self._graceful(found))):
            if not found.metadata.deletion_timestamp:
                self._mark(res, found)
            return
        self._version += 1
        del self.kind(res)[found.metadata.key]
        gone = msgspec.structs.replace(
            found, metadata=msgspec.structs.replace(found.metadata, resource_version=str(self._version))
        )
        self._note(res, "DELETED", gone)
        self._seen(res, found, None)

    def collect(self) -> None:
        """The garbage collector: what belongs to an owner that is gone goes, and owners that wait for that."""
        owners = {obj.metadata.uid: obj for objects in self.objects.values() for obj in objects.values()}
        for plural, objects in self.objects.items():
            for obj in [*objects.values()]:
                uids = [owner.uid for owner in obj.metadata.owner_references]
                if any(uid not in owners or self._going(owners[uid]) for uid in uids):
                    self.remove(RESOURCES[plural], obj)
        for job in self.all(JOBS):
            kept = [
                obj
                for objects in self.objects.values()
                for obj in objects.values()
                if any(owner.uid == job.metadata.uid for owner in obj.metadata.owner_references)
            ]
            if self._going(job) and not kept:
                self.remove(JOBS, job, at_once=True)

    @staticmethod
    def _going(owner: Any) -> bool:
        return not isinstance(owner, Pod) and bool(owner.metadata.deletion_timestamp)

    @staticmethod
    def _graceful(pod: Pod) -> bool:
        return bool(pod.spec.node_name) and not pod.finished

    def _mark(self, res: Resource[Any], old: Any, *, grace_period_s: int | None = None) -> None:
        content = msgspec.to_builtins(old)
        content["metadata"]["deletionTimestamp"] = format_time(self._now_s())
        if grace_period_s is not None:
            content["metadata"]["deletionGracePeriodSeconds"] = grace_period_s
        self._put(res, content, old)

    def _put(self, res: Resource[Any], content: dict[str, Any], old: Any) -> Any:
        RESOURCES.setdefault(f"{res.group}/{res.plural}", res)
        self._version += 1
        content["metadata"]["resourceVersion"] = str(self._version)
        new = msgspec.convert(content, res.type)
        self.kind(res)[new.metadata.key] = new
        self._note(res, "MODIFIED" if old else "ADDED", new)
        self._seen(res, old, new)
        return new

    def _note(self, res: Resource[Any], kind: str, obj: Object) -> None:
        self.writes += 1
        self.changes(res).append((kind, obj))

    @staticmethod
    def _key(res: Resource[Any], name: str, namespace: str | None) -> str:
        return f"{namespace}/{name}" if res.namespaced else name


RESOURCES: dict[str, Resource[Any]] = {}
