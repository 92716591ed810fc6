"""The runtime of a TrainJob: the version that admission used, stored in a ConfigMap (a snapshot) by the first pass.

Admission records the version (annotation `muster.dev/runtime-version`). If the runtime changes before the first pass,
the API server can still list the recorded version until etcd is compacted, a few minutes later. Later changes of the
runtime do not affect the TrainJob.
"""

from contextlib import suppress
from dataclasses import replace
from hashlib import sha256
from sys import intern
from typing import Any

import msgspec

from controller.caches import limited
from controller.kit import KeyController, Kit
from controller.live import delete, get_or_none, owned_by
from controller.trainjob.obstacle import Obstacle, foreign
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
from muster.kube.codec import UNREADABLE, ListPage, decoder
from muster.kube.errors import AlreadyExists, BadRequest, Gone, NotFound, ServerError, Undecodable
from muster.kube.events import EventWriter
from muster.kube.store import ObjectStore, text_of
from muster.runtime.train_job import Target
from muster.runtime.training_runtime import check_runtime
from muster.workloads.adapter import Owner

JSON = dict[str, Any]
Runtime = TrainingRuntime | ClusterTrainingRuntime
KEY = "runtime"
FINALIZER = f"{GROUP}/resource-in-use"
"""The finalizer that versions of Kubeflow Trainer before 2.3 have added to runtimes. A runtime with this finalizer
cannot be deleted."""
_KINDS: dict[str, Resource[Any]] = {each.kind: each for each in (TRAINING_RUNTIMES, CLUSTER_TRAINING_RUNTIMES)}


_CORRECT = "correct it, and create this TrainJob again"


class _Snapshot(Object):
    """The ConfigMap of a snapshot."""

    data: dict[str, str] = msgspec.field(default_factory=dict)


_SNAPSHOTS = Resource("", "v1", "configmaps", "ConfigMap", _Snapshot)


def digest(text: str) -> str:
    """Return the digest of a snapshot, as recorded in the TrainJob's status."""
    return f"sha256:{sha256(text.encode()).hexdigest()}"


def snapshot_name(train_job: str) -> str:
    """Return the name of the ConfigMap that stores the runtime of a TrainJob."""
    return f"{train_job}-runtime-snapshot"


class RuntimeFinder:
    """Finder of the runtimes of TrainJobs; the runtime of each TrainJob is looked up once.

    `maps` is the store of the TrainJobs' ConfigMaps. Any user who may write ConfigMaps can change a snapshot.
    Therefore, a snapshot is used only if it has the digest in the TrainJob's status, which only the controller writes.
    """

    def __init__(
        self, client: Client, recorder: EventWriter, maps: ObjectStore[Object], target: Target = "Job"
    ) -> None:
        self._client = client
        self._recorder = recorder
        self._maps = maps
        self._target: Target = target
        self._known: dict[str, tuple[str, str]] = {}
        """Maps the UID of a TrainJob to its runtime as text (equal texts are shared) and to the digest of its
        snapshot."""

    def runtime_of(self, train_job: TrainJob) -> Runtime:
        """Return the runtime of a TrainJob; raise Obstacle if the runtime cannot be read, or is not allowed."""
        uid = train_job.metadata.uid
        if uid not in self._known:
            text = self._kept(train_job) or self._keep(train_job)
            runtime = self._decoded(train_job.spec.runtime_ref, text)
            self._known[uid] = intern(text_of(runtime).decode()), digest(text)
        kind: Resource[Runtime] = _KINDS[train_job.spec.runtime_ref.kind]
        return decoder(kind.type).decode(self._known[uid][0])

    def digest(self, uid: str) -> str:
        """Return the digest of the runtime that `runtime_of` has found for a TrainJob, for its status.

        Return "" if `runtime_of` was not called yet.
        """
        return self._known[uid][1] if uid in self._known else ""

    def forget(self, uid: str) -> None:
        """Drop the runtime of a TrainJob that has ended or was deleted."""
        self._known.pop(uid, None)

    def _decoded(self, reference: RuntimeRef, text: str) -> Runtime:
        """Parse and check a runtime that is stored as text.

        The checks of admission are repeated, because a label can switch admission off.
        """
        kind: Resource[Runtime] = _KINDS[reference.kind]
        what = f"{reference.kind} {reference.name}"
        try:
            runtime = decoder(kind.type).decode(text.encode())
            wrong = "; ".join(map(str, check_runtime(runtime, self._target)))
        except UNREADABLE as error:
            raise Obstacle(f"{what} cannot be read: {error}; {_CORRECT}") from error
        if wrong:
            raise Obstacle(f"{what} is not valid: {wrong}; {_CORRECT}")
        return runtime

    def _kept(self, train_job: TrainJob) -> str | None:
        """Return the snapshot of the runtime that an earlier pass has stored."""
        meta = train_job.metadata
        key = f"{meta.namespace}/{snapshot_name(meta.name)}"
        if not train_job.status.runtime_digest or self._maps.get(key) is None:
            return None
        found = self._snapshot(train_job)
        return self._believed(train_job, found) if found else None

    def _keep(self, train_job: TrainJob) -> str:
        """Read the runtime of a TrainJob and store a snapshot of it.

        An existing snapshot with the digest in the TrainJob's status takes precedence.
        """
        text = self._text(train_job)
        for _ in range(2):
            try:
                self._client.create(CONFIG_MAPS, self._manifest(train_job, text))
            except AlreadyExists:
                found = self._snapshot(train_job)
                if found and train_job.status.runtime_digest:
                    return self._believed(train_job, found)
                if found and found.data.get(KEY) == text:
                    return text
                if found:  # written by an interrupted pass, or by another client
                    delete(self._client, CONFIG_MAPS, found.metadata)
            else:
                return text
        raise Obstacle(f"ConfigMap {snapshot_name(train_job.metadata.name)} has another creator", passing=True)

    def _text(self, train_job: TrainJob) -> str:
        try:
            runtime = self._version(train_job)
        except Undecodable as error:
            reference = train_job.spec.runtime_ref
            raise Obstacle(f"{reference.kind} {reference.name} cannot be read: {error.message}") from error
        runtime["metadata"] = {
            key: value for key, value in runtime["metadata"].items() if key not in {"managedFields", "selfLink"}
        }
        return msgspec.json.encode(runtime).decode()

    def _manifest(self, train_job: TrainJob, text: str) -> JSON:
        meta = train_job.metadata
        metadata = {
            "name": snapshot_name(meta.name),
            "namespace": meta.namespace,
            "labels": {names.TRAIN_JOB: meta.name},
            "ownerReferences": [Owner.from_meta(TRAIN_JOBS, meta).reference()],
        }
        return {"metadata": metadata, "immutable": True, "data": {KEY: text}}

    def _snapshot(self, train_job: TrainJob) -> _Snapshot | None:
        """Return the ConfigMap of the snapshot, its content unchecked; raise Obstacle if it is not the TrainJob's."""
        meta = train_job.metadata
        name = snapshot_name(meta.name)
        try:
            found = get_or_none(self._client, _SNAPSHOTS, name, meta.namespace)
        except Undecodable as error:
            why = f"ConfigMap {name} cannot be read: {error.message}; delete it, and the runtime will be read again"
            raise Obstacle(why) from error
        if found and not owned_by(found.metadata, meta.uid):
            raise foreign(f"ConfigMap {name}", found.metadata, train_job)
        return found

    def _believed(self, train_job: TrainJob, found: _Snapshot) -> str:
        text = found.data.get(KEY, "")
        if digest(text) != train_job.status.runtime_digest:
            raise Obstacle(
                f"ConfigMap {found.metadata.name} was changed: its digest differs from this TrainJob's "
                "status.runtimeDigest; delete the ConfigMap, and the runtime will be read again"
            )
        return text

    def _version(self, train_job: TrainJob) -> JSON:
        """Return the runtime version that admission used.

        If this version is no longer available, return the current version, with a warning.
        """
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
            f"{reference.kind} {reference.name} was changed after this TrainJob was admitted, and the earlier version "
            "no longer exists; the TrainJob uses the current runtime"
        )
        self._recorder.event(train_job, "Warning", "RuntimeChanged", why)
        return live

    def _live(self, reference: RuntimeRef, namespace: str) -> JSON | None:
        kind: Resource[JSON] = replace(_KINDS[reference.kind], type=JSON)
        return get_or_none(self._client, kind, reference.name, namespace if kind.namespaced else None)

    def _at(self, reference: RuntimeRef, namespace: str, version: str) -> JSON | None:
        """Return the runtime as it was at a resource version; None if the API server no longer has it."""
        kind = _KINDS[reference.kind]
        query = {"fieldSelector": f"metadata.name={reference.name}"}
        query |= {"resourceVersion": version, "resourceVersionMatch": "Exact"}
        path = kind.path(namespace if kind.namespaced else None)
        try:
            body = self._client.request("GET", path, query=query)
        except (Gone, BadRequest, ServerError):
            return None
        found = next(iter(ListPage.read(replace(kind, type=JSON), body)), None)
        return {"apiVersion": kind.api_version, "kind": kind.kind, **found} if found else None


class Finalizers(KeyController):
    """The worker that removes the finalizer of old versions of Kubeflow Trainer; its keys name runtimes."""

    def __init__(self, kit: Kit) -> None:
        super().__init__(kit, "runtime")
        self.reflectors |= {each.plural: limited(kit.client, replace(each, type=Object)) for each in _KINDS.values()}
        self.handlers += [(each, self._seen) for each in self.reflectors.values()]

    def process(self, key: str) -> None:
        """Remove the finalizer of Kubeflow Trainer from a runtime, and keep all other finalizers."""
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
