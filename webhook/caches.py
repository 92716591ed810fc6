"""Look-ups in caches of a cluster's objects; an object that no cache contains is read from the API server.

A cache may be stale, so an object that is missing in the cache is read once from the API server. If the API server must
have used newer data for the review, such as a namespace label by which it selects, the cache is stale.
"""

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, Generic, TypeVar

from cachetools import TTLCache

from muster.api import names
from muster.api.base import Resource
from muster.api.kubeflow.trainer import RuntimeRef
from muster.api.kubeflow.trainingruntime import CLUSTER_TRAINING_RUNTIMES, TRAINING_RUNTIMES
from muster.api.kubernetes.core import NAMESPACES, Namespace
from muster.api.kubernetes.meta import Object, ObjectMeta, OwnerReference
from muster.api.kubernetes.scheduling import NATIVE_POD_GROUPS
from muster.api.muster.placement import PLACEMENTS
from muster.api.volcano.scheduling import QUEUES, Queue
from muster.kube.client import Client
from muster.kube.codec import decoder
from muster.kube.memorylimit import MemoryLimit
from muster.kube.reflector import Reflector
from muster.kube.served import Served
from muster.kube.store import ObjectStore, text_of
from muster.volcano.access import parent_names
from muster.workloads.table import CONTROLLERS, gang_rules
from webhook.apiserver import DeviceClaims, DryRuns, Rights, Services, read_live
from webhook.lookup import Lookups, Runtime

T = TypeVar("T", bound=Object)
_RECENT_S = 1.0
_MOST_RECENT_BYTES = 16 * 2**20


class Cached(Generic[T]):
    """The objects of one kind, from a cache, or from the API server if the cache lacks an object.

    Unless another store is given, objects are stored in encoded form and within a memory limit, because users can make
    templates arbitrarily large. An object for which no memory is left is read from the API server on demand.
    """

    def __init__(
        self, client: Client, resource: Resource[T], *, store: ObjectStore[T] | None = None, label_selector: str = ""
    ) -> None:
        budget = MemoryLimit(resource) if store is None else None
        store = ObjectStore(packed=resource.type) if store is None else store
        self.reflector = Reflector(client, resource, store=store, budget=budget, label_selector=label_selector)
        mirror = self.reflector.mirror
        mirror.refused.append(lambda refused, _: mirror.remove(refused.metadata.key))  # the stored version is outdated
        self.store = self.reflector.store
        self._client = client
        self._resource = resource

    @property
    def kind(self) -> str:
        """The name of the kind in health checks, e.g. `jobs.batch`."""
        return f"{self._resource.plural}.{self._resource.group}".rstrip(".")

    def get(self, name: str, namespace: str = "", *, uid: str = "") -> T | None:
        """Return the object with this name, or None; with `uid`, an object with a different UID does not count."""
        found = self.store.get(f"{namespace}/{name}" if namespace else name)
        if found is None or uid not in {"", found.metadata.uid}:
            found = self.live(name, namespace)
        return found if found and uid in {"", found.metadata.uid} else None

    def live(self, name: str, namespace: str = "") -> T | None:
        """Return the current object from the API server."""
        return read_live(self._client, self._resource, name, namespace)


class QueueLookup(Cached[Queue]):
    """Implementation of `QueueTreeView` with a cache of all queues, indexed by their parents."""

    def __init__(self, client: Client) -> None:
        super().__init__(client, QUEUES, store=ObjectStore[Queue]({"parent": parent_names}))

    def children(self, name: str) -> list[str]:
        """Return the names of the cached child queues.

        The cache may lack a new queue, but a new queue is not in use yet.
        """
        return sorted(queue.metadata.name for queue in self.store.by_index("parent", name))

    def names(self) -> list[str]:
        """Return the names of the open leaf queues, without the root."""
        known = (queue.metadata.name for queue in self.store.list() if queue.open)
        return sorted(name for name in known if name != names.ROOT_QUEUE and not self.children(name))


class OwnerLookup:
    """Implementation of `Owners` with caches of workloads that have a framework label, and reads from the API server.

    An owner with the label only in its pod template is read at most once per second, however many pods it creates.
    """

    def __init__(self, client: Client, monotonic_s: Callable[[], float] = time.monotonic) -> None:
        kinds = CONTROLLERS.values()
        self.caches = {kind: Cached(client, kind, label_selector=names.FRAMEWORK) for kind in kinds}
        self._lock = threading.Lock()
        self._recent = TTLCache[tuple[Resource[Any], str, str], bytes, float](
            _MOST_RECENT_BYTES, _RECENT_S, monotonic_s, len
        )
        """Recently read owners, by kind, namespace and UID. The namespace is part of the key, because a tenant can
        write any UID into a reference and must not see owners of other tenants."""

    def find(self, source: Resource[Any], namespace: str, owner: OwnerReference) -> Object | None:
        """Return the owner, from the API server if the cached object is missing or has a different UID.

        A cached owner that needs no pods (suspended, or scaled to 0) is also read again, because its new pod shows that
        the cache is stale.
        """
        which = (source, namespace, owner.uid)
        with self._lock:
            recent = self._recent.get(which)
        found: Object | None
        if recent:
            found = decoder(source.type).decode(recent)
            return found
        found = self.caches[source].get(owner.name, namespace, uid=owner.uid)
        rules = gang_rules(owner)
        if found and rules and rules.wants_none and rules.wants_none(found):
            now = self.caches[source].live(owner.name, namespace)
            found = now if now and now.metadata.uid == owner.uid else None
        if found and rules and rules.at_once and names.FRAMEWORK not in found.metadata.labels:
            text = text_of(found)
            with self._lock, suppress(ValueError):  # larger than the whole cache
                self._recent[which] = text
        return found


class NamespaceLookup(Cached[Namespace]):
    """Implementation of `Namespaces` with a cache of all namespaces."""

    def __init__(self, client: Client) -> None:
        super().__init__(client, NAMESPACES, store=ObjectStore[Namespace]())

    def metadata(self, name: str, *, with_queue: bool = False) -> ObjectMeta:
        """Return a namespace's metadata, from the API server if the cached metadata lacks an expected queue label."""
        found = self.get(name)
        if found and with_queue and names.QUEUE not in found.metadata.labels:
            found = self.live(name)
        return found.metadata if found else ObjectMeta()


class RuntimeLookup:
    """Implementation of `TrainingRuntimes` with caches of TrainingRuntimes and ClusterTrainingRuntimes."""

    def __init__(self, client: Client) -> None:
        self.namespaced = Cached(client, TRAINING_RUNTIMES)
        self.cluster = Cached(client, CLUSTER_TRAINING_RUNTIMES)

    def find(self, reference: RuntimeRef, namespace: str) -> Runtime | None:
        """Return the runtime of the referenced kind; a cluster-wide runtime has no namespace."""
        if reference.kind == TRAINING_RUNTIMES.kind:
            return self.namespaced.get(reference.name, namespace)
        return self.cluster.get(reference.name)


class ClusterLookups:
    """All look-ups in one cluster, with their caches.

    With `native`, gangs count as published if the API server serves native PodGroups.
    """

    def __init__(self, client: Client, *, native: bool = False) -> None:
        queues, owners = QueueLookup(client), OwnerLookup(client)
        namespaces, runtimes = NamespaceLookup(client), RuntimeLookup(client)
        dry_runs, rights, services = DryRuns(client), Rights(client), Services(client)
        served = Served(client, NATIVE_POD_GROUPS) if native else None
        claims, placements = DeviceClaims(client).claims_in, partial(read_live, client, PLACEMENTS)
        self.lookups = Lookups(
            queues, owners, namespaces, runtimes, dry_runs, rights, services, claims, placements, served
        )
        self.caches: list[Cached[Any]] = [
            queues,
            namespaces,
            runtimes.namespaced,
            runtimes.cluster,
            *owners.caches.values(),
        ]
