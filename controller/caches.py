"""Caches that several controllers share, with their indexes, and the objects that this process wrote last.

Written objects are recorded, so that a pass right after a write does not use the state before the write. A complete pod
takes about 10 KiB, and a cluster may have 50,000 of them. Cached pods therefore lack their environment variables,
commands and affinity. Of a pod's volumes, the cache contains only the names of the Secret and the ConfigMap that
`controller.gangs.rendezvous` creates.
"""

import threading
from collections.abc import Callable, Hashable, Mapping
from functools import lru_cache
from itertools import islice
from typing import Any, Final, Generic, TypeVar, cast

import msgspec
from msgspec import structs

from controller.live import controller_key
from muster.api import names
from muster.api.base import Resource
from muster.api.kubernetes.core import PODS, Container, Pod, PodSpec
from muster.api.kubernetes.meta import Object, OwnerReference, ReportedCondition
from muster.api.kubernetes.scheduling import NATIVE_POD_GROUPS, NativePodGroup
from muster.api.muster.gang import named_gang
from muster.api.muster.native import counted_in
from muster.api.muster.placement import PLACEMENTS, Placement, PlacementSpec, PlacementStatus
from muster.api.muster.pools import is_musters
from muster.api.volcano.batch import COMMANDS, JOBS, Job
from muster.api.volcano.cron import CRON_JOBS
from muster.api.volcano.flow import JOB_FLOWS, MADE_OF
from muster.api.volcano.scheduling import POD_GROUPS, PodGroup
from muster.kube.client import Client
from muster.kube.memorylimit import MemoryLimit
from muster.kube.reflector import Reflector
from muster.kube.store import Indexer, ObjectStore
from muster.runtime.plugins.mpi_objects import HOSTFILE_VOLUME, SSH_VOLUME
from muster.volcano.tasks import job_of_pod
from muster.workloads.podgroup import group_to_make
from muster.workloads.table import gang_of, group_name

T = TypeVar("T", bound=Object)
V = TypeVar("V")
_MOST_SHARED_BYTES = 4096
"""Maximum size, as JSON, of a value that cached objects share; all 4096 shared values together take at most 16 MiB."""
JOB_INDEX: Final = "job"
"""Index of the pod store: the Job that the pod belongs to (`JobRef.entry`)."""
GROUP_INDEX: Final = "group"
"""Index of the pod store: `namespace/name` of the PodGroup that the controller creates for the pod."""
NAMED_INDEX: Final = "named"
"""Index of the pod store: `namespace/name` of the PodGroup that an unbound pod names and that Muster does not
create."""
ENDED_INDEX: Final = "ended"
"""Index of the pod store: PodGroup and phase of a pod that has ended and is not deleted yet."""
NATIVE_INDEX: Final = "native gang"
"""Index of the pod store: `namespace/name` of the PodGroup that a pod of a Job would have without the Job's native
PodGroup."""
CRON_INDEX: Final = "cron-job"
"""Index of the store of Jobs: `namespace/name` of the CronJob that controls the Job."""
TEMPLATE_INDEX: Final = "job-template"
"""Index of the store of Jobs: `namespace/name` of the JobTemplate from which a JobFlow has created the Job."""
QUEUE_INDEX: Final = "queue"
"""Index of the stores of PodGroups and native PodGroups: the name of the queue."""


class SharedCaches:
    """The caches that several controllers share; a controller may have further caches of its own."""

    def __init__(self, client: Client) -> None:
        self.jobs = packed(client, JOBS, {TEMPLATE_INDEX: template_keys, CRON_INDEX: cron_keys})
        by_gang = {JOB_INDEX: job_keys, GROUP_INDEX: group_keys, ENDED_INDEX: ended_keys, NATIVE_INDEX: native_keys}
        by_gang[NAMED_INDEX] = named_keys
        self.pods = Reflector(client, PODS, store=ObjectStore[Pod](by_gang), keep=kept)
        self.groups = limited(client, POD_GROUPS, store=ObjectStore[PodGroup]({QUEUE_INDEX: queue_names}))
        by_queue = ObjectStore[NativePodGroup]({QUEUE_INDEX: native_queue_names})
        self.natives = limited(client, NATIVE_POD_GROUPS, store=by_queue, may_be_absent=True)
        self.commands = limited(client, COMMANDS)
        self.reflectors: dict[str, Reflector[Any]] = {
            "jobs": self.jobs,
            "pods": self.pods,
            "podgroups": self.groups,
            "native podgroups": self.natives,
            "commands": self.commands,
        }


def packed(client: Client, resource: Resource[T], indexes: Mapping[str, Indexer[T]] | None = None) -> Reflector[T]:
    """Return a cache for objects with pod templates, which are stored as text and within a memory limit."""
    return limited(client, resource, store=ObjectStore(indexes, packed=resource.type))


def limited(client: Client, resource: Resource[T], **more: Any) -> Reflector[T]:
    """Return a cache for objects that tenants create, with a memory limit for the objects of each namespace."""
    return Reflector(client, resource, budget=MemoryLimit(resource), **more)


def placements_of(client: Client) -> Reflector[Placement]:
    """Return a cache that shows which gangs have a placement; the nodes in the placements are omitted."""

    def without_nodes(one: Placement) -> Placement:
        spec = PlacementSpec(pod_group_uid=one.spec.pod_group_uid, epoch=one.spec.epoch)
        return structs.replace(one, spec=spec, status=PlacementStatus(phase=one.status.phase))

    return limited(client, PLACEMENTS, keep=without_nodes)


def job_keys(pod: Pod) -> list[str]:
    """Index a pod by its Job."""
    job = job_of_pod(pod.metadata)
    return [job.entry] if job else []


def group_keys(pod: Pod) -> list[str]:
    """Index a pod by the PodGroup that Muster creates for it."""
    name = group_to_make(pod)
    return [f"{pod.metadata.namespace}/{name}"] if name else []


def named_keys(pod: Pod) -> list[str]:
    """Index a pod by the PodGroup that it waits for and that Muster does not create."""
    meta, name = pod.metadata, named_gang(pod.metadata)
    waits = name and not pod.spec.node_name and is_musters(pod.spec.scheduler_name) and not meta.deletion_timestamp
    return [f"{meta.namespace}/{name}"] if waits and not job_of_pod(meta) and group_to_make(pod) is None else []


def ended_keys(pod: Pod) -> list[str]:
    """Index an ended pod by its PodGroup and its phase."""
    meta = pod.metadata
    ours = is_musters(pod.spec.scheduler_name) and not job_of_pod(meta)
    return [f"{meta.namespace}/{group_name(meta)} {pod.status.phase}"] if pod.finished and ours else []


def native_keys(pod: Pod) -> list[str]:
    """Index a pod of a Job by the PodGroup that the pod would have without the Job's native PodGroup."""
    meta = pod.metadata
    own, gang = group_name(meta), gang_of(pod)
    gone = pod.finished or meta.deletion_timestamp
    native = names.NATIVE_GROUP in meta.annotations and gang not in {None, own} and not gone
    return [f"{meta.namespace}/{own}"] if native else []


def cron_keys(job: Job) -> list[str]:
    """Index a Job by its CronJob."""
    key = controller_key(job.metadata, CRON_JOBS)
    return [key] if key else []


def template_keys(job: Job) -> list[str]:
    """Index a Job by its JobTemplate."""
    namespace, made_of = job.metadata.namespace, job.metadata.annotations.get(MADE_OF, "")
    mine = controller_key(job.metadata, JOB_FLOWS) is not None and made_of.startswith(f"{namespace}.")
    return [f"{namespace}/{made_of.removeprefix(f'{namespace}.')}"] if mine else []


def queue_names(group: PodGroup) -> list[str]:
    """Index a PodGroup by its queue."""
    return [group.spec.queue or names.DEFAULT_QUEUE]


def native_queue_names(native: NativePodGroup) -> list[str]:
    """Index a native PodGroup by its queue, except for PodGroups that Muster itself publishes or does not manage."""
    queue = counted_in(native)
    return [queue] if queue else []


_SWEPT_AT_ONCE = 2
_LATEST_S = 600.0
"""Time after which the record of a written object is dropped if no cache has shown the object."""


class OwnWrites(Generic[T]):
    """Recently written objects of one kind, by key; each object is kept until a cache contains it. Thread-safe.

    A new object counts as existing for at most `kept_s` while no cache contains it.
    """

    def __init__(self, monotonic_s: Callable[[], float], kept_s: float = 0.0) -> None:
        self._monotonic_s = monotonic_s
        self._kept_s = kept_s
        self._lock = threading.Lock()
        self._written: dict[str, tuple[float, T]] = {}

    def note(self, written: T) -> None:
        """Record the object in the API server's response to a write."""
        now = self._monotonic_s()
        with self._lock:
            self._written.pop(written.metadata.key, None)
            self._written[written.metadata.key] = (now + self._kept_s, written)
            for old, (until_s, _) in list(islice(self._written.items(), _SWEPT_AT_ONCE)):  # oldest first
                if until_s + _LATEST_S < now:  # it was deleted, or no cache stores it
                    del self._written[old]

    def newest(self, key: str, cached: T | None) -> T | None:
        """Return the newer version of an object: the cached version, or the version that was written last."""
        with self._lock:
            until_s, written = self._written.get(key, (0.0, None))
            if written is None:
                return cached
            newer = self._monotonic_s() < until_s if cached is None else _version(written) > _version(cached)
            if newer:
                return written
            del self._written[key]
            return cached

    def unseen(self, key: str) -> bool:
        """Return True while a created object is not in any cache yet."""
        return self._monotonic_s() < self._written.get(key, (0.0, None))[0]

    def seen(self, old: T | None, new: T | None) -> None:
        """Drop the record of an object that a cache contains, or that was deleted."""
        shown = new or old
        if shown is None:
            return
        with self._lock:
            _, written = self._written.get(shown.metadata.key, (0.0, None))
            if written is None:
                return
            gone = new is None and written.metadata.uid == shown.metadata.uid
            if gone or (new and _version(written) <= _version(new)):
                del self._written[shown.metadata.key]

    def drop(self, key: str) -> None:
        """Drop the record of a deleted object."""
        with self._lock:
            self._written.pop(key, None)


def _version(obj: Object) -> int:
    return int(obj.metadata.resource_version or 0)


def kept(pod: Pod) -> Pod:
    """Return the pod without the fields that no controller reads."""
    spec = structs.replace(
        pod.spec,
        containers=_shared([_kept(container) for container in pod.spec.containers], list[Container]),
        init_containers=_shared([_kept(container) for container in pod.spec.init_containers], list[Container]),
        volumes=_shared(_kept_volumes(pod.spec), list[dict[str, Any]]),
        affinity=None,
        tolerations=[],
        topology_spread_constraints=[],
    )
    owners = _shared(pod.metadata.owner_references, list[OwnerReference])
    conditions = _shared(pod.status.conditions, list[ReportedCondition])
    metadata = structs.replace(pod.metadata, owner_references=owners)
    return structs.replace(pod, metadata=metadata, spec=spec, status=structs.replace(pod.status, conditions=conditions))


def _kept(container: Container) -> Container:
    """Return the container reduced to its name, resources and restart policy."""
    return Container(name=container.name, resources=container.resources, restart_policy=container.restart_policy)


def _kept_volumes(spec: PodSpec) -> list[dict[str, Any]]:
    """Return the volumes of the pod's MPI Secret and ConfigMap, reduced to the names of these objects."""
    kept_fields = ((SSH_VOLUME, "secret", "secretName"), (HOSTFILE_VOLUME, "configMap", "name"))
    return [
        {"name": name, source: {field: volume[source].get(field)}}
        for volume in spec.volumes
        for name, source, field in kept_fields
        if volume.get("name") == name and volume.get(source)
    ]


def _shared(value: V, kind: type[V]) -> V:
    """Return an equal value that other cached objects share; a shared value must not be changed.

    Unusually large values are not shared.
    """
    text = msgspec.json.encode(value)
    return cast("V", _decoded(text, cast("Hashable", kind))) if len(text) <= _MOST_SHARED_BYTES else value


@lru_cache(maxsize=4096)
def _decoded(text: bytes, kind: Any) -> object:
    return msgspec.json.decode(text, type=kind)
