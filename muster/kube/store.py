"""Objects of a reflector, by key and by any number of indexes, and handlers for changes of these objects. No I/O."""

import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any, Generic, TypeVar

import msgspec
import structlog
from prometheus_client import Counter

from muster.api.kubernetes.meta import Object
from muster.kube.codec import UNDECODABLE, Identity, decoder, leave_out
from muster.kube.memorylimit import MemoryLimit

T = TypeVar("T", bound=Object)

log = structlog.get_logger(__name__)

HANDLER_FAILURES = Counter(
    "muster_kube_handler_failures_total", "Exceptions in handlers of changes of objects, by resource.", ["resource"]
)
Indexer = Callable[[T], Iterable[str]]
"""Function that returns the values under which an index contains an object. The function must be pure, because it is
called again when the object is removed."""
Handler = Callable[[T | None, T | None], None]
"""Function that is called for each change with the old and the new object; a missing object is None."""


class ObjectStore(Generic[T]):
    """A store of objects by key (`namespace/name`, or `name`). Thread-safe.

    All readers share the same objects, so they must not change the objects.

    If `packed` is a type, its objects are stored as JSON text, and each reader gets a copy. This suits types with
    templates or other plain data. Any user can write a long list of short arguments, which needs twelve times as much
    memory as Python objects than as JSON text. Decoding a usual Job takes some microseconds, so kinds whose objects are
    read by the thousand, such as pods, should not be packed.
    """

    def __init__(self, indexers: Mapping[str, Indexer[T]] | None = None, *, packed: type[T] | None = None) -> None:
        self._indexers = dict(indexers or {})
        self._pack: Callable[[T], Any] = text_of if packed else _as_it_is
        self._unpack: Callable[[Any], T] = decoder(packed).decode if packed else _as_it_is
        self._lock = threading.Lock()
        self._objects: dict[str, Any] = {}
        """Maps a key to the stored form of the object (see `pack`); the indexes contain the same forms."""
        self._indexes: dict[str, dict[str, dict[str, Any]]] = {name: {} for name in self._indexers}

    def __len__(self) -> int:
        return len(self._objects)

    def get(self, key: str) -> T | None:
        """Return the object with this key, or None if it is unknown."""
        found = self._objects.get(key)
        return None if found is None else self._unpack(found)

    def keys(self) -> list[str]:
        """Return a copy of the set of all keys."""
        with self._lock:
            return [*self._objects]

    def by_index(self, index: str, value: str) -> list[T]:
        """Return the objects that have this value in `index`."""
        with self._lock:
            found = [*self._indexes[index].get(value, {}).values()]
        return [self._unpack(each) for each in found]

    def keys_by_index(self, index: str, value: str) -> list[str]:
        """Return the keys of the objects that have this value in `index`."""
        with self._lock:
            return [*self._indexes[index].get(value, {})]

    def pack(self, obj: T) -> Any:
        """Return the stored form of an object: its text, or the object itself."""
        return self._pack(obj)

    def add_object(self, obj: T, packed: Any = None, old: T | None = None) -> None:
        """Add or replace an object. The method is only for the store's single writer, the reflector.

        A caller that has `packed` (the stored form) and `old` (the result of `get`) should pass them, because computing
        them takes milliseconds for a long object. If an indexer raises an exception, the store is not changed.
        """
        key = obj.metadata.key
        values = {name: list(indexer(obj)) for name, indexer in self._indexers.items()}
        packed = self._pack(obj) if packed is None else packed
        if old is None and values:
            old = self.get(key)
        with self._lock:
            if old is not None:
                self._unindex(key, old)
            self._objects[key] = packed
            for name, found in values.items():
                for value in found:
                    self._indexes[name].setdefault(value, {})[key] = packed

    def discard(self, key: str) -> T | None:
        """Remove an object and return it. The method is only for the store's single writer, the reflector."""
        old = self.get(key)
        if old is not None:
            with self._lock:
                del self._objects[key]
                self._unindex(key, old)
        return old

    def list(self) -> list[T]:
        """Return a copy of the list of all objects."""
        with self._lock:
            found = [*self._objects.values()]
        return [self._unpack(each) for each in found]

    def _unindex(self, key: str, obj: T) -> None:
        for name, indexer in self._indexers.items():
            index = self._indexes[name]
            for value in indexer(obj):
                found = index.get(value)
                if found is not None:
                    found.pop(key, None)
                    if not found:
                        del index[value]


def text_of(obj: Object) -> bytes:
    """Return an object as JSON.

    The JSON text is copied, because the encoder's buffer may be larger than its content.
    """
    return bytes(memoryview(msgspec.json.encode(obj)))


def _as_it_is(value: Any) -> Any:
    return value


class Mirror(Generic[T]):
    """Keeps a store equal to the API server's lists and watches; `plural` names the kind in logs and metrics.

    Handlers get (None, new) for an added object, (old, new) for a changed one and (old, None) for a deleted one. `old`
    is always the `new` of the previous call for this object, trimmed by `keep`. Handlers are called after the store has
    changed. An exception in a handler is logged and counted, and the other handlers are still called.

    Objects that exceed the memory limit `budget` are left out of the store and reported to `refused`. If the new
    version of a stored object is left out, the old version stays until older objects of its namespace need the space.

    An object that does not satisfy `wants` is treated as missing; `wants` is evaluated for each version.
    """

    def __init__(
        self,
        plural: str,
        store: ObjectStore[T],
        keep: Callable[[T], T] | None = None,
        budget: MemoryLimit[T] | None = None,
        wants: Callable[[T], bool] | None = None,
    ) -> None:
        self.store = store
        self.gone: list[Callable[[str], None]] = []
        """Functions that are called with the key of each deleted object, even if the object did not satisfy `wants`."""
        self._wants = wants
        self.handlers: list[Handler[T]] = []
        self.refused: list[Callable[[T, str], None]] = []
        """Functions that are called with each object that is left out of the store, and the reason."""
        self.budget = budget
        self._plural = plural
        self._keep = keep

    def put_all(self, items: Iterable[T], keys: set[str]) -> Iterator[None]:
        """Store all objects of a list, and collect their keys in `keys`.

        Reading an object and storing the object are separate steps, so that other tasks can run in between.
        """
        for item in items:
            yield
            keys.add(self.add_object(item))
            yield

    def keep_only(self, keys: Collection[str]) -> Iterator[None]:
        """Remove all objects except those with `keys`, one per step, so that the store equals the list.

        The store is changed object by object and never emptied. During the change, readers see a mix of old and new
        objects, as with a delayed watch, but never a cluster without pods.
        """
        for key in self.store.keys():  # noqa: SIM118 - a store is no mapping; this copies under its lock
            if key not in keys:
                self.remove(key)
                yield

    def add_object(self, new: T) -> str:
        """Process a new or changed object, unless this version of it is already known; return its key."""
        key = new.metadata.key
        if self._wants is not None and not self._wants(new):
            self.remove(key)
            return key
        old = self.store.get(key)
        if old is not None:
            if old.metadata.uid != new.metadata.uid:
                # deleted and created again between two lists: two changes, not one
                self.remove(key)
                old = None
            elif old.metadata.resource_version == new.metadata.resource_version:
                return key
        try:
            kept = self._keep(new) if self._keep else new
            packed = self.store.pack(kept)
            if not self._within_budget(new, packed):
                return key
            self.store.add_object(kept, packed, old)
        except Exception:
            UNDECODABLE.labels(self._plural).inc()
            log.exception("object left out because it cannot be indexed", resource=self._plural, name=key)
        else:
            self._notify(old, new)
        return key

    def remove(self, key: str) -> None:
        """Process the deletion of an object."""
        for listener in self.gone:
            listener(key)
        if self.budget is not None:
            self.budget.drop(key)
        old = self.store.discard(key)
        if old is not None:
            self._notify(old, None)

    def _within_budget(self, new: T, packed: Any) -> bool:
        """Make space for an object by dropping newer objects; return False if older ones would have to be dropped."""
        if self.budget is None:
            return True
        verdict = self.budget.weigh(new, packed)
        for key in verdict.gone:
            gone = self.store.discard(key)
            if gone is not None:
                self._notify(gone, None)
                self._refuse(gone, self.budget.refusal)
        if verdict.refusal:
            self._refuse(new, verdict.refusal)
        return not verdict.refusal

    def _refuse(self, obj: T, why: str) -> None:
        if self.budget is not None:
            meta = obj.metadata
            leave_out(self.budget.resource, Identity(meta.namespace, meta.name, meta.resource_version), why)
        for listener in self.refused:
            listener(obj, why)

    def _notify(self, old: T | None, new: T | None) -> None:
        for handler in self.handlers:
            try:
                handler(old, new)
            except Exception:
                HANDLER_FAILURES.labels(self._plural).inc()
                log.exception("handler failed", resource=self._plural, handler=repr(handler))
