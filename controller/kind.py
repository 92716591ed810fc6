"""The controller of one kind: its cache, the objects that it wrote last, its worker, Events and clock."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar

from controller.caches import OwnWrites
from controller.live import write_status
from controller.worker import Worker
from muster.api.base import Resource
from muster.api.kubernetes.meta import Object
from muster.kube.budget import Budget
from muster.kube.client import Client
from muster.kube.events import Recorder
from muster.kube.reflector import Reflector
from muster.kube.store import Store

T = TypeVar("T", bound=Object)


class KindController(ABC, Generic[T]):
    """A worker over `namespace/name` of objects of one kind; never two passes at once over the same object."""

    def __init__(
        self,
        name: str,
        resource: Resource[T],
        client: Client,
        recorder: Recorder,
        indexes: Mapping[str, Callable[[T], list[str]]] | None = None,
        *,
        monotonic_s: Callable[[], float],
        wall_s: Callable[[], float],
    ) -> None:
        self._resource, self._client, self._recorder, self._wall_s = resource, client, recorder, wall_s
        store = Store(dict(indexes or {}), packed=resource.type)
        self._objects = Reflector(client, resource, store=store, budget=Budget(resource))
        self._written = OwnWrites[T](monotonic_s)
        self.reflectors: dict[str, Reflector[Any]] = {resource.plural: self._objects}
        self.handlers: list[tuple[Reflector[Any], Any]] = [(self._objects, self._seen)]
        self.worker = Worker(name, self.process, monotonic_s=monotonic_s)

    @abstractmethod
    def process(self, key: str) -> None:
        """One pass over one object."""

    def _newest(self, key: str) -> T | None:
        """The object as it is, or None if it is gone."""
        return self._written.newest(key, self._objects.store.get(key))

    def _patched(self, obj: T, patch: Mapping[str, Any]) -> T:
        """The object with this merge patch of its status, written if there is any. Conflict if it has changed."""
        if not patch:
            return obj
        written = write_status(self._client, self._resource, obj, patch)
        self._written.note(written)
        return written

    def _asked(self, obj: T) -> tuple[object, ...]:
        """The fields of an object that a pass depends on."""
        meta = obj.metadata
        return meta.uid, meta.generation, meta.deletion_timestamp

    def _seen(self, old: T | None, new: T | None) -> None:
        """Queues an object that is gone, or of which a field has changed that a pass depends on."""
        self._written.seen(old, new)
        changed = new or old
        if changed and (old is None or new is None or self._asked(old) != self._asked(new)):
            self.worker.queue.add(changed.metadata.key)
