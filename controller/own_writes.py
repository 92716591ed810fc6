"""Objects as this process wrote them last: a pass right after a write must not decide on the state before it."""

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

from muster.api.kubernetes.meta import Object

T = TypeVar("T", bound=Object)


class OwnWrites(Generic[T]):
    """Objects of one kind by key, each until a cache shows it or a later version. Thread safe.

    With `kept_s` a created object counts for so long while no cache shows it; after that it came and went between two
    lists of the reflector.
    """

    def __init__(self, monotonic_s: Callable[[], float], kept_s: float = 0.0) -> None:
        self._monotonic_s = monotonic_s
        self._kept_s = kept_s
        self._lock = threading.Lock()
        self._written: dict[str, tuple[float, T]] = {}

    def note(self, written: T) -> None:
        """Notes an object with which the API server answered a write."""
        with self._lock:
            self._written[written.metadata.key] = (self._monotonic_s() + self._kept_s, written)

    def newest(self, key: str, cached: T | None) -> T | None:
        """The newer of the cached object and the one written last."""
        with self._lock:
            until_s, written = self._written.get(key, (0.0, None))
            if written is None:
                return cached
            newer = self._monotonic_s() < until_s if cached is None else _version(written) > _version(cached)
            if newer:
                return written
            del self._written[key]
            return cached

    def unseen(self, key: str) -> bool:
        """True while a created object counts that no cache has shown."""
        return self._monotonic_s() < self._written.get(key, (0.0, None))[0]

    def seen(self, old: T | None, new: T | None) -> None:
        """Drops the note of an object that a cache shows, or that is gone."""
        shown = new or old
        if shown is None:
            return
        with self._lock:
            _, written = self._written.get(shown.metadata.key, (0.0, None))
            if written is None:
                return
            gone = new is None and written.metadata.uid == shown.metadata.uid
            if gone or (new and _version(written) <= _version(new)):
                del self._written[shown.metadata.key]

    def drop(self, key: str) -> None:
        """Drops the note of an object that was deleted."""
        with self._lock:
            self._written.pop(key, None)


def _version(obj: Object) -> int:
    return int(obj.metadata.resource_version or 0)
