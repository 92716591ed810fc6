"""Reflector, which keeps a store equal to the API server's objects and notifies handlers of every change.

A reflector runs three nested loops, each of which has one reason to end::

    _run       forever, until `stop`: follow, and after a failure wait a little and start over
    _follow    one list and all later changes, until the API server no longer has its version
    _consume   one stream, until the server or the network ends it

The stream of a watch may end at any moment. The next stream starts at the last version, so no change is lost or
duplicated. If the API server no longer has this version, all objects are listed again, and only the differences are
reported.
"""

import asyncio
import random as _random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import aclosing, suppress
from typing import Generic, TypeVar

import structlog
from prometheus_client import Counter

from muster.api.base import Resource
from muster.api.kubernetes.meta import Object
from muster.kube.client import Client
from muster.kube.errors import APIError, Backoff, Gone, NotFound, TooManyRequests, Unreachable
from muster.kube.loop import TimeSlice, refuse_to_wait_on, runs_on
from muster.kube.memorylimit import MemoryLimit
from muster.kube.readable import Readable
from muster.kube.reads import Selectors
from muster.kube.store import Handler, Mirror, ObjectStore

T = TypeVar("T", bound=Object)

log = structlog.get_logger(__name__)

RELISTS = Counter(
    "muster_kube_relists_total", "List requests of a reflector after the first one, by resource.", ["resource"]
)
RESTARTS = Counter(
    "muster_kube_watch_restarts_total", "Watch requests of a reflector after the first one, by resource.", ["resource"]
)
_FIRST_DELAY_S = 0.2
_HEALTHY_S = 5.0
_LIST_TIMEOUT_S = 60.0
_WATCH_S = 300.0
_JOIN_S = 5.0
_NOT_SERVED_S = 30.0
"""Interval between two checks for a kind that the API server does not serve. The server may serve the kind after a
restart with another feature gate."""


class Reflector(Readable, Generic[T]):
    """A task on the client's loop that lists and watches one kind into `store`.

    `Mirror` passes the changes to the handlers. Handlers run on the event loop's thread, so they must only record a
    change: work would block the loop, and a client call would deadlock.

    Objects that exceed the memory limit `budget` are left out of the store, and are read again when there is space.
    Objects that do not satisfy `wants` are treated as missing.

    `keep` trims an object to the part to store (at least name, UID and resourceVersion). Handlers later receive this
    part as `old`. With `may_be_absent`, a kind that the API server does not serve is treated as having no objects.
    `relists` counts the lists after the first one. `longest_delay_s` is the maximum pause between attempts while the
    API server does not respond.
    """

    def __init__(
        self,
        client: Client,
        resource: Resource[T],
        *,
        store: ObjectStore[T] | None = None,
        keep: Callable[[T], T] | None = None,
        budget: MemoryLimit[T] | None = None,
        wants: Callable[[T], bool] | None = None,
        namespace: str | None = None,
        label_selector: str = "",
        field_selector: str = "",
        random: Callable[[], float] = _random.random,
        longest_delay_s: float = 30.0,
        may_be_absent: bool = False,
    ) -> None:
        super().__init__(resource.plural)
        self.store: ObjectStore[T] = ObjectStore() if store is None else store
        self.mirror = Mirror(resource.plural, self.store, keep, budget, wants)
        self._may_be_absent = may_be_absent
        self.relists = 0
        self._client = client
        self._resource = resource
        self._namespace = namespace
        self._selectors = Selectors(label_selector=label_selector, field_selector=field_selector)
        self._random = random
        self._backoff = Backoff(_FIRST_DELAY_S, longest_delay_s, random)
        self._version = ""
        self._listed = self._watched = self._absent = False
        self._stopping = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[None] | None = None
        self._again: asyncio.Task[None] | None = None
        self._ended = threading.Event()

    @property
    def version(self) -> str:
        """Resource version up to which the handlers have received all changes; empty before the first list."""
        return self._version

    @property
    def size(self) -> int:
        """Number of known objects."""
        return len(self.store)

    def wait_synced(self, timeout_s: float) -> bool:
        """Wait until the reflector is synced; return False if the timeout ends first.

        Raises RuntimeError on the loop's own thread.
        """
        refuse_to_wait_on(self._client.loop, "to wait for a reflector")
        return self.first.wait(timeout_s)

    def add_handler(self, fn: Handler[T]) -> None:
        """Add a handler `fn`, which receives every change from the first list on; call this method before `start`."""
        if self._loop is not None:
            raise RuntimeError(f"the reflector of {self._resource.plural} runs already: add handlers before start()")
        self.mirror.handlers.append(fn)

    def start(self) -> None:
        """Start the task, from any thread; `wait_synced` waits until the store is usable."""
        if self._loop is not None:
            raise RuntimeError(f"the reflector of {self._resource.plural} was started already")
        self._loop = self._client.loop
        self._loop.call_soon_threadsafe(self._begin)

    def stop(self) -> None:
        """End the task, even during a watch; no change is reported afterwards. The method may be called repeatedly.

        The method waits until the task has ended. If the caller is on the loop's own thread, for example in a handler,
        the method does not wait, and the task ends soon afterwards.
        """
        self._stopping = True
        if self._loop is None:
            return
        with suppress(RuntimeError):  # the loop has ended, and the task with it
            self._loop.call_soon_threadsafe(lambda: self._task and self._task.cancel())
            if not runs_on(self._loop):
                self._ended.wait(_JOIN_S)

    def _begin(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._run(), name=f"reflector-{self._resource.plural}")
        self._task.add_done_callback(self._has_ended)
        if self.mirror.budget is not None:
            again = self.mirror.budget.read_again(self._read_left_out, self._random)
            self._again = asyncio.get_running_loop().create_task(again, name=f"left-out-{self._resource.plural}")

    def _has_ended(self, _: asyncio.Task[None]) -> None:
        self.succeeded()
        if self._again is not None:
            self._again.cancel()
        self._ended.set()

    async def _run(self) -> None:
        """Restart the reflector after each failure, because otherwise the cache would contain old objects forever.

        The reflector also pauses after the error `Gone`. A full list is the most expensive request of a cache, and a
        server that drops versions too fast would otherwise be listed continuously.
        """
        while not self._stopping:
            try:
                await self._follow()
            except Gone as error:
                log.info("listing again", resource=self._resource.plural, why=str(error))
            except NotFound as error:
                await self._not_served(error)
            except APIError as error:
                self.refused(error)
            except Exception as error:  # a defect must not end the cache's updates for good
                self.failed(error)
                log.exception("reflector failed", resource=self._resource.plural)
            await asyncio.sleep(self._backoff.next())

    async def _not_served(self, error: NotFound) -> None:
        """Handle the response "kind not served"; an optional kind is then treated as having no objects."""
        if not self._may_be_absent:
            self.refused(error)
            return
        if not self._absent:
            log.info("not served by this cluster", resource=self._resource.plural)
        self._absent = True
        await self._in_steps(self.mirror.keep_only(()))
        self.succeeded()
        self.first.set()
        await asyncio.sleep(_NOT_SERVED_S * (1 + self._random()))

    async def _follow(self) -> None:
        """List the objects, and then watch from the version of the list.

        The API server ends each stream after a few minutes, and the next stream is opened at once. A stream that ends
        early is a failure, such as a proxy that cuts connections. After a failure, the next stream is opened with a
        delay, which grows with each failure and is reset by any event or bookmark.
        """
        await self._list()
        while not self._stopping:
            started, version = time.monotonic(), self._version
            try:
                await self._consume()
            except (Unreachable, TooManyRequests) as error:
                self.failed(error)
                log.info("watching again", resource=self._resource.plural, why=str(error))
            healthy = time.monotonic() - started >= _HEALTHY_S
            if healthy or self._version != version:
                self._backoff.reset()
            if not healthy:
                await asyncio.sleep(self._backoff.next())

    async def _list(self) -> None:
        """Make the store equal to a complete list; only a few pages of the list are in memory at once.

        An unreadable object keeps its last known version, as in a watch.
        """
        if self._listed:
            self.relists += 1
            RELISTS.labels(self._resource.plural).inc()
        self._listed = True
        found: set[str] = set()
        pages = self._client.on_loop.pages(
            self._resource, self._namespace, **self._selectors, timeout_s=_LIST_TIMEOUT_S
        )
        async with aclosing(pages):
            async for page in pages:
                await self._in_steps(self.mirror.put_all(page, found))
                found.update(page.left_out)
                version = page.metadata.resource_version
        await self._in_steps(self.mirror.keep_only(found))
        self._version = version
        self._absent = False
        self.succeeded()
        self.first.set()

    async def _in_steps(self, change: Iterator[None]) -> None:
        """Apply a list's changes to the mirror step by step, so that other tasks can run between the steps."""
        slice_of_time = TimeSlice()
        for _ in change:
            if self._stopping:
                raise asyncio.CancelledError
            await slice_of_time.share()

    async def _consume(self) -> None:
        """Process one stream.

        After the stream has ended, for any reason, `_version` is the last version that was reported.

        Bookmarks advance `_version` too; otherwise the version of a rarely changing kind would become too old for the
        API server. Streams have random durations, so that the streams of all kinds and replicas do not end together.
        """
        if self._watched:
            RESTARTS.labels(self._resource.plural).inc()
        self._watched = True
        watch = await self._client.on_loop.watch(
            self._resource,
            self._namespace,
            **self._selectors,
            resource_version=self._version,
            timeout_s=_WATCH_S * (1 + self._random()),
        )
        self.succeeded()
        slice_of_time = TimeSlice()
        try:
            async for kind, obj in watch:
                if self._stopping:
                    return
                if kind == "DELETED":
                    self.mirror.remove(obj.metadata.key)
                elif kind != "BOOKMARK":
                    self.mirror.add_object(obj)
                self._version = obj.metadata.resource_version
                if watch.behind:
                    await slice_of_time.share()
        finally:
            watch.close()

    async def _read_left_out(self, key: str, budget: MemoryLimit[T]) -> None:
        """Read one object by a list request, because some processes may list the kind but not get single objects.

        An empty list means that the object was deleted.
        """
        namespace, _, name = key.rpartition("/")
        fields = filter(None, (self._selectors["field_selector"], f"metadata.name={name}"))
        only = Selectors(label_selector=self._selectors["label_selector"], field_selector=",".join(fields))
        found = await self._client.on_loop.list(self._resource, namespace, **only, timeout_s=_LIST_TIMEOUT_S)
        if not found:
            budget.drop(key)
        elif budget.left_out(key):  # otherwise the watch has reported another version or the deletion in the meantime
            self.mirror.add_object(found[0])
