"""Building blocks of controllers: a worker over keys, caches, handlers, own writes, Events and clocks."""

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
    """The API server, Events and clocks, shared by all controllers of a process."""

    client: Client
    recorder: EventWriter
    monotonic_s: Callable[[], float] = time.monotonic
    wall_s: Callable[[], float] = time.time


class Handled(Protocol):
    """A cache that reports each change of its objects to handlers."""

    def add_handler(self, handler: Handler[Any]) -> None:
        """Register the handler, which is called with each change."""


class KeyController(ABC):
    """A controller whose worker runs passes over keys of objects; the passes over one key never overlap."""

    def __init__(self, kit: Kit, name: str, *, threads: int = 1) -> None:
        self._kit, self._client, self._recorder, self._wall_s = kit, kit.client, kit.recorder, kit.wall_s
        self.worker = Worker(name, self.process, threads=threads, monotonic_s=kit.monotonic_s)
        self.reflectors: dict[str, Reflector[Any]] = {}
        """The controller's own caches, by the names that health checks report."""
        self.handlers: list[tuple[Handled, Handler[Any]]] = []
        """Handlers of changes in the controller's own caches and in shared caches; only called while this process is
        the leader."""

    @abstractmethod
    def process(self, key: str) -> None:
        """Run one pass over one key."""

    def replay(self) -> None:  # noqa: B027 - most have none
        """Queue additional keys when this process becomes the leader: keys that have no object in a cache."""


class KindController(KeyController, Generic[T]):
    """The controller of one kind, with the kind's cache and its last written objects."""

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
        """Write this merge patch of the status, unless it is empty; return the resulting object.

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
        """Queue a deleted object, or one in which a field that affects a pass has changed."""
        self._written.seen(old, new)
        changed = new or old
        if changed and (old is None or new is None or self._relevant_fields(old) != self._relevant_fields(new)):
            self.worker.queue.add(changed.metadata.key)
