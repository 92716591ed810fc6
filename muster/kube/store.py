"""What a reflector knows: objects by key, and by any number of indexes."""

import threading
from collections.abc import Callable, Iterable, Mapping
from typing import Generic, TypeVar

from muster.api.kubernetes.meta import Object

T = TypeVar("T", bound=Object)

Indexer = Callable[[T], Iterable[str]]
"""Under which values an object is found in an index. A pure function: it is asked again when the object goes."""


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
        """Adds or replaces an object; gives what was there before. For the store's one writer, its reflector."""
        key = obj.metadata.key
        with self._lock:
            old = self._objects.get(key)
            if old is not None:
                self._unindex(key, old)
            self._objects[key] = obj
            for name, indexer in self._indexers.items():
                for value in indexer(obj):
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
