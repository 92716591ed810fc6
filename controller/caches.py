"""Objects beside the caches, as this process wrote them last, and pods in the cache without unread fields.

A pass right after a write must not decide on the state before it. A whole pod is some 10 KiB, and there may be 50,000:
of its variables, commands, volumes and affinity nothing is read but the names of the Secret and the ConfigMap that
`controller.gangs.rendezvous` makes.
"""

import threading
from collections.abc import Callable, Hashable
from functools import lru_cache
from typing import Any, Generic, TypeVar, cast

import msgspec
from msgspec import structs

from muster.api.kubernetes.core import Container, Pod, PodSpec
from muster.api.kubernetes.meta import Object, OwnerReference, ReportedCondition
from muster.runtime.plugins.mpi_objects import HOSTFILE_VOLUME, SSH_VOLUME

T = TypeVar("T", bound=Object)
V = TypeVar("V")
_MOST_SHARED_BYTES = 4096
"""The values that are remembered come to 16 MiB at most, as text."""


class OwnWrites(Generic[T]):
    """Objects of one kind by key until a cache shows them, created ones for `kept_s` at most. Thread safe."""

    def __init__(self, monotonic_s: Callable[[], float], kept_s: float = 0.0) -> None:
        self._monotonic_s = monotonic_s
        self._kept_s = kept_s
        self._lock = threading.Lock()
        self._written: dict[str, tuple[float, T]] = {}

    def note(self, written: T) -> None:
        """Notes an object with which the API server answered a write."""
        with self._lock:
            self._written[written.metadata.key] = (self._monotonic_s() + self._kept_s, written)

    def newest(self, key: str, cached: T | None) -> T | None:
        """The newer of the cached object and the one written last."""
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
        """True while a created object counts that no cache has shown."""
        return self._monotonic_s() < self._written.get(key, (0.0, None))[0]

    def seen(self, old: T | None, new: T | None) -> None:
        """Drops the note of an object that a cache shows, or that is gone."""
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
        """Drops the note of an object that was deleted."""
        with self._lock:
            self._written.pop(key, None)


def _version(obj: Object) -> int:
    return int(obj.metadata.resource_version or 0)


def kept(pod: Pod) -> Pod:
    """A pod without the fields that only its node needs."""
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
    """The container with its name and resources only."""
    return Container(name=container.name, resources=container.resources, restart_policy=container.restart_policy)


def _kept_volumes(spec: PodSpec) -> list[dict[str, Any]]:
    """The names of the Secret and the ConfigMap of MPI, if the pod mounts them."""
    kept_fields = ((SSH_VOLUME, "secret", "secretName"), (HOSTFILE_VOLUME, "configMap", "name"))
    return [
        {"name": name, source: {field: volume[source].get(field)}}
        for volume in spec.volumes
        for name, source, field in kept_fields
        if volume.get("name") == name and volume.get(source)
    ]


def _shared(value: V, kind: type[V]) -> V:
    """An equal value that pods share, so it must not be changed; one of unusual size is not remembered for others."""
    text = msgspec.json.encode(value)
    return cast("V", _decoded(text, cast("Hashable", kind))) if len(text) <= _MOST_SHARED_BYTES else value


@lru_cache(maxsize=4096)
def _decoded(text: bytes, kind: Any) -> object:
    return msgspec.json.decode(text, type=kind)
