"""The runtime of a TrainJob: the version that admission saw, kept in a ConfigMap from the first pass on.

Admission notes the version (`muster.dev/runtime-version`). If the runtime has changed by the first pass, the API server
can still list that version, until etcd is compacted after some minutes. Later changes do not affect the TrainJob.
"""

import json
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

import msgspec
import yaml

from controller.live import find
from controller.trainjob.obstacle import Obstacle, belongs, foreign
from controller.worker import Worker
from muster.api import names
from muster.api.base import Resource
from muster.api.kubeflow.trainer import GROUP, TRAIN_JOBS, RuntimeRef, TrainJob
from muster.api.kubeflow.trainingruntime import (
    CLUSTER_TRAINING_RUNTIMES,
    TRAINING_RUNTIMES,
    ClusterTrainingRuntime,
    TrainingRuntime,
)
from muster.api.kubernetes.core import CONFIG_MAPS
from muster.api.kubernetes.meta import Object
from muster.kube.client import Client
from muster.kube.errors import AlreadyExists, BadRequest, Gone, NotFound, ServerError
from muster.kube.events import Recorder
from muster.kube.reflector import Reflector
from muster.kube.store import Store
from muster.workloads.adapter import Owner

JSON = dict[str, Any]
Runtime = TrainingRuntime | ClusterTrainingRuntime
KEY = "runtime"
FINALIZER = f"{GROUP}/resource-in-use"
_KINDS: dict[str, Resource[Any]] = {each.kind: each for each in (TRAINING_RUNTIMES, CLUSTER_TRAINING_RUNTIMES)}
_RAW_MAPS: Resource[JSON] = Resource("", "v1", "configmaps", "ConfigMap", JSON)


def snapshot_name(train_job: str) -> str:
    """The ConfigMap that keeps the runtime of a TrainJob."""
    return f"{train_job}-runtime-snapshot"


class Runtimes:
    """Finds the runtime of each TrainJob, once. `maps` holds the ConfigMaps of TrainJobs."""

    def __init__(self, client: Client, recorder: Recorder, maps: Store[Object]) -> None:
        self._client = client
        self._recorder = recorder
        self._maps = maps
        self._known: dict[str, Runtime] = {}

    def of(self, train_job: TrainJob) -> Runtime:
        """The runtime; Obstacle if it cannot be read."""
        uid = train_job.metadata.uid
        if uid not in self._known:
            runtime = self._kept(train_job) or self._keep(train_job)
            kind: Resource[Runtime] = _KINDS[runtime["kind"]]
            self._known[uid] = msgspec.convert(runtime, kind.type)
        return self._known[uid]

    def forget(self, uid: str) -> None:
        """Drops the runtime of a TrainJob that has ended or is gone."""
        self._known.pop(uid, None)

    def _kept(self, train_job: TrainJob) -> JSON | None:
        """The runtime that an earlier pass has kept."""
        meta = train_job.metadata
        if self._maps.get(f"{meta.namespace}/{snapshot_name(meta.name)}") is None:
            return None
        with suppress(NotFound):
            return self._read(train_job)
        return None

    def _read(self, train_job: TrainJob) -> JSON:
        meta = train_job.metadata
        found = self._client.get(_RAW_MAPS, snapshot_name(meta.name), meta.namespace)
        owners = msgspec.convert(found["metadata"], type(meta))
        if not belongs(owners, train_job):
            raise foreign(f"ConfigMap {snapshot_name(meta.name)}", owners, train_job)
        runtime: JSON = yaml.safe_load((found.get("data") or {}).get(KEY) or "") or {}
        reference = train_job.spec.runtime_ref
        if (runtime.get("kind"), (runtime.get("metadata") or {}).get("name")) != (reference.kind, reference.name):
            raise Obstacle(
                f"ConfigMap {snapshot_name(meta.name)} does not hold {reference.kind} {reference.name}, which this "
                "TrainJob refers to; delete the ConfigMap, and the runtime will be read again"
            )
        return runtime

    def _keep(self, train_job: TrainJob) -> JSON:
        """Reads the runtime and keeps it; a version that an earlier pass has kept comes first."""
        meta = train_job.metadata
        runtime = self._version(train_job)
        runtime["metadata"] = {
            key: value for key, value in runtime["metadata"].items() if key not in {"managedFields", "selfLink"}
        }
        manifest = {
            "metadata": {
                "name": snapshot_name(meta.name),
                "namespace": meta.namespace,
                "labels": {names.TRAIN_JOB: meta.name},
                "ownerReferences": [Owner.of(TRAIN_JOBS, meta).reference()],
            },
            "immutable": True,
            "data": {KEY: yaml.safe_dump(runtime, sort_keys=False)},
        }
        try:
            self._client.create(CONFIG_MAPS, manifest)
        except AlreadyExists:
            return self._read(train_job)
        return runtime

    def _version(self, train_job: TrainJob) -> JSON:
        """The version that admission saw; else, with a warning, the current one."""
        reference, meta = train_job.spec.runtime_ref, train_job.metadata
        uid, _, version = meta.annotations.get(names.RUNTIME_VERSION, "").partition("/")
        live = self._live(reference, meta.namespace)
        if live and (not uid or (live["metadata"]["uid"], live["metadata"]["resourceVersion"]) == (uid, version)):
            return live
        found = self._at(reference, meta.namespace, version) if uid else None
        if found and found["metadata"]["uid"] == uid:
            return found
        if live is None:
            what = f"{reference.kind} {reference.name}, to which spec.runtimeRef refers"
            raise Obstacle(f"{what}, is gone; create it again, or delete this TrainJob")
        why = (
            f"{reference.kind} {reference.name} was changed after this TrainJob had been admitted, and the version of "
            "that time is not to be had any more: the TrainJob runs with the runtime as it is now"
        )
        self._recorder.event(train_job, "Warning", "RuntimeChanged", why)
        return live

    def _live(self, reference: RuntimeRef, namespace: str) -> JSON | None:
        kind: Resource[JSON] = replace(_KINDS[reference.kind], type=JSON)
        return find(self._client, kind, reference.name, namespace if kind.namespaced else None)

    def _at(self, reference: RuntimeRef, namespace: str, version: str) -> JSON | None:
        """The runtime as it was at a resource version; None if the API server does not have it any more."""
        kind = _KINDS[reference.kind]
        query = {"fieldSelector": f"metadata.name={reference.name}"}
        query |= {"resourceVersion": version, "resourceVersionMatch": "Exact"}
        path = kind.path(namespace if kind.namespaced else None)
        try:
            items = json.loads(self._client.request("GET", path, query=query)).get("items") or []
        except (Gone, BadRequest, ServerError):
            return None
        return {"apiVersion": kind.api_version, "kind": kind.kind, **items[0]} if items else None


class Finalizers:
    """A worker over runtimes (`namespace/name`, or `name`) with a finalizer of Kubeflow Trainer before 2.3."""

    def __init__(self, client: Client, *, monotonic_s: Callable[[], float] = time.monotonic) -> None:
        self._client = client
        self.reflectors: dict[str, Reflector[Any]] = {
            each.plural: Reflector(client, replace(each, type=Object)) for each in _KINDS.values()
        }
        self.handlers: list[tuple[Reflector[Any], Any]] = [(each, self._seen) for each in self.reflectors.values()]
        self.worker = Worker("runtime", self.process, monotonic_s=monotonic_s)

    def process(self, key: str) -> None:
        """Takes the finalizer off; others stay."""
        kind: Resource[Any] = TRAINING_RUNTIMES if "/" in key else CLUSTER_TRAINING_RUNTIMES
        found: Object | None = self.reflectors[kind.plural].store.get(key)
        if found is None or FINALIZER not in found.metadata.finalizers:
            return
        meta = found.metadata
        others = [each for each in meta.finalizers if each != FINALIZER]
        patch = {"metadata": {"resourceVersion": meta.resource_version, "finalizers": others}}
        with suppress(NotFound):
            self._client.merge_patch(replace(kind, type=Object), meta.name, patch, meta.namespace or None)

    def _seen(self, old: Object | None, new: Object | None) -> None:
        del old
        if new and FINALIZER in new.metadata.finalizers:
            self.worker.queue.add(new.metadata.key)
