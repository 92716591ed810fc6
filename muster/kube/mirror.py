"""Makes a store equal to what the API server is seen to have, and tells handlers the differences. No I/O."""

from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Generic, TypeVar

import structlog

from muster.api.kubernetes.meta import Object
from muster.kube.metrics import HANDLER_FAILURES
from muster.kube.store import Store

T = TypeVar("T", bound=Object)

log = structlog.get_logger(__name__)

Handler = Callable[[T | None, T | None], None]


class Mirror(Generic[T]):
    """A store and the handlers of its changes; `plural` names the kind in logs and metrics.

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
        self.store.put(self._keep(new) if self._keep else new)
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
