"""Base classes of controllers, with their work queue, caches, handlers, written objects, Events and clocks."""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from controller.caches import OwnWrites
from controller.live import write_status
from controller.worker import Worker
from muster.api.base import Resource
from muster.api.kubernetes.meta import Object
from muster.kube.client import Client
from muster.kube.events import EventWriter
from muster.kube.reflector import Reflector
from muster.kube.store import Handler

T = TypeVar("T", bound=Object)


@dataclass(frozen=True, slots=True)
class Kit:
    """The client of the API server, the writer of Events, and the clocks, which all controllers of a process share."""

    client: Client
    recorder: EventWriter
    monotonic_s: Callable[[], float] = time.monotonic
    wall_s: Callable[[], float] = time.time


class Handled(Protocol):
    """A cache that calls handlers with each change of its objects."""

    def add_handler(self, handler: Handler[Any]) -> None:
        """Register the handler, which is called with each change."""


class KeyController(ABC):
    """A controller whose worker runs a pass for each queued key; passes for the same key never overlap."""

    def __init__(self, kit: Kit, name: str, *, threads: int = 1) -> None:
        self._kit, self._client, self._recorder, self._wall_s = kit, kit.client, kit.recorder, kit.wall_s
        self.worker = Worker(name, self.process, threads=threads, monotonic_s=kit.monotonic_s)
        self.reflectors: dict[str, Reflector[Any]] = {}
        """The controller's own caches, keyed by the names that health checks report."""
        self.handlers: list[tuple[Handled, Handler[Any]]] = []
        """Handlers of changes, each with its cache: an own or a shared cache. Handlers are called only while this
        process is the leader."""

    @abstractmethod
    def process(self, key: str) -> None:
        """Run one pass for one key."""

    def replay(self) -> None:  # noqa: B027 - most have none
        """Queue keys that have no object in a cache, when this process becomes the leader."""


class KindController(KeyController, Generic[T]):
    """The controller of one kind of objects, with a cache of the kind and the objects that this process wrote last."""

    def __init__(self, kit: Kit, name: str, resource: Resource[T], cache: Reflector[T], *, threads: int = 1) -> None:
        super().__init__(kit, name, threads=threads)
        self._resource, self.cache = resource, cache
        self._written = OwnWrites[T](kit.monotonic_s)
        self.reflectors[resource.plural] = cache
        self.handlers.append((cache, self._seen))

    def newest(self, key: str) -> T | None:
        """Return the current object, or None if it was deleted."""
        return self._written.newest(key, self.cache.store.get(key))

    def patched(self, obj: T, patch: Mapping[str, Any]) -> T:
        """Write this merge patch of the object's status, unless the patch is empty; return the resulting object.

        Raise Conflict if the object has changed.
        """
        if not patch:
            return obj
        written = write_status(self._client, self._resource, obj, patch)
        self._written.note(written)
        return written

    def _relevant_fields(self, obj: T) -> tuple[object, ...]:
        """Return the fields of an object that affect a pass."""
        meta = obj.metadata
        return meta.uid, meta.generation, meta.deletion_timestamp

    def _seen(self, old: T | None, new: T | None) -> None:
        """Queue an object that was created or deleted, or in which a field that affects a pass has changed."""
        self._written.seen(old, new)
        changed = new or old
        if changed and (old is None or new is None or self._relevant_fields(old) != self._relevant_fields(new)):
            self.worker.queue.add(changed.metadata.key)
