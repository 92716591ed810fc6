"""Caches of the cluster for the web page: all kinds that the planner reads, and TrainJobs, kept up to date by watches.

Rows are rebuilt only for namespaces with changes. All data is stored by namespace, so that each caller gets only data
of namespaces that they may see.
"""

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, Final, NamedTuple, TypeVar

from msgspec.structs import replace

from extender.explain.clusterdump import ClusterDump, read_metadata
from extender.planner.api import FEED, natives_of
from gangs.row import GangRow
from gangs.rows import RowSources, rows
from history.model import Scope
from muster.api.base import Resource
from muster.api.kubeflow.trainer import TRAIN_JOBS, TrainJob
from muster.api.kubernetes.core import NAMESPACES, NODES, PODS, Node, Pod
from muster.api.kubernetes.scheduling import COMPOSITE_POD_GROUPS, NATIVE_POD_GROUPS, WORKLOADS
from muster.api.muster.placement import PLACEMENTS
from muster.api.volcano.batch import JOBS, Job
from muster.api.volcano.scheduling import POD_GROUPS
from muster.kube.client import Client
from muster.kube.memorylimit import MemoryLimit
from muster.kube.optional import OptionalReflector
from muster.kube.readable import not_ready
from muster.kube.reflector import Reflector
from muster.kube.store import Mirror, ObjectStore
from muster.resources.planned import planned_spec

T = TypeVar("T")
_BY_NAMESPACE: Final = "namespace"
_OF_ROWS: Final[tuple[Resource[Any], ...]] = (
    POD_GROUPS, PODS, PLACEMENTS, JOBS, TRAIN_JOBS, NATIVE_POD_GROUPS, COMPOSITE_POD_GROUPS, WORKLOADS,
)  # fmt: skip
"""Kinds of the objects from which the rows of the list of gangs are computed."""
_OF_TENANTS: Final[tuple[Resource[Any], ...]] = (TRAIN_JOBS, *(fed.resource for fed in FEED if fed.limited))
"""Kinds of which tenants can create large objects; these kinds have the same memory limits per namespace as in the
extender."""
_PACKED: Final[Mapping[Resource[Any], Any]] = {JOBS: Job, TRAIN_JOBS: TrainJob}


class ListableScope(NamedTuple):
    """Permission of the server to list a kind: in the whole cluster, in one namespace, or not at all."""

    everywhere: bool = True
    """True if the server may list the kind in the whole cluster."""
    at_all: bool = True


class _NamespaceRows(NamedTuple):
    """The rows of a namespace, and the number of changes of the namespace's objects when the rows were built."""

    changes: int
    rows: tuple[GangRow, ...]


class PageCaches:
    """The cached objects of the cluster, or of one namespace if the server is not allowed to list more."""

    def __init__(
        self, client: Client, reach: Mapping[Resource[Any], ListableScope] | None = None, namespace: str = ""
    ) -> None:
        reach = reach or {}
        self._lock = threading.Lock()
        self._stores: dict[Resource[Any], ObjectStore[Any]] = {}
        self._reflectors: dict[str, Reflector[Any] | OptionalReflector] = {}
        self.unread: list[str] = []
        """Kinds that the server is not allowed to list in the whole cluster."""
        kinds = [*((fed.resource, fed.optional, fed.newer) for fed in FEED), (TRAIN_JOBS, False, True)]
        indexes = {_BY_NAMESPACE: lambda each: (each.metadata.namespace,)}
        for resource, optional, newer in kinds:
            may = reach.get(resource, ListableScope())
            store: ObjectStore[Any] = ObjectStore(indexes, packed=_PACKED.get(resource))
            self._stores[resource] = store
            if not may.everywhere and resource is not TRAIN_JOBS:  # the planner reads no TrainJobs
                self.unread.append(resource.full_name)
            if not may.at_all:
                continue
            handle = partial(self._changed, resource)
            where = None if may.everywhere else namespace
            self._reflectors[resource.full_name] = (
                OptionalReflector(client, resource, partial(_into, store, handle))
                if optional
                else _reflector(client, resource, store, where, handle, newer=newer)
            )
        self.total = 0
        """Number of changes of all objects so far."""
        self._changes: Counter[str] = Counter()
        """Maps a namespace to the sequence number of the last change of an object in this namespace."""
        self._kinds: Counter[Resource[Any]] = Counter()
        """Maps a kind to the number of changes of its objects."""
        self._dirty: Counter[str] = Counter()
        self._made: dict[str, _NamespaceRows] = {}
        self._generation: Counter[str] = Counter()
        """Maps a namespace to the sequence number of the last change of this namespace's rows."""

    def mirror(self, resource: Resource[T]) -> Mirror[Any]:
        """Return the reflector that reports changes to objects of a kind; every cluster must serve this kind."""
        reflector = self._reflectors[resource.full_name]
        assert isinstance(reflector, Reflector)  # noqa: S101 # the caller has chosen
        return reflector.mirror

    def start(self) -> None:
        """Start watching the cluster."""
        for reflector in self._reflectors.values():
            reflector.start()

    def stop(self) -> None:
        """Stop all watches."""
        for reflector in self._reflectors.values():
            reflector.stop()

    @property
    def synced(self) -> bool:
        """True once every kind has been listed."""
        return all(reflector.synced for reflector in self._reflectors.values())

    def sizes(self) -> dict[str, int]:
        """Return the number of objects in each cache, by kind."""
        return {name: reflector.size for name, reflector in self._reflectors.items()}

    def not_ready(self) -> str | None:
        """Return a message if a kind has not been read yet or can no longer be read; otherwise None."""
        return not_ready(self._reflectors)

    def all(self, resource: Resource[T]) -> list[T]:
        """Return all objects of a kind; for a namespaced kind, the caller must filter the result."""
        return self._stores[resource].list()

    def objects_in(self, resource: Resource[T], namespace: str) -> list[T]:
        """Return the objects of a kind in a namespace."""
        return self._stores[resource].by_index(_BY_NAMESPACE, namespace)

    def get(self, resource: Resource[T], name: str, namespace: str = "") -> T | None:
        """Return one object; None if it does not exist."""
        return self._stores[resource].get(f"{namespace}/{name}" if namespace else name)

    def namespaces(self) -> list[str]:
        """Return the names of namespaces that have, or have had, objects from which rows are built.

        Deleted namespaces are left out, because only a limited number of namespaces is checked for each user.
        """
        with self._lock:
            return sorted(self._dirty)

    def scope_of(self, namespaces: Iterable[str]) -> Scope:
        """Return the scope of a caller who may see these namespaces, each from its creation on.

        Data from before a namespace's creation belongs to an earlier namespace of the same name. A namespace that is
        not cached yet counts as created now.
        """
        known = {name: self.get(NAMESPACES, name) for name in namespaces}
        created = {name: each.metadata.creation_timestamp if each else None for name, each in known.items()}
        return Scope.from_creation(created, time.time())

    def objects(self, namespace: str) -> RowSources:
        """Return the objects from which the rows of a namespace are computed."""
        pods = self.objects_in(PODS, namespace)
        native = natives_of(
            self.objects_in(NATIVE_POD_GROUPS, namespace),
            pods,
            composites=self.objects_in(COMPOSITE_POD_GROUPS, namespace),
            workloads=self.objects_in(WORKLOADS, namespace),
            namespaces=[each] if (each := self.get(NAMESPACES, namespace)) else [],
        )
        return RowSources(
            groups=[*self.objects_in(POD_GROUPS, namespace), *native],
            pods=pods if self._reads(PODS) else None,
            placements=self.objects_in(PLACEMENTS, namespace) if self._reads(PLACEMENTS) else None,
            jobs=self.objects_in(JOBS, namespace) if self._reads(JOBS) else None,
            train_jobs=self.objects_in(TRAIN_JOBS, namespace) if self._reads(TRAIN_JOBS) else None,
        )

    def whole(self) -> RowSources:
        """Return the objects from which the rows of all namespaces are computed."""
        found = [self.objects(namespace) for namespace in self.namespaces()]
        return RowSources(
            groups=[each for of in found for each in of.groups],
            pods=[each for of in found for each in of.pods or ()],
            placements=[each for of in found for each in of.placements or ()],
            jobs=[each for of in found for each in of.jobs or ()],
            train_jobs=[each for of in found for each in of.train_jobs or ()],
        )

    def rows(self, namespace: str) -> tuple[GangRow, ...]:
        """Return the current rows of a namespace."""
        with self._lock:
            changes, made = self._dirty[namespace], self._made.get(namespace)
        if made is not None and made.changes == changes:
            return made.rows
        found = tuple(rows(self.objects(namespace)))
        with self._lock:
            if namespace not in self._dirty:  # no object of this namespace is cached
                return found
            if made is None or made.rows != found:
                self._generation[namespace] = changes
            self._made[namespace] = _NamespaceRows(changes, found)
        return found

    def warm(self) -> None:
        """Build the rows of all namespaces in advance, for the first request."""
        for namespace in self.namespaces():
            self.rows(namespace)

    def generation(self, namespace: str) -> int:
        """Return a number that changes whenever the rows of a namespace change."""
        self.rows(namespace)
        return self._generation[namespace]

    def changes(self, namespace: str) -> int:
        """Return a number that changes with each change of an object in a namespace."""
        return self._changes[namespace]

    def changes_of(self, resource: Resource[Any]) -> int:
        """Return the number of changes of objects of a kind; heartbeats of nodes are not counted."""
        return self._kinds[resource]

    def dump(self) -> ClusterDump:
        """Return the current state of everything that the planner reads."""
        dump = ClusterDump(time.time())
        for fed in FEED:
            dump.add_objects(fed.resource, self.all(fed.resource))
        dump.unread = frozenset(self.unread)
        return dump

    def _reads(self, resource: Resource[Any]) -> bool:
        return resource.full_name in self._reflectors

    def _changed(self, resource: Resource[Any], old: Any, new: Any) -> None:
        if resource is NODES and old is not None and new is not None and _alike(old, new):
            return
        namespace = (new or old).metadata.namespace
        with self._lock:
            self.total += 1
            self._changes[namespace] = self.total
            self._kinds[resource] += 1
            if resource in _OF_ROWS:
                self._dirty[namespace] = self.total
        if new is None and self._reads(NAMESPACES):
            self._forget_gone(old.metadata.name if resource is NAMESPACES else namespace)

    def _forget_gone(self, namespace: str) -> None:
        """Drop the data of a deleted namespace once the last object in the namespace is gone."""
        with self._lock:  # a change in the meantime is stored after this
            there = self.get(NAMESPACES, namespace) is not None
            if there or any(self._stores[kind].keys_by_index(_BY_NAMESPACE, namespace) for kind in _OF_ROWS):
                return
            for known in (self._changes, self._dirty, self._generation, self._made):
                known.pop(namespace, None)


def _reflector(
    client: Client, resource: Resource[T], store: ObjectStore[Any], namespace: str | None, handle: Any, *, newer: bool
) -> Reflector[Any]:
    reflector: Reflector[Any] = Reflector(
        client,
        resource,
        store=store,
        keep=_KEEP.get(resource, _lean),
        budget=MemoryLimit(resource) if resource in _OF_TENANTS else None,
        namespace=namespace if resource.namespaced else None,
        may_be_absent=newer,
    )
    reflector.add_handler(handle)
    return reflector


def _into(store: ObjectStore[Any], handle: Callable[[Any, Any], None], old: Any, new: Any) -> None:
    if new is None:
        store.discard(old.metadata.key)
    else:
        store.add_object(new)
    handle(old, new)


def _alike(old: Node, new: Node) -> bool:
    """Return True if only the heartbeat of a node has changed."""
    return (
        old.spec == new.spec
        and old.metadata.labels == new.metadata.labels
        and old.status.allocatable == new.status.allocatable
        and [(each.type, each.status) for each in old.status.conditions]
        == [(each.type, each.status) for each in new.status.conditions]
    )


def _lean(item: Any) -> Any:
    return replace(item, metadata=read_metadata(item.metadata))


def _lean_pod(pod: Pod) -> Pod:
    """Return the pod without fields that matter only to its containers: environment, commands and images."""
    return replace(pod, metadata=read_metadata(pod.metadata), spec=planned_spec(pod.spec))


_KEEP: Final[Mapping[Resource[Any], Callable[[Any], Any]]] = {PODS: _lean_pod}
