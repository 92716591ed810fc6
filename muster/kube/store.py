"""The objects of a reflector, by key and by any number of indexes, and its handlers. No I/O."""

import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any, Generic, TypeVar

import msgspec
import structlog
from prometheus_client import Counter

from muster.api.kubernetes.meta import Object
from muster.kube.budget import MemoryLimit
from muster.kube.codec import UNDECODABLE, Identity, decoder, leave_out

T = TypeVar("T", bound=Object)

log = structlog.get_logger(__name__)

HANDLER_FAILURES = Counter("muster_kube_handler_failures_total", "Handlers that raised.", ["resource"])
Indexer = Callable[[T], Iterable[str]]
"""The values of an object in an index. A pure function: it is called again when the object goes."""
Handler = Callable[[T | None, T | None], None]
"""Called for a change with the old object, if there was one, and the new one, if there is one."""


class ObjectStore(Generic[T]):
    """Objects by key (`namespace/name`, or `name`). Thread safe.

    Objects are shared, not copied: readers must not change them.

    Those of a kind with templates or other plain data are kept as texts, if `packed` names its type, and each reader
    gets a copy. A list of short arguments is twelve times as large in Python as it is in JSON, and each user can write
    one. That costs some microseconds for each look at a usual Job, so it is not for kinds of which there are thousands
    in one look, as pods.
    """

    def __init__(self, indexers: Mapping[str, Indexer[T]] | None = None, *, packed: type[T] | None = None) -> None:
        self._indexers = dict(indexers or {})
        self._pack: Callable[[T], Any] = text_of if packed else _as_it_is
        self._unpack: Callable[[Any], T] = decoder(packed).decode if packed else _as_it_is
        self._lock = threading.Lock()
        self._objects: dict[str, Any] = {}
        """Packed ones; the same in the indexes."""
        self._indexes: dict[str, dict[str, dict[str, Any]]] = {name: {} for name in self._indexers}

    def __len__(self) -> int:
        return len(self._objects)

    def get(self, key: str) -> T | None:
        """Return the object with this key, if known."""
        found = self._objects.get(key)
        return None if found is None else self._unpack(found)

    def keys(self) -> list[str]:
        """Return a copy of all keys."""
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
        """Return what the store keeps for an object: its text, or itself."""
        return self._pack(obj)

    def put(self, obj: T, packed: Any = None, old: T | None = None) -> None:
        """Add or replace an object. For the store's one writer, its reflector.

        `packed` is what it keeps for the object, and `old` what `get` returns, where the caller has them: of a long
        object each takes milliseconds. Nothing has changed where an index raises.
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
        """Remove an object and return it. For the store's one writer, its reflector."""
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
    """Return an object as JSON; copied, as the encoder's own bytes may have half their length behind them."""
    return bytes(memoryview(msgspec.json.encode(obj)))


def _as_it_is(value: Any) -> Any:
    return value


class Mirror(Generic[T]):
    """Makes a store equal to lists and watches of the API server; `plural` names the kind in logs and metrics.

    Handlers get (None, new) for an object that appeared, (old, new) for one that changed and (old, None) for one that
    went away. `old` is always the `new` of the call before, or the part of that which `keep` kept. They are called
    after the store has changed. If one raises, that is logged and counted, and the others are still called.

    Objects over the `budget` are left out, which is reported to `refused`. One that was known stays as it was, or has
    gone if older ones of its namespace need its room.

    An object that is not wanted is as one that is not there; `wants` is asked for each version of it.
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
        """Called with the key of each object that is not there any more, also of one that was not wanted."""
        self._wants = wants
        self.handlers: list[Handler[T]] = []
        self.refused: list[Callable[[T, str], None]] = []
        """Called with each object that is left out, and why."""
        self.budget = budget
        self._plural = plural
        self._keep = keep

    def put_all(self, items: Iterable[T], keys: set[str]) -> Iterator[None]:
        """Put each of them and note its key; to read one is a step, and to put it another."""
        for item in items:
            yield
            keys.add(self.put(item))
            yield

    def keep_only(self, keys: Collection[str]) -> Iterator[None]:
        """Remove all others, a step for each: with every object of a list put before, the store is equal to it.

        The store is changed object by object and never emptied. Readers see old and new objects side by side meanwhile,
        as with a late watch, but never a cluster without pods.
        """
        for key in self.store.keys():  # noqa: SIM118 - a store is no mapping; this copies under its lock
            if key not in keys:
                self.remove(key)
                yield

    def put(self, new: T) -> str:
        """Take in an object that is there or has changed, unless it is known in this version; return its key."""
        key = new.metadata.key
        if self._wants is not None and not self._wants(new):
            self.remove(key)
            return key
        old = self.store.get(key)
        if old is not None:
            if old.metadata.uid != new.metadata.uid:
                # Deleted and created again between two looks: two changes, not one.
                self.remove(key)
                old = None
            elif old.metadata.resource_version == new.metadata.resource_version:
                return key
        try:
            kept = self._keep(new) if self._keep else new
            packed = self.store.pack(kept)
            if not self._within_budget(new, packed):
                return key
            self.store.put(kept, packed, old)
        except Exception:
            UNDECODABLE.labels(self._plural).inc()
            log.exception("object left out, it cannot be indexed", resource=self._plural, name=key)
        else:
            self._tell(old, new)
        return key

    def remove(self, key: str) -> None:
        """Take in that there is no such object any more."""
        for tell in self.gone:
            tell(key)
        if self.budget is not None:
            self.budget.drop(key)
        old = self.store.discard(key)
        if old is not None:
            self._tell(old, None)

    def _within_budget(self, new: T, packed: Any) -> bool:
        """Return False if an object is left out; newer ones that have to go for it are gone then."""
        if self.budget is None:
            return True
        verdict = self.budget.take(new, packed)
        for key in verdict.gone:
            gone = self.store.discard(key)
            if gone is not None:
                self._tell(gone, None)
                self._refuse(gone, self.budget.refusal)
        if verdict.refusal:
            self._refuse(new, verdict.refusal)
        return not verdict.refusal

    def _refuse(self, obj: T, why: str) -> None:
        if self.budget is not None:
            meta = obj.metadata
            leave_out(self.budget.resource, Identity(meta.namespace, meta.name, meta.resource_version), why)
        for tell in self.refused:
            tell(obj, why)

    def _tell(self, old: T | None, new: T | None) -> None:
        for handler in self.handlers:
            try:
                handler(old, new)
            except Exception:
                HANDLER_FAILURES.labels(self._plural).inc()
                log.exception("handler failed", resource=self._plural, handler=repr(handler))
