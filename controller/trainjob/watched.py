"""Kinds of objects that plugins build, and caches of watched kinds, including the JobSets of TrainJobs."""

import json
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import msgspec

from controller.live import controller_key, owned_by
from controller.trainjob.obstacle import Obstacle
from controller.trainjob.rules.outcome import Computed, computed, of_job_set
from muster.api.base import Resource
from muster.api.kubeflow.jobset import JOB_SETS, JobSet
from muster.api.kubeflow.trainer import TRAIN_JOBS, TrainJob
from muster.api.kubernetes.core import CONFIG_MAPS, SECRETS, SERVICES
from muster.api.kubernetes.meta import Object
from muster.api.kubernetes.storage import CLAIMS
from muster.kube.client import Client
from muster.kube.errors import NotFound
from muster.kube.optional import OptionalReflector
from muster.kube.store import Handler, ObjectStore
from muster.runtime import registry
from muster.runtime.framework import Framework

JSON = dict[str, Any]


class Kinds:
    """Look-up of resources by kind.

    Common kinds are built in; all other kinds are looked up through the API server's discovery.
    """

    def __init__(self, client: Client) -> None:
        self._client = client
        usual: tuple[Resource[Any], ...] = (SECRETS, CONFIG_MAPS, SERVICES, CLAIMS)
        self._found: dict[tuple[str, str], Resource[JSON]] = {
            (each.api_version, each.kind): replace(each, type=JSON) for each in usual
        }

    def resource_of(self, api_version: str, kind: str) -> Resource[JSON]:
        """Return the resource of a kind; raise NotFound if the API server does not serve it."""
        key = (api_version, kind)
        if key in self._found:
            return self._found[key]
        path = f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
        group, _, version = api_version.rpartition("/")
        for each in json.loads(self._client.request("GET", path)).get("resources") or []:
            if each["kind"] == kind and "/" not in each["name"]:
                self._found[key] = Resource(group, version, each["name"], kind, JSON, namespaced=each["namespaced"])
                return self._found[key]
        raise NotFound(f"the API server serves no {kind} of {api_version}", status=404)


class UnknownKindObject(Object):
    """An object of a kind that Muster does not know."""

    spec: Any = None
    data: Any = None
    status: Any = None


class Watched:
    """Caches of the kinds that plugins watch; they contain only objects of TrainJobs.

    A kind is cached while its CRD is installed.
    """

    def __init__(self, client: Client, framework: Framework, *, job_sets: bool = False) -> None:
        own = set(Framework(registry.plugins()).watched())
        wanted = [name for name in framework.watched() if name not in own] + [JOB_SETS.full_name] * job_sets
        self._plugin = framework.status
        self._handlers: list[Handler[Object]] = []
        self._objects = {name: ObjectStore(packed=_resource(name).type) for name in wanted}
        self._reflectors = [OptionalReflector(client, _resource(name), partial(self._changed, name)) for name in wanted]

    def add_handler(self, handler: Handler[Object]) -> None:
        """Register a handler, which is called with each change after the cache contains the change."""
        self._handlers.append(handler)

    def start(self) -> None:
        """Start the watches."""
        for reflector in self._reflectors:
            reflector.start()

    def stop(self) -> None:
        """End the watches."""
        for reflector in self._reflectors:
            reflector.stop()

    @property
    def synced(self) -> bool:
        """True if the cache of each installed kind is in sync."""
        return all(reflector.synced for reflector in self._reflectors)

    def get(self, resource: Resource[Any], key: str) -> Object | None:
        """Return the object with this key and this kind, which must be watched."""
        found = self._objects.get(resource.full_name)
        return found.get(key) if found is not None else None

    def watches(self, resource: Resource[Any]) -> bool:
        """Return True if the objects of this kind are cached."""
        return resource.full_name in self._objects

    def _objects_of(self, train_job: TrainJob) -> list[Mapping[str, Any]]:
        """Return all objects that a TrainJob controls, as JSON, keyed by kind and name."""
        uid = train_job.metadata.uid
        found = [each for store in self._objects.values() for each in store.list() if owned_by(each.metadata, uid)]
        return [msgspec.to_builtins(each) for each in sorted(found, key=lambda each: (each.kind, each.metadata.name))]

    def computed(self, train_job: TrainJob, job_set: JobSet | None) -> Computed:
        """Return end and counts of a TrainJob from the plugin that computes a status, or else from the JobSet."""
        plugin, own = self._plugin, of_job_set(job_set)
        if plugin is None or own.end:
            return own
        try:
            found = computed(plugin.status(self._objects_of(train_job)))
        except Exception as error:
            raise Obstacle(f"plugin {plugin.name} computes no status: {type(error).__name__}: {error}") from error
        return Computed(found.end, tuple(found.with_counts(own.counts)))

    def _changed(self, name: str, old: Object | None, new: Object | None) -> None:
        one = new or old
        if one is None or controller_key(one.metadata, TRAIN_JOBS) is None:
            return
        if new is None:
            self._objects[name].discard(one.metadata.key)
        else:
            self._objects[name].add_object(new)
        for handler in self._handlers:
            handler(old, new)


def _resource(name: str) -> Resource[Any]:
    """Return the kind that a plugin names as `plural.group`; the CRD determines the served version."""
    if name == JOB_SETS.full_name:
        return JOB_SETS
    plural, _, group = name.partition(".")
    return Resource(group, "", plural, plural, UnknownKindObject)
