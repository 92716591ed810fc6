"""Keeps a store equal to what the API server has, and tells handlers about every change.

Three nested pieces, each with one reason to end::

    _run       forever, until `stop`: follow, and after a failure wait a little and start over
    _follow    one list and all that comes after it, until the API server has forgotten where we are
    _consume   one stream, until the server or the network ends it

A stream may end at any moment; the next one starts where it ended, so nothing is lost and nothing comes twice. Where
the API server has forgotten that resource version, everything is listed again and only the differences are told.
"""

import random as _random
import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

import structlog

from muster.api.base import Resource
from muster.api.meta import Object
from muster.kube.backoff import Backoff
from muster.kube.client import Client
from muster.kube.errors import APIError, Gone, NotFound, TooManyRequests, Unreachable
from muster.kube.metrics import HANDLER_FAILURES, RELISTS, RESTARTS
from muster.kube.store import Store
from muster.kube.watch import Watch

T = TypeVar("T", bound=Object)

log = structlog.get_logger(__name__)

_FIRST_DELAY_S = 0.2
_HEALTHY_S = 5.0
_PAGE_OBJECTS = 500
_LIST_TIMEOUT_S = 60.0
_WATCH_S = 300.0
_JOIN_S = 5.0
_NOT_SERVED_S = 300.0
"""Until a kind that the API server does not know is looked for again: an upgrade may have brought it."""


class Reflector(Generic[T]):
    """A thread that lists and watches one kind into `store`.

    Handlers get (None, new) for an object that appeared, (old, new) for one that changed and (old, None) for one that
    went away; `old` is always what the same handler got as `new` before. They are called from the reflector's thread,
    after the store has changed, and should only note what is to do: while they work, nothing else arrives. If one
    raises, that is logged and counted, and the others are still called.

    `keep` makes what the store keeps of an object (at least its name, UID and resourceVersion), where handlers remember
    what they need themselves; `old` is then no more than that.

    A kind that `may_be_absent` is one that the API server may not know: then there are none of it.

    `relists` and `restarts` count the lists and watches after the first; `longest_delay_s` bounds the pause between two
    tries while the API server does not answer.
    """

    def __init__(
        self,
        client: Client,
        resource: Resource[T],
        *,
        store: Store[T] | None = None,
        keep: Callable[[T], T] | None = None,
        namespace: str | None = None,
        label_selector: str = "",
        field_selector: str = "",
        monotonic_s: Callable[[], float] = time.monotonic,
        random: Callable[[], float] = _random.random,
        longest_delay_s: float = 30.0,
        may_be_absent: bool = False,
    ) -> None:
        self.store: Store[T] = Store() if store is None else store
        self._keep = keep
        self._may_be_absent = may_be_absent
        self.relists = 0
        self.restarts = 0
        self._client = client
        self._resource = resource
        self._namespace = namespace
        self._selectors = {"label_selector": label_selector, "field_selector": field_selector}
        self._monotonic_s = monotonic_s
        self._random = random
        self._backoff = Backoff(_FIRST_DELAY_S, longest_delay_s, random)
        self._page_objects = _PAGE_OBJECTS
        self._version = ""
        self._listed = self._watched = False
        self._handlers: list[Callable[[T | None, T | None], None]] = []
        self._synced = threading.Event()
        self._stopping = threading.Event()
        self._lock = threading.Lock()
        self._watch: Watch[T] | None = None
        self._thread = threading.Thread(target=self._run, name=f"reflector-{resource.plural}", daemon=True)

    @property
    def synced(self) -> bool:
        """Whether the first list is in the store and the handlers know all of it."""
        return self._synced.is_set()

    @property
    def size(self) -> int:
        """How many objects are known."""
        return len(self.store)

    def wait_synced(self, timeout_s: float) -> bool:
        """Waits until synced; False if that takes longer."""
        return self._synced.wait(timeout_s)

    def add_handler(self, fn: Callable[[T | None, T | None], None]) -> None:
        """Tells `fn` about every change from the first list on; so this comes before `start`."""
        if self._thread.ident is not None:
            raise RuntimeError(f"the reflector of {self._resource.plural} runs already: add handlers before start()")
        self._handlers.append(fn)

    def start(self) -> None:
        """Starts the thread; `wait_synced` tells when the store can be used."""
        self._thread.start()

    def stop(self) -> None:
        """Ends the thread, also in the middle of a watch. May be called twice, and from a handler."""
        self._stopping.set()
        with self._lock:
            if self._watch:
                self._watch.close()
        if self._thread.ident is not None and self._thread is not threading.current_thread():
            self._thread.join(_JOIN_S)

    def _run(self) -> None:
        """Whatever goes wrong, the cache must not stay silent: what it shows would be old for good.

        The pause also follows a `Gone`. A server that forgets faster than we list would be listed without end, and a
        list of everything is the most expensive thing that a cache can ask for.
        """
        while not self._stopping.is_set():
            try:
                self._follow()
            except Gone as error:
                log.info("listing again", resource=self._resource.plural, why=str(error))
            except NotFound as error:
                self._not_served(error)
            except APIError as error:
                log.warning("cannot list or watch", resource=self._resource.plural, why=str(error))
            except Exception:  # a defect of ours must not silence the cache for good
                log.exception("reflector failed", resource=self._resource.plural)
            self._stopping.wait(self._backoff.next())

    def _not_served(self, error: NotFound) -> None:
        """The API server does not know the kind. Where that is all right there are none, and it is asked seldom."""
        if not self._may_be_absent:
            log.warning("cannot list or watch", resource=self._resource.plural, why=str(error))
            return
        log.info("not served by this cluster", resource=self._resource.plural)
        for key in self.store.keys():  # noqa: SIM118 - a store is no mapping; this copies under its lock
            self._remove(key)
        self._synced.set()
        self._stopping.wait(_NOT_SERVED_S * (1 + self._random()))

    def _follow(self) -> None:
        """A list, and streams from where it ended.

        A stream that ends is nothing bad: the server ends each after some minutes, and the next one starts at once. One
        that ends soon after it began is a failure by another name (a proxy that cuts, a server that comes and goes), so
        the next one waits, and longer each time. Progress, which is any event or bookmark, makes the wait short again.
        """
        self._list()
        while not self._stopping.is_set():
            started, version = self._monotonic_s(), self._version
            try:
                self._consume()
            except (Unreachable, TooManyRequests) as error:
                log.info("watching again", resource=self._resource.plural, why=str(error))
            healthy = self._monotonic_s() - started >= _HEALTHY_S
            if healthy or self._version != version:
                self._backoff.reset()
            if not healthy:
                self._stopping.wait(self._backoff.next())

    def _list(self) -> None:
        """Makes the store equal to a full list; what is unchanged since the last one is not told again.

        The store is changed object by object and never emptied: whoever reads it meanwhile sees old and new objects
        side by side, which a watch that is late would show too, but never a cluster without pods.
        """
        if self._listed:
            self.relists += 1
            RELISTS.labels(self._resource.plural).inc()
        self._listed = True
        found: dict[str, T] = {}
        pages = self._client.pages(
            self._resource, self._namespace, **self._selectors, limit=self._page_objects, timeout_s=_LIST_TIMEOUT_S
        )
        try:
            for items, meta in pages:
                found.update((item.metadata.key, item) for item in items)
                version = meta.resource_version
        except Gone:
            self._page_objects = 0  # compacted between two pages: next time everything in one
            raise
        self._page_objects = _PAGE_OBJECTS
        for key in self.store.keys():  # noqa: SIM118 - a store is no mapping; this copies under its lock
            if key not in found:
                self._remove(key)
        for item in found.values():
            self._set(item)
        self._version = version
        self._synced.set()

    def _consume(self) -> None:
        """One stream; `_version` says how far it got, whatever ends it.

        It moves object by object, so the next stream goes on behind the last one that was told. Bookmarks move it too,
        and nothing else: without them a kind that rarely changes would fall behind what the server remembers. Streams
        differ in length by chance, or those of all kinds and replicas would end together.
        """
        if self._watched:
            self.restarts += 1
            RESTARTS.labels(self._resource.plural).inc()
        self._watched = True
        watch = self._client.watch(
            self._resource,
            self._namespace,
            **self._selectors,
            resource_version=self._version,
            timeout_s=_WATCH_S * (1 + self._random()),
        )
        with self._lock:
            self._watch = watch
            if self._stopping.is_set():
                watch.close()
        try:
            for kind, obj in watch:
                if kind == "DELETED":
                    self._remove(obj.metadata.key)
                elif kind != "BOOKMARK":
                    self._set(obj)
                self._version = obj.metadata.resource_version
        finally:
            watch.close()

    def _set(self, new: T) -> None:
        old = self.store.get(new.metadata.key)
        if old is not None:
            if old.metadata.uid != new.metadata.uid:
                # Deleted and created again while we were not looking: two changes, not one.
                self._remove(new.metadata.key)
                old = None
            elif old.metadata.resource_version == new.metadata.resource_version:
                return
        self.store.put(self._keep(new) if self._keep else new)
        self._tell(old, new)

    def _remove(self, key: str) -> None:
        old = self.store.discard(key)
        if old is not None:
            self._tell(old, None)

    def _tell(self, old: T | None, new: T | None) -> None:
        for handler in self._handlers:
            try:
                handler(old, new)
            except Exception:
                HANDLER_FAILURES.labels(self._resource.plural).inc()
                log.exception("handler failed", resource=self._resource.plural, handler=repr(handler))
