"""Reader of the existing objects of TrainJobs, from caches and recent writes, and executor of steps."""

import threading
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, NamedTuple, TypeVar

import msgspec
import structlog

from certs import ssh
from controller.caches import JOB_INDEX, OwnWrites, SharedCaches, limited
from controller.kit import Kit
from controller.live import delete, find_or_make, get_or_none, owned_by, patch_object
from controller.trainjob.obstacle import foreign
from controller.trainjob.rules.children import Children, covers, fingerprint
from controller.trainjob.rules.steps import Clear, Create, Delete, Ensure, PatchJob, SendCommand, Step, Suspend
from controller.trainjob.watched import Kinds, Watched
from muster.api import names
from muster.api.base import Resource
from muster.api.kubeflow.jobset import JOB_SETS, JobSet
from muster.api.kubeflow.trainer import TrainJob
from muster.api.kubernetes.core import CONFIG_MAPS, EVENTS, INDEXED_JOBS, PODS, IndexedJob
from muster.api.kubernetes.meta import Object, ObjectMeta, readable_time
from muster.api.volcano.batch import COMMANDS, JOBS, Job
from muster.api.volcano.scheduling import POD_GROUPS, PodGroup
from muster.kube.errors import AlreadyExists, Conflict, Forbidden, NotFound
from muster.kube.reflector import Reflector
from muster.kube.store import ObjectStore
from muster.volcano.tasks import reference

T = TypeVar("T", bound=Object)
JSON = dict[str, Any]
log = structlog.get_logger(__name__)
BELIEVED_S = 30.0
"""Time for which a created object, or a Command, counts as existing while no cache shows it."""
_FAILED_CREATE = frozenset({("Job", "FailedCreate"), ("JobSet", "JobCreationFailed")})
"""Kinds and reasons of Events which show that a batch/v1 Job cannot create pods, or a JobSet cannot create Jobs."""
_CREATED = "SuccessfulCreate"
"""Reason of the Event about the creation of a pod of a batch/v1 Job."""
TRAIN_JOB_INDEX = "train-job"
"""Index of the store of initializers: `namespace/name` of the initializer's TrainJob."""


def train_job_keys(job: IndexedJob) -> list[str]:
    """Index an initializer by its TrainJob."""
    return [f"{job.metadata.namespace}/{job.metadata.labels.get(names.TRAIN_JOB, '')}"]


class Ensured(NamedTuple):
    """Record of an object that was found up to date: the hash of its wanted manifest, and its UID and version."""

    fingerprint: str
    uid: str
    version: str


class ChildSteps:
    """Reader of the objects of TrainJobs, and executor of the steps that `rules` has chosen.

    Only one thread at a time handles a TrainJob. `initializers` and `maps` are the caches of the batch/v1 Jobs and
    ConfigMaps of TrainJobs.
    """

    def __init__(self, kit: Kit, caches: SharedCaches, watched: Watched) -> None:
        self._client, self._caches, self._watched = kit.client, caches, watched
        by_train_job = ObjectStore({TRAIN_JOB_INDEX: train_job_keys}, packed=IndexedJob)
        self.initializers = limited(kit.client, INDEXED_JOBS, label_selector=names.TRAIN_JOB, store=by_train_job)
        self.maps: Reflector[Object] = limited(kit.client, CONFIG_MAPS, label_selector=names.TRAIN_JOB)
        self._kinds = Kinds(kit.client)
        self._monotonic_s = kit.monotonic_s
        self._lock = threading.Lock()
        self._made = OwnWrites[Job](kit.monotonic_s, BELIEVED_S)
        self._made_initializers = OwnWrites[IndexedJob](kit.monotonic_s, BELIEVED_S)
        self._ensured: dict[str, dict[str, Ensured]] = {}
        self._commands: dict[str, tuple[float, tuple[str, int, str]]] = {}

    def children(self, train_job: TrainJob, initializers: list[str]) -> Children:
        """Return the existing objects of a TrainJob."""
        key = train_job.metadata.key
        job = _of(train_job, self._made.newest(key, self._caches.jobs.store.get(key)))
        found = {name: each for name in initializers if (each := self._initializer(train_job, name))}
        pods = self._caches.pods.store.by_index(JOB_INDEX, reference(job).entry) if job else ()
        watched = self._watched.get(JOB_SETS, key)
        job_set = _of(train_job, watched) if isinstance(watched, JobSet) else None
        group = _of(train_job, self._caches.groups.store.get(key)) if job_set else None
        return Children(job, pods, found, job_set, group)

    def left(self, train_job: TrainJob) -> Children:
        """Return the objects of a TrainJob that has ended; its runtime need not be known."""
        own = self.initializers.store.by_index(TRAIN_JOB_INDEX, train_job.metadata.key)
        return self.children(train_job, [each.metadata.name for each in own])

    def forget(self, uid: str) -> None:
        """Drop the data of a TrainJob that has ended or was deleted."""
        with self._lock:
            self._ensured.pop(uid, None)
            self._commands.pop(uid, None)

    def run_step(self, train_job: TrainJob, step: Step) -> None:
        """Carry out one step; raise Obstacle if this is not possible now."""
        match step:
            case Create():
                self._create(train_job, step.manifest)
            case Ensure():
                self._ensure(train_job, step)
            case Suspend():
                patch = {"spec": {"suspend": step.suspend}}
                self._made_initializers.note(patch_object(self._client, INDEXED_JOBS, step.job.metadata, patch))
            case SendCommand():
                self._command(train_job, step)
            case Clear():
                for pod in step.pods:
                    delete(self._client, PODS, pod.metadata)
            case PatchJob():
                meta = step.job.metadata
                self._made.note(self._client.json_patch(JOBS, meta.name, step.operations, meta.namespace))
            case Delete():
                self.delete(step.job, step.why)

    def fail_gang(self, group: PodGroup, why: str) -> None:
        """Record in the PodGroup of a JobSet's pods that the TrainJob has failed.

        The state of the pods does not show the failure, because some of the pods may have succeeded.
        """
        with suppress(NotFound, Conflict):
            patch_object(self._client, POD_GROUPS, group.metadata, {"status": {"ending": why}})

    def delete(self, job: Job | IndexedJob | JobSet, why: str) -> None:
        """Delete a Job or JobSet; the object exists until its pods are gone."""
        kinds: dict[type, Resource[Any]] = {Job: JOBS, IndexedJob: INDEXED_JOBS, JobSet: JOB_SETS}
        resource = kinds[type(job)]
        if job.metadata.deletion_timestamp:
            return
        meta = job.metadata
        with suppress(NotFound):
            self._client.delete(resource, meta.name, meta.namespace, uid=meta.uid, propagation="Foreground")
        self._made.drop(meta.key)
        self._made_initializers.drop(meta.key)
        log.info("deleted", job=meta.key, why=why)

    def refusal(self, makers: Mapping[str, str], namespace: str, since_s: float) -> str:
        """Return the reason why pods or Jobs cannot be created, from the newest Event about their creators.

        Return "" without an Event of this kind after `since_s`, or if a pod was created after the Event. `makers` maps
        the kind of each creator to the creator's name; the returned reason begins with kind and name.
        """
        found: list[tuple[float, str]] = []
        for kind, name in makers.items():
            selector = f"involvedObject.kind={kind},involvedObject.name={name}"
            with suppress(Forbidden):  # an earlier chart's role lacks the right
                events = self._client.list(EVENTS, namespace, field_selector=selector)
                for each in events:
                    failed = (kind, each.reason) in _FAILED_CREATE
                    if failed or each.reason == _CREATED:
                        words = f"{kind} {name}: {each.message}" if failed else ""
                        found.append((readable_time(each.last_timestamp) or 0.0, words))
        return max((each for each in found if each[0] >= since_s), default=(0.0, ""))[1]

    def _initializer(self, train_job: TrainJob, name: str) -> IndexedJob | None:
        key = f"{train_job.metadata.namespace}/{name}"
        return _of(train_job, self._made_initializers.newest(key, self.initializers.store.get(key)))

    def _create(self, train_job: TrainJob, manifest: JSON) -> None:
        ours = manifest["apiVersion"] == JOBS.api_version
        resource: Resource[Any] = JOBS if ours else INDEXED_JOBS
        made, new = find_or_make(self._client, resource, manifest)
        if not new and not owned_by(made.metadata, train_job.metadata.uid):
            raise foreign(f"{resource.kind} {made.metadata.name}", made.metadata, train_job)
        (self._made if ours else self._made_initializers).note(made)

    def _command(self, train_job: TrainJob, step: SendCommand) -> None:
        """Create the Command once for each phase of the Job; the Command exists until it has been carried out."""
        meta = step.job.metadata
        command = (step.action, train_job.metadata.generation, step.job.status.state.phase)
        until, last = self._commands.get(train_job.metadata.uid, (0.0, None))
        if last == command and self._monotonic_s() < until:
            return
        name = f"{meta.name}-{step.action.lower()}-{train_job.metadata.generation}"
        target = {"apiVersion": JOBS.api_version, "kind": JOBS.kind, "name": meta.name, "uid": meta.uid}
        manifest = {
            "metadata": {"name": name, "namespace": meta.namespace, "ownerReferences": [target]},
            "action": step.action,
            "target": target,
            "reason": "Suspended" if step.action == "AbortJob" else "Resumed",
            "message": f"spec.suspend of TrainJob {train_job.metadata.name} is {str(train_job.spec.suspend).lower()}",
        }
        with suppress(AlreadyExists):
            self._client.create(COMMANDS, manifest)
        self._commands[train_job.metadata.uid] = (self._monotonic_s() + BELIEVED_S, command)

    def _ensure(self, train_job: TrainJob, step: Ensure) -> None:
        component, meta = step.component, train_job.metadata
        key = f"{component.kind}/{component.name}"
        known = self._ensured.get(meta.uid, {}).get(key)
        mark = fingerprint(component.manifest)
        resource = self._kinds.resource_of(component.manifest["apiVersion"], component.kind)
        object_key = f"{meta.namespace}/{component.name}"
        if known and known.fingerprint == mark and self._unchanged(resource, object_key, known):
            return
        live = self._present(train_job, resource, component.name, likely=bool(train_job.status.jobs_status))
        if live is None:
            try:
                live = self._client.create(resource, ssh.complete(component))
            except AlreadyExists:
                live = self._present(train_job, resource, component.name, likely=True)
        elif not component.once and not covers(component.manifest, live):
            uid = {**component.manifest["metadata"], "uid": live["metadata"]["uid"]}
            live = self._client.apply(
                resource, {**component.manifest, "metadata": uid}, field_manager=names.FIELD_MANAGER
            )
        if live is not None:
            with self._lock:
                version = str(live["metadata"].get("resourceVersion", ""))
                self._ensured.setdefault(meta.uid, {})[key] = Ensured(mark, live["metadata"]["uid"], version)

    def _present(self, train_job: TrainJob, resource: Resource[JSON], name: str, *, likely: bool) -> JSON | None:
        """Return the object with this name if it exists and belongs to the TrainJob.

        An object that is not `likely` to exist is read only if the cache contains a ConfigMap with this name.
        """
        if not likely and self.maps.store.get(f"{train_job.metadata.namespace}/{name}") is None:
            return None
        found = get_or_none(self._client, resource, name, train_job.metadata.namespace if resource.namespaced else None)
        if found is None:
            return None
        meta = msgspec.convert(found["metadata"], ObjectMeta)
        own = meta.labels.get(names.TRAIN_JOB) == train_job.metadata.name  # a retained claim has no owner
        if not (owned_by(meta, train_job.metadata.uid) if meta.owner_references else own):
            raise foreign(f"{resource.kind} {name}", meta, train_job)
        return found

    def _unchanged(self, resource: Resource[JSON], key: str, known: Ensured) -> bool:
        """Return True if an object has not changed since the last pass, according to the cache of its kind."""
        if resource.kind == "ConfigMap":
            shown = self.maps.store.get(key)
        elif self._watched.watches(resource):
            shown = self._watched.get(resource, key)
        else:
            return True
        return shown is not None and (shown.metadata.uid, shown.metadata.resource_version) == known[1:]


def _of(train_job: TrainJob, found: T | None) -> T | None:
    """Return the object if it belongs to this TrainJob, otherwise None."""
    return found if found is not None and owned_by(found.metadata, train_job.metadata.uid) else None
