"""What a reflector knows: objects by key, and by any number of indexes; and whom it tells of changes. No I/O."""

import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Generic, TypeVar

import structlog
from prometheus_client import Counter

from muster.api.kubernetes.meta import Object
from muster.kube.codec import UNDECODABLE

T = TypeVar("T", bound=Object)

log = structlog.get_logger(__name__)

HANDLER_FAILURES = Counter("muster_kube_handler_failures_total", "Handlers that raised.", ["resource"])
Indexer = Callable[[T], Iterable[str]]
"""Under which values an object is found in an index. A pure function: it is asked again when the object goes."""
Handler = Callable[[T | None, T | None], None]
"""What is told of a change: the old object, if there was one, and the new one, if there is one."""


class Store(Generic[T]):
    """Objects by key (`namespace/name`, or `name`). Thread safe.

    Objects are shared, not copied: whoever gets one must not change it.
    """

    def __init__(self, indexers: Mapping[str, Indexer[T]] | None = None) -> None:
        self._indexers = dict(indexers or {})
        self._lock = threading.Lock()
        self._objects: dict[str, T] = {}
        self._indexes: dict[str, dict[str, dict[str, T]]] = {name: {} for name in self._indexers}

    def __len__(self) -> int:
        return len(self._objects)

    def get(self, key: str) -> T | None:
        """The object with this key, if known."""
        return self._objects.get(key)

    def keys(self) -> list[str]:
        """All keys as of now; the copy does not change with the store."""
        with self._lock:
            return [*self._objects]

    def by_index(self, index: str, value: str) -> list[T]:
        """The objects that `index` files under `value`."""
        with self._lock:
            return [*self._indexes[index].get(value, {}).values()]

    def put(self, obj: T) -> T | None:
        """Adds or replaces an object; gives what was there before. For the store's one writer, its reflector.

        Nothing has changed where an index raises.
        """
        key = obj.metadata.key
        values = {name: list(indexer(obj)) for name, indexer in self._indexers.items()}
        with self._lock:
            old = self._objects.get(key)
            if old is not None:
                self._unindex(key, old)
            self._objects[key] = obj
            for name, found in values.items():
                for value in found:
                    self._indexes[name].setdefault(value, {})[key] = obj
            return old

    def discard(self, key: str) -> T | None:
        """Removes an object; gives what was there. For the store's one writer, its reflector."""
        with self._lock:
            old = self._objects.pop(key, None)
            if old is not None:
                self._unindex(key, old)
            return old

    def list(self) -> list[T]:
        """All objects as of now; the copy does not change with the store."""
        with self._lock:
            return [*self._objects.values()]

    def _unindex(self, key: str, obj: T) -> None:
        for name, indexer in self._indexers.items():
            index = self._indexes[name]
            for value in indexer(obj):
                found = index.get(value)
                if found is not None:
                    found.pop(key, None)
                    if not found:
                        del index[value]


class Mirror(Generic[T]):
    """Makes a store equal to what the API server is seen to have; `plural` names the kind in logs and metrics.

    Handlers get (None, new) for an object that appeared, (old, new) for one that changed and (old, None) for one that
    went away; `old` is always what the same handler got as `new` before, or what `keep` made of that. They are called
    after the store has changed. If one raises, that is logged and counted, and the others are still called.
    """

    def __init__(self, plural: str, store: Store[T], keep: Callable[[T], T] | None = None) -> None:
        self.store = store
        self.handlers: list[Handler[T]] = []
        self._plural = plural
        self._keep = keep

    def put_all(self, items: Iterable[T], keys: set[str]) -> Iterator[None]:
        """Puts each of them and notes its key, a step for each."""
        for item in items:
            keys.add(self.put(item))
            yield

    def keep_only(self, keys: Collection[str]) -> Iterator[None]:
        """Removes all others, a step for each: with every object of a list put before, the store is equal to it.

        So the store is changed object by object and never emptied: whoever reads it meanwhile sees old and new objects
        side by side, which a watch that is late would show too, but never a cluster without pods.
        """
        for key in self.store.keys():  # noqa: SIM118 - a store is no mapping; this copies under its lock
            if key not in keys:
                self.remove(key)
                yield

    def put(self, new: T) -> str:
        """The object is there, or has changed; one that is known in this version is not told. Gives its key."""
        key = new.metadata.key
        old = self.store.get(key)
        if old is not None:
            if old.metadata.uid != new.metadata.uid:
                # Deleted and created again while we were not looking: two changes, not one.
                self.remove(key)
                old = None
            elif old.metadata.resource_version == new.metadata.resource_version:
                return key
        try:
            self.store.put(self._keep(new) if self._keep else new)
        except Exception:
            UNDECODABLE.labels(self._plural).inc()
            log.exception("object left out, it cannot be indexed", resource=self._plural, name=key)
        else:
            self._tell(old, new)
        return key

    def remove(self, key: str) -> None:
        """There is no such object any more."""
        old = self.store.discard(key)
        if old is not None:
            self._tell(old, None)

    def _tell(self, old: T | None, new: T | None) -> None:
        for handler in self.handlers:
            try:
                handler(old, new)
            except Exception:
                HANDLER_FAILURES.labels(self._plural).inc()
                log.exception("handler failed", resource=self._plural, handler=repr(handler))
