"""Objects of the kinds that plugins of other packages watch, and JobSets where TrainJobs become JobSets."""

import threading
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import msgspec

from muster.api.base import Resource
from muster.api.kubeflow.jobset import JOB_SETS
from muster.api.kubeflow.trainer import TRAIN_JOBS, TrainJob
from muster.api.kubernetes.meta import Object
from muster.kube.client import Client
from muster.kube.optional import OptionalReflector
from muster.runtime import registry
from muster.runtime.framework import Framework

JSON = dict[str, Any]


class Whole(Object):
    """An object of a kind that Muster does not know."""

    spec: Any = None
    data: Any = None
    status: Any = None


class Watched:
    """A cache of each such kind, while its CRD is installed. `seen` is called with every change of an object.

    Only objects that a TrainJob controls are kept. `job_sets`: TrainJobs become JobSets.
    """

    def __init__(
        self,
        client: Client,
        framework: Framework,
        seen: Callable[[Object | None, Object | None], None],
        *,
        job_sets: bool = False,
    ) -> None:
        own = set(Framework(registry.plugins()).watched())
        self.names = [name for name in framework.watched() if name not in own]
        self.names += [_name(JOB_SETS)] if job_sets else []
        self._seen = seen
        self._lock = threading.Lock()
        self._objects: dict[str, dict[str, Object]] = {name: {} for name in self.names}
        self._reflectors = [
            OptionalReflector(client, _resource(name), partial(self._changed, name)) for name in self.names
        ]

    def start(self) -> None:
        """Starts to watch."""
        for reflector in self._reflectors:
            reflector.start()

    def stop(self) -> None:
        """Ends the watches."""
        for reflector in self._reflectors:
            reflector.stop()

    @property
    def synced(self) -> bool:
        """True if each kind is in sync, or known not to be installed."""
        return all(reflector.synced for reflector in self._reflectors)

    def get(self, resource: Resource[Any], key: str) -> Object | None:
        """The object with this key, of a kind that is watched."""
        with self._lock:
            return self._objects.get(_name(resource), {}).get(key)

    def watches(self, resource: Resource[Any]) -> bool:
        """True if a cache shows the objects of this kind."""
        return _name(resource) in self._objects

    def of(self, train_job: TrainJob) -> list[Mapping[str, Any]]:
        """All objects that a TrainJob controls, as JSON, by kind and name."""
        with self._lock:
            found = [
                each
                for name in self.names
                for each in self._objects[name].values()
                if each.metadata.controller and each.metadata.controller.uid == train_job.metadata.uid
            ]
        return [msgspec.to_builtins(each) for each in sorted(found, key=lambda each: (each.kind, each.metadata.name))]

    def _changed(self, name: str, old: Object | None, new: Object | None) -> None:
        one = new or old
        if one is None or not _of_train_job(one):
            return
        with self._lock:
            if new is None:
                self._objects[name].pop(one.metadata.key, None)
            else:
                self._objects[name][one.metadata.key] = new
        self._seen(old, new)


def _of_train_job(one: Object) -> bool:
    owner = one.metadata.controller
    return owner is not None and (owner.kind, owner.api_version) == (TRAIN_JOBS.kind, TRAIN_JOBS.api_version)


def _name(resource: Resource[Any]) -> str:
    return f"{resource.plural}.{resource.group}"


def _resource(name: str) -> Resource[Any]:
    """The kind of a plugin's `plural.group`; the CRD says which version is served."""
    if name == _name(JOB_SETS):
        return JOB_SETS
    plural, _, group = name.partition(".")
    return Resource(group, "", plural, plural, Whole)
