"""What handlers look up: queues and owning Jobs, from a cache, with one live read where the cache does not know."""

from collections.abc import Iterable
from typing import Any, Generic, Protocol, TypeVar

from muster.api import names
from muster.api.apps import STATEFUL_SETS
from muster.api.base import Resource
from muster.api.batch import JOBS
from muster.api.core import INDEXED_JOBS
from muster.api.meta import Object, OwnerReference
from muster.api.scheduling import QUEUES, Queue
from muster.kube.client import Client
from muster.kube.errors import NotFound
from muster.kube.reflector import Reflector
from muster.kube.store import Store

T = TypeVar("T", bound=Object)

_LIVE_TIMEOUT_S = 4.0  # the API server waits 10 s for the whole review


class Queues(Protocol):
    """The queues of the cluster."""

    def get(self, name: str) -> Queue | None:
        """A queue, or None if there is none; APIError if that could not be found out."""

    def children(self, name: str) -> list[str]:
        """Names of the queues directly below."""

    def names(self) -> list[str]:
        """Names of all queues that can take jobs, for messages."""


class Owners(Protocol):
    """The owners of pods."""

    def find(self, source: Resource[Any], namespace: str, owner: OwnerReference) -> Object | None:
        """The owner that is meant (same UID), or None if it is gone; APIError if that could not be found out."""


class Cached(Generic[T]):
    """One kind: its reflector's store, and a live read on a miss."""

    def __init__(
        self, client: Client, resource: Resource[T], *, store: Store[T] | None = None, label_selector: str = ""
    ) -> None:
        self.reflector = Reflector(client, resource, store=store, label_selector=label_selector)
        self.store = self.reflector.store
        self._client = client
        self._resource = resource

    def get(self, name: str, namespace: str = "", *, uid: str = "") -> T | None:
        """The object; with `uid` only the one with that UID, however stale the cache is."""
        found = self.store.get(f"{namespace}/{name}" if namespace else name)
        if found and uid in {"", found.metadata.uid}:
            return found
        try:
            found = self._client.get(self._resource, name, namespace or None, timeout_s=_LIVE_TIMEOUT_S)
        except NotFound:
            return None
        return found if uid in {"", found.metadata.uid} else None


class QueueLookup:
    """`Queues` from the API server."""

    def __init__(self, client: Client) -> None:
        store = Store[Queue]({"parent": _parent})
        self.cached = Cached(client, QUEUES, store=store)

    def get(self, name: str) -> Queue | None:
        """See `Queues`."""
        return self.cached.get(name)

    def children(self, name: str) -> list[str]:
        """See `Queues`."""
        return sorted(queue.metadata.name for queue in self.cached.store.by_index("parent", name))

    def names(self) -> list[str]:
        """See `Queues`."""
        known = (queue.metadata.name for queue in self.cached.store.list() if queue.open)
        return sorted(name for name in known if name != names.ROOT_QUEUE and not self.children(name))


class OwnerLookup:
    """`Owners` from the API server; only owners with a framework label are kept in memory."""

    def __init__(self, client: Client) -> None:
        kinds: tuple[Resource[Any], ...] = (INDEXED_JOBS, STATEFUL_SETS, JOBS)
        self.caches = {kind: Cached(client, kind, label_selector=names.FRAMEWORK) for kind in kinds}

    def find(self, source: Resource[Any], namespace: str, owner: OwnerReference) -> Object | None:
        """See `Owners`."""
        found: Object | None = self.caches[source].get(owner.name, namespace, uid=owner.uid)
        return found


def _parent(queue: Queue) -> Iterable[str]:
    """Every queue but the root has a parent; an empty one means the root."""
    return [] if queue.metadata.name == names.ROOT_QUEUE else [queue.spec.parent or names.ROOT_QUEUE]
