"""What handlers look up, from caches, with one live read where a cache does not know.

The protocols say what a handler may ask; `ClusterLookups` at the end has the ones that serve. A cache may be behind: an
object that its user created a moment ago must not be refused as missing, so a miss costs one read of the API server,
and what the API server has just seen itself (the label of a namespace by which it selects) is believed over the cache.
A look-up that fails raises APIError, and the object is refused unless its handler has a reason to let it pass: nobody
decides on a guess.
"""

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from muster.api import names
from muster.api.base import Resource
from muster.api.kubeflow.trainer import RuntimeRef
from muster.api.kubeflow.trainingruntime import (
    CLUSTER_TRAINING_RUNTIMES,
    TRAINING_RUNTIMES,
    ClusterTrainingRuntime,
    TrainingRuntime,
)
from muster.api.kubernetes.core import INDEXED_JOBS, NAMESPACES
from muster.api.kubernetes.meta import Object, OwnerReference
from muster.api.volcano.scheduling import QUEUES, Queue
from muster.kube.client import Client
from muster.kube.errors import NotFound
from muster.kube.reflector import Reflector
from muster.kube.store import Store
from muster.workloads.table import CONTROLLERS
from webhook import deadline
from webhook.dryrun import DryRuns, ServerDryRuns
from webhook.rights import Rights, ServerRights

T = TypeVar("T", bound=Object)
Runtime = TrainingRuntime | ClusterTrainingRuntime

_RECENT_S = 1.0
_MAX_RECENT = 1000
_LIVE_TIMEOUT_S = 4.0  # the API server waits 10 s for the whole review


class Queues(Protocol):
    """The queues of the cluster, as a tree: whether a workload may enter one, and what hangs below it."""

    def get(self, name: str) -> Queue | None:
        """A queue, or None if there is none; APIError if that could not be found out."""

    def children(self, name: str) -> list[str]:
        """Names of the queues directly below."""

    def names(self) -> list[str]:
        """Names of all queues that can take jobs, for messages."""


class Owners(Protocol):
    """The objects that own pods: they say how many ranks there are."""

    def find(self, source: Resource[Any], namespace: str, owner: OwnerReference) -> Object | None:
        """The owner that is meant (same UID), or None if it is gone; APIError if that could not be found out."""


class Namespaces(Protocol):
    """What the namespaces of the cluster say for the objects in them."""

    def labels(self, name: str, *, with_queue: bool) -> Mapping[str, str]:
        """The labels of a namespace, none if it is gone; APIError if that could not be found out.

        `with_queue`: the API server has seen the queue label there, so a cache without it is behind.
        """

    def annotations(self, name: str) -> Mapping[str, str]:
        """The annotations of a namespace, none if it is gone; APIError if that could not be found out."""


class Runtimes(Protocol):
    """The runtimes of Kubeflow Trainer that TrainJobs refer to."""

    def find(self, reference: RuntimeRef, namespace: str) -> Runtime | None:
        """The runtime that is meant, or None if there is none; APIError if that could not be found out."""


@dataclass(frozen=True, slots=True)
class Lookups:
    """Everything that handlers may ask for."""

    queues: Queues
    owners: Owners
    namespaces: Namespaces
    runtimes: Runtimes
    dry_runs: DryRuns | None = None
    """None where there is no API server to try pods on."""
    rights: Rights | None = None
    """None where there is no API server that knows what users may do."""


class Cached(Generic[T]):
    """One kind: its reflector's store, and a live read where the store does not have the object."""

    def __init__(
        self, client: Client, resource: Resource[T], *, store: Store[T] | None = None, label_selector: str = ""
    ) -> None:
        self.reflector = Reflector(client, resource, store=store, label_selector=label_selector)
        self.store = self.reflector.store
        self._client = client
        self._resource = resource

    @property
    def kind(self) -> str:
        """The name of what is cached, e.g. `jobs.batch`, as the page of the health checks shows it."""
        return f"{self._resource.plural}.{self._resource.group}".rstrip(".")

    def get(self, name: str, namespace: str = "", *, uid: str = "") -> T | None:
        """The object; with `uid` only the one with that UID, however stale the cache is."""
        found = self.store.get(f"{namespace}/{name}" if namespace else name)
        if found is None or uid not in {"", found.metadata.uid}:
            found = self.live(name, namespace)
        return found if found and uid in {"", found.metadata.uid} else None

    def live(self, name: str, namespace: str = "") -> T | None:
        """The object as the API server has it now."""
        timeout_s = deadline.within(_LIVE_TIMEOUT_S)
        try:
            return self._client.get(self._resource, name, namespace or None, timeout_s=timeout_s)
        except NotFound:
            return None


class QueueLookup:
    """`Queues` from a cache of all of them, indexed by their parents."""

    def __init__(self, client: Client) -> None:
        store = Store[Queue]({"parent": _parent})
        self.cached = Cached(client, QUEUES, store=store)

    def get(self, name: str) -> Queue | None:
        """The queue; one that the cache does not have yet is read from the API server."""
        return self.cached.get(name)

    def children(self, name: str) -> list[str]:
        """As the cache has it: a queue that is made at this moment is in nobody's way yet."""
        return sorted(queue.metadata.name for queue in self.cached.store.by_index("parent", name))

    def names(self) -> list[str]:
        """Those that are open and have no queues below them, without the root."""
        known = (queue.metadata.name for queue in self.cached.store.list() if queue.open)
        return sorted(name for name in known if name != names.ROOT_QUEUE and not self.children(name))


class OwnerLookup:
    """`Owners` from the API server; only owners with a framework label are kept in memory.

    The pods of a Job whose label stands on its template only (as in a JobSet) come many at a time: such a Job is read
    once for all pods of a second.
    """

    def __init__(self, client: Client, monotonic_s: Callable[[], float] = time.monotonic) -> None:
        kinds = CONTROLLERS.values()
        self.caches = {kind: Cached(client, kind, label_selector=names.FRAMEWORK) for kind in kinds}
        self._monotonic_s = monotonic_s
        self._recent: dict[str, tuple[float, Object]] = {}

    def find(self, source: Resource[Any], namespace: str, owner: OwnerReference) -> Object | None:
        """The owner, read from the API server where the cache has it not, or under another UID."""
        end, recent = self._recent.get(owner.uid, (0.0, None))
        if recent and self._monotonic_s() < end:
            return recent
        found: Object | None = self.caches[source].get(owner.name, namespace, uid=owner.uid)
        if found and source is INDEXED_JOBS and names.FRAMEWORK not in found.metadata.labels:
            if len(self._recent) >= _MAX_RECENT:
                self._recent.clear()
            self._recent[owner.uid] = (self._monotonic_s() + _RECENT_S, found)
        return found


class NamespaceLookup:
    """`Namespaces` from a cache of all of them."""

    def __init__(self, client: Client) -> None:
        self.cached = Cached(client, NAMESPACES)

    def labels(self, name: str, *, with_queue: bool) -> Mapping[str, str]:
        """The labels; read from the API server where the cache lacks a queue that must be there."""
        found = self.cached.get(name)
        if found and with_queue and names.QUEUE not in found.metadata.labels:
            found = self.cached.live(name)
        return found.metadata.labels if found else {}

    def annotations(self, name: str) -> Mapping[str, str]:
        """The annotations as the cache has them: nobody tells us that they have changed."""
        found = self.cached.get(name)
        return found.metadata.annotations if found else {}


class RuntimeLookup:
    """`Runtimes` from caches of both kinds: those of a namespace, and those of the cluster."""

    def __init__(self, client: Client) -> None:
        self.namespaced = Cached(client, TRAINING_RUNTIMES)
        self.cluster = Cached(client, CLUSTER_TRAINING_RUNTIMES)

    def find(self, reference: RuntimeRef, namespace: str) -> Runtime | None:
        """The runtime of the kind that is referred to; one of the cluster's has no namespace."""
        if reference.kind == TRAINING_RUNTIMES.kind:
            return self.namespaced.get(reference.name, namespace)
        return self.cluster.get(reference.name)


class ClusterLookups:
    """All look-ups from one API server, with the caches behind them by the name of their kind."""

    def __init__(self, client: Client) -> None:
        queues, owners = QueueLookup(client), OwnerLookup(client)
        namespaces, runtimes = NamespaceLookup(client), RuntimeLookup(client)
        self.lookups = Lookups(queues, owners, namespaces, runtimes, ServerDryRuns(client), ServerRights(client))
        self.caches: list[Cached[Any]] = [
            queues.cached,
            namespaces.cached,
            runtimes.namespaced,
            runtimes.cluster,
            *owners.caches.values(),
        ]


def _parent(queue: Queue) -> Iterable[str]:
    """Every queue but the root has a parent; an empty one means the root."""
    return [] if queue.metadata.name == names.ROOT_QUEUE else [queue.spec.parent or names.ROOT_QUEUE]
