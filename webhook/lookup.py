"""Look-ups for handlers, from caches, with one live read of an object that is not in a cache.

The protocols define the look-ups of handlers; `ClusterLookups` at the end implements them. Because a cache may be
behind, a miss costs one read from the API server. Facts that the API server itself has just used (such as the namespace
label that it selects by) take precedence over the cache. A failed look-up raises APIError, and the object is refused
unless its handler has a reason to admit it: handlers never guess.
"""

import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, Protocol, TypeVar

from cachetools import TTLCache

from muster.api import names
from muster.api.base import Resource
from muster.api.fields import FieldError
from muster.api.kubeflow.trainer import RuntimeRef
from muster.api.kubeflow.trainingruntime import (
    CLUSTER_TRAINING_RUNTIMES,
    TRAINING_RUNTIMES,
    ClusterTrainingRuntime,
    TrainingRuntime,
)
from muster.api.kubernetes.core import NAMESPACES, Namespace
from muster.api.kubernetes.meta import Object, ObjectMeta, OwnerReference
from muster.api.kubernetes.scheduling import NATIVE_POD_GROUPS
from muster.api.muster.placement import Placement
from muster.api.volcano.scheduling import QUEUES, Queue
from muster.kube.budget import MemoryLimit
from muster.kube.client import Client
from muster.kube.codec import decoder
from muster.kube.errors import APIError, NotFound
from muster.kube.reflector import Reflector
from muster.kube.served import Served
from muster.kube.store import ObjectStore, text_of
from muster.resources.accelerators import Claims, no_claims
from muster.volcano.access import NamespaceObstacle, barrier, parent_names
from muster.workloads.adapter import OwnerError
from muster.workloads.table import CONTROLLERS, gang_rules, source_of
from webhook import review
from webhook.apiserver import DeviceClaims, DryRuns, Rights, Services, read_placement
from webhook.senders import count_question

T = TypeVar("T", bound=Object)
Runtime = TrainingRuntime | ClusterTrainingRuntime

_RECENT_S = 1.0
_MOST_RECENT_BYTES = 16 * 2**20


class QueueTreeView(Protocol):
    """The queues of the cluster, as a tree."""

    def get(self, name: str) -> Queue | None:
        """Return a queue, or None if it does not exist; APIError if this is not known."""

    def live(self, name: str) -> Queue | None:
        """Return the current queue from the API server, for decisions where a stale cache is not enough.

        APIError if not known.
        """

    def children(self, name: str) -> list[str]:
        """Return the names of the child queues."""

    def names(self) -> list[str]:
        """Return the names of all queues that can take jobs, for messages."""


class NamespaceQueues:
    """`QueueTreeView` for one namespace, which may not use every queue.

    The namespace's labels are read on first use.
    """

    def __init__(self, queues: QueueTreeView, namespaces: "Namespaces", namespace: str) -> None:
        self._queues = queues
        self._namespaces = namespaces
        self._namespace = namespace
        self._labels: Mapping[str, str] | None = None
        self.get = queues.get
        self.live = queues.live
        self.children = queues.children

    def names(self) -> list[str]:
        """Return the names of the queues that can take jobs of the namespace, for messages."""
        return [name for name in self._queues.names() if self.barrier(name) is None]

    @property
    def namespace_labels(self) -> Mapping[str, str]:
        """The labels of the namespace; APIError if they are not known."""
        if self._labels is None:
            self._labels = self._namespaces.metadata(self._namespace).labels
        return self._labels

    def barrier(self, name: str) -> NamespaceObstacle | None:
        """Return the reason why the namespace may not use a queue; None if it may, APIError if this is not known."""
        return barrier(name, self._namespace, self.namespace_labels, self._queues.get)

    def refusal(self, path: str, name: str) -> list[FieldError]:
        """Refuse a queue that the namespace may not use, and list the usable ones."""
        found = self.barrier(name)
        if found is None:
            return []
        usable = ", ".join(self.names()) or "none yet"
        message = f"namespace {self._namespace} may not use queue {name!r}: {found}; usable queues are: {usable}"
        return [FieldError(path, message, name, "Forbidden")]


class Owners(Protocol):
    """The owners of pods, which determine the number of ranks."""

    def find(self, source: Resource[Any], namespace: str, owner: OwnerReference) -> Object | None:
        """Return the owner with the UID of the reference, or None if it was deleted; APIError if this is not known."""


class Namespaces(Protocol):
    """The namespaces of the cluster."""

    def metadata(self, name: str, *, with_queue: bool = False) -> ObjectMeta:
        """Return a namespace's metadata, empty if it was deleted.

        With `with_queue`, a cache without that label is known to be stale.
        """


class TrainingRuntimes(Protocol):
    """The runtimes of Kubeflow Trainer that TrainJobs refer to."""

    def find(self, reference: RuntimeRef, namespace: str) -> Runtime | None:
        """Return the referenced runtime, or None if it does not exist; APIError if this is not known."""


@dataclass(frozen=True, slots=True)
class Lookups:
    """All look-ups for handlers."""

    queues: QueueTreeView
    owners: Owners
    namespaces: Namespaces
    runtimes: TrainingRuntimes
    dry_runs: DryRuns | None = None
    """None without an API server for dry runs."""
    rights: Rights | None = None
    """None without an API server that knows the rights of users."""
    services: Services | None = None
    """None without an API server that has Services."""
    claims: Callable[[str], Claims] = lambda _namespace: no_claims
    """The requests of the claims of a namespace's pods."""
    placements: Callable[[str, str], Placement | None] | None = None
    """The placement of a name in a namespace, as the API server has it now; None without an API server."""
    native_groups: Callable[[], bool] | None = None
    """True while gangs are published as Kubernetes' own PodGroups; None if they never are."""

    def queues_for(self, namespace: str) -> NamespaceQueues:
        """Return the queues as this namespace sees them."""
        return NamespaceQueues(self.queues, self.namespaces, namespace)


class Cached(Generic[T]):
    """One kind: its reflector's store, and a live read for an object that is not in the store.

    Objects are packed and limited by a budget, unless another store is given, because users can make templates
    arbitrarily large. An object over the budget is read on demand.
    """

    def __init__(
        self, client: Client, resource: Resource[T], *, store: ObjectStore[T] | None = None, label_selector: str = ""
    ) -> None:
        budget = MemoryLimit(resource) if store is None else None
        store = ObjectStore(packed=resource.type) if store is None else store
        self.reflector = Reflector(client, resource, store=store, budget=budget, label_selector=label_selector)
        mirror = self.reflector.mirror
        mirror.refused.append(lambda refused, _: mirror.remove(refused.metadata.key))  # its last version is no answer
        self.store = self.reflector.store
        self._client = client
        self._resource = resource

    @property
    def kind(self) -> str:
        """The name of the kind on the page of the health checks, e.g. `jobs.batch`."""
        return f"{self._resource.plural}.{self._resource.group}".rstrip(".")

    def get(self, name: str, namespace: str = "", *, uid: str = "") -> T | None:
        """Return the object; with `uid`, only the one with that UID, even if the cache is stale."""
        found = self.store.get(f"{namespace}/{name}" if namespace else name)
        if found is None or uid not in {"", found.metadata.uid}:
            found = self.live(name, namespace)
        return found if found and uid in {"", found.metadata.uid} else None

    def live(self, name: str, namespace: str = "") -> T | None:
        """Return the current object from the API server."""
        timeout_s = review.time_left()
        count_question()
        try:
            return self._client.get(self._resource, name, namespace or None, timeout_s=timeout_s)
        except NotFound:
            return None


class QueueLookup(Cached[Queue]):
    """`QueueTreeView` from a cache of all queues, indexed by parent."""

    def __init__(self, client: Client) -> None:
        super().__init__(client, QUEUES, store=ObjectStore[Queue]({"parent": parent_names}))

    def children(self, name: str) -> list[str]:
        """Return the children in the cache; a queue that is being created is not in use yet."""
        return sorted(queue.metadata.name for queue in self.store.by_index("parent", name))

    def names(self) -> list[str]:
        """Return the open leaf queues, without the root."""
        known = (queue.metadata.name for queue in self.store.list() if queue.open)
        return sorted(name for name in known if name != names.ROOT_QUEUE and not self.children(name))


class OwnerLookup:
    """`Owners` from the API server, and from caches of owners with a framework label.

    An owner whose label is only on its template is read at most once per second, however many pods it creates.
    """

    def __init__(self, client: Client, monotonic_s: Callable[[], float] = time.monotonic) -> None:
        kinds = CONTROLLERS.values()
        self.caches = {kind: Cached(client, kind, label_selector=names.FRAMEWORK) for kind in kinds}
        self._lock = threading.Lock()
        self._recent = TTLCache[tuple[Resource[Any], str, str], bytes, float](
            _MOST_RECENT_BYTES, _RECENT_S, monotonic_s, len
        )
        """By kind, namespace and UID: a tenant can write any UID into a reference, and must not see other tenants'
        owners."""

    def find(self, source: Resource[Any], namespace: str, owner: OwnerReference) -> Object | None:
        """Return the owner, from the API server if the cache lacks it or has another UID under its name.

        The cached owner is also read again if it wants no pods, because a new pod shows that the cache is behind.
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
            with self._lock, suppress(ValueError):  # larger than all that may be remembered
                self._recent[which] = text
        return found


class NamespaceLookup(Cached[Namespace]):
    """`Namespaces` from a cache of all namespaces."""

    def __init__(self, client: Client) -> None:
        super().__init__(client, NAMESPACES, store=ObjectStore[Namespace]())

    def metadata(self, name: str, *, with_queue: bool = False) -> ObjectMeta:
        """Return the cached metadata, or the API server's if the cache lacks a queue label that must exist."""
        found = self.get(name)
        if found and with_queue and names.QUEUE not in found.metadata.labels:
            found = self.live(name)
        return found.metadata if found else ObjectMeta()


class RuntimeLookup:
    """`TrainingRuntimes` from caches of both kinds, namespaced and cluster-wide."""

    def __init__(self, client: Client) -> None:
        self.namespaced = Cached(client, TRAINING_RUNTIMES)
        self.cluster = Cached(client, CLUSTER_TRAINING_RUNTIMES)

    def find(self, reference: RuntimeRef, namespace: str) -> Runtime | None:
        """Return the runtime of the referenced kind; a cluster-wide runtime has no namespace."""
        if reference.kind == TRAINING_RUNTIMES.kind:
            return self.namespaced.get(reference.name, namespace)
        return self.cluster.get(reference.name)


def controller_of(meta: ObjectMeta, namespace: str, owners: Owners) -> Object | None:
    """Return the controller of a pod; None if there is none or it was deleted, OwnerError if its pods have no ranks."""
    source, reference = source_of(meta), meta.controller
    return owners.find(source, namespace, reference) if source and reference else None


def known_controller(meta: ObjectMeta, namespace: str, owners: Owners) -> Object | None:
    """Return the controller of a pod; None if it cannot be read or its pods have no ranks."""
    with suppress(APIError, OwnerError):
        return controller_of(meta, namespace, owners)
    return None


class ClusterLookups:
    """All look-ups from one API server, with their caches; with `native`, gangs are published if possible."""

    def __init__(self, client: Client, *, native: bool = False) -> None:
        queues, owners = QueueLookup(client), OwnerLookup(client)
        namespaces, runtimes = NamespaceLookup(client), RuntimeLookup(client)
        dry_runs, rights, services = DryRuns(client), Rights(client), Services(client)
        served = Served(client, NATIVE_POD_GROUPS) if native else None
        claims, placements = DeviceClaims(client).claims_in, partial(read_placement, client)
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
