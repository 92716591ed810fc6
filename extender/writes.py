"""Threads for the planner's writes: a cycle waits for some writes, and other writes continue during the next cycle.

A cycle waits for placements and evictions, because the next cycle depends on them. All other writes (gates, statuses,
conditions) are only started, so that slow responses do not delay other gangs. Threads alternate between namespaces, so
that the thousands of pods of one gang do not delay the gangs of other tenants. For each object, at most one write of a
kind is in progress. A cycle does not repeat a write that was confirmed after the cycle's snapshot.
"""

import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from enum import StrEnum
from operator import attrgetter
from typing import NamedTuple, Protocol, TypeVar

import structlog
from prometheus_client import Counter, Gauge

from extender.cluster import Live
from extender.gangevents import GangEvents
from extender.planner.state.gangs import GangView
from muster.kube.client import Client
from muster.kube.errors import APIError, BadRequest, Forbidden, Invalid, NamespaceEnds
from muster.kube.workqueue import GroupQueue
from muster.process.counters import from_zero
from muster.resources.delays import doubled_s

log = structlog.get_logger()
WRITES = Counter("muster_planner_writes_total", "Writes of the planner, by kind and result", ["what", "result"])
UNDER_WAY = Gauge("muster_planner_writes_under_way", "Writes of the planner that are queued or wait for a response")
RETRY_S = 1.0
"""Delay in seconds before a failed write is retried."""
REFUSED_MOST_S = 60.0
"""Maximum delay in seconds before a repeatedly rejected write is retried; the delay begins with `RETRY_S` and doubles.
"""
_REFUSALS = (BadRequest, Forbidden, Invalid, NamespaceEnds)
"""Errors with which the API server rejects a write again and again, until an object changes."""
STOP_S = 5.0
"""Maximum time in seconds that the process waits, before it ends, for writes in progress."""


class Lane(StrEnum):
    """Kinds of writes with separate threads, so that writes of one kind do not wait for other kinds."""

    DECISIONS = "decisions"
    """Placements and evictions, for which a cycle waits."""
    PODS = "pods"
    """Writes that allow pods to start: removal of gates, and PodGroups that become Inqueue."""
    WORDS = "words"
    """Writes of statuses for users, queues and autoscalers."""


class AboutGang(Protocol):
    """A decision about one gang, or about a part of a gang."""

    @property
    def gang(self) -> GangView:
        """The gang that the decision is about."""


class _Write(NamedTuple):
    namespace: str
    what: str
    key: str
    run: Callable[[], None]


D = TypeVar("D", bound=AboutGang)
_THREADS = {Lane.DECISIONS: 16, Lane.PODS: 16, Lane.WORDS: 8}


class Writes:
    """Queues of writes, which threads carry out while this replica is `active`; `wake` requests a cycle."""

    def __init__(
        self, *, active: Callable[[], bool], wake: Callable[[], None], monotonic_s: Callable[[], float]
    ) -> None:
        self._active = active
        self._wake = wake
        self._monotonic_s = monotonic_s
        self._pools = {lane: ThreadPoolExecutor(threads, lane.value) for lane, threads in _THREADS.items()}
        self._lock = threading.Lock()
        self._waiting = {lane: GroupQueue[_Write](attrgetter("namespace")) for lane in _THREADS}
        self._under_way: set[str] = set()
        """Names of writes that are queued or in progress."""
        self._calls: set[Future[None]] = set()
        """Calls of `_run_next` that have not finished; a call need not run the write with which it was started."""
        self._answered: set[str] = set()
        """Names of writes that were confirmed after the last snapshot, so that the snapshot does not contain them."""
        self._again: set[str] = set()
        """Names of writes that were decided again while they were in progress."""
        self._not_before: dict[str, float] = {}
        self._refused: dict[str, tuple[int, float]] = {}
        """Maps the name of a write to the number of successive rejections and the time of the last rejection."""
        self._stopping = False
        UNDER_WAY.set_function(lambda: len(self._under_way))

    def snapshot_taken(self) -> None:
        """Begin a cycle, with a snapshot that contains all confirmed writes."""
        now = self._monotonic_s()
        with self._lock:
            self._answered.clear()
            self._not_before = {key: until for key, until in self._not_before.items() if until > now}
            oldest = now - 2 * REFUSED_MOST_S  # no later cycle has decided about these writes
            self._refused = {key: refused for key, refused in self._refused.items() if refused[1] > oldest}

    def all(self, what: str, write: Callable[[D], object], items: Iterable[D]) -> None:
        """Run `write` for all items in parallel, and wait for the results; a failure does not affect other items."""

        def one(item: D) -> None:
            if self._not_before.get(f"{what}/{item.gang.key}", 0.0) <= self._monotonic_s():
                self._try(what, item.gang.key, lambda: write(item))

        list(self._pools[Lane.DECISIONS].map(one, items))

    def start(
        self, lane: Lane, what: str, key: str, write: Callable[[], None], *, namespace: str | None = None
    ) -> None:
        """Run `write` soon, unless a write of this name has just failed, is in progress, or is newer than the snapshot.

        `namespace` is the namespace of the written object; by default it is the first part of the key.

        If a write with this name is in progress or newer than the snapshot, a new cycle is requested once that write
        has its response.
        """
        name = f"{what}/{key}"
        with self._lock:
            if self._stopping or self._not_before.get(name, 0.0) > self._monotonic_s():
                return
            if name in self._under_way:
                self._again.add(name)
                return
            late = name in self._answered
            if not late:
                one = _Write(key.partition("/")[0] if namespace is None else namespace, what, key, write)
                self._waiting[lane].add(one)
                self._under_way.add(name)
                call = self._pools[lane].submit(self._run_next, lane)
                self._calls.add(call)
                call.add_done_callback(self._calls.discard)
        if late:
            self._wake()

    def settled(self, timeout_s: float | None = None) -> bool:
        """Wait until all started writes have finished; return False after the timeout."""
        with self._lock:
            calls = list(self._calls)
        return not wait(calls, timeout_s).not_done

    def stop(self) -> None:
        """Stop the threads; the next leader decides again about unsent writes."""
        with self._lock:
            self._stopping = True
        for pool in self._pools.values():
            pool.shutdown(wait=False, cancel_futures=True)
        self.settled(STOP_S)

    def _run_next(self, lane: Lane) -> None:
        """Run the oldest write of the namespace that has waited longest; each started write causes one call."""
        with self._lock:
            one = self._waiting[lane].next_key()
        try:
            self._run(one)
        finally:
            with self._lock:
                self._waiting[lane].done(one)

    def _run(self, one: _Write) -> None:
        try:
            if self._active():
                self._try(one.what, one.key, one.run)
        except Exception:
            log.exception("write failed; it is computed again", what=one.what, of=one.key)
        finally:
            name = f"{one.what}/{one.key}"
            with self._lock:
                self._under_way.discard(name)
                self._answered.add(name)
                again = name in self._again
                self._again.discard(name)
            if again:
                self._wake()

    def _try(self, what: str, key: str, write: Callable[[], object]) -> None:
        from_zero(WRITES, ("failed",), what)
        try:
            write()
        except APIError as error:
            WRITES.labels(what, "failed").inc()
            self._rest(f"{what}/{key}", refused=isinstance(error, _REFUSALS))
            write_log = log.debug if isinstance(error, NamespaceEnds) else log.warning
            write_log("write failed; it is computed again", what=what, of=key, error=str(error))
        else:
            with self._lock:
                self._refused.pop(f"{what}/{key}", None)
            WRITES.labels(what, "ok").inc()

    def _rest(self, name: str, *, refused: bool) -> None:
        """Delay the next attempt of a write that has failed."""
        with self._lock:
            now, pause_s = self._monotonic_s(), RETRY_S
            if refused:
                before, _ = self._refused.get(name, (0, now))
                self._refused[name] = (before + 1, now)
                pause_s = doubled_s(RETRY_S, before, REFUSED_MOST_S)
            self._not_before[name] = now + pause_s


class WriteContext(NamedTuple):
    """Common context of all writers; `wall_s` returns seconds since the epoch, for times in objects.

    Writers measure delays with `monotonic_s`, because the wall clock may be set back.
    """

    client: Client
    cluster: Live
    writes: Writes
    events: GangEvents
    wall_s: Callable[[], float]
    monotonic_s: Callable[[], float]


class Writer:
    """Base class of the writers that carry out a cycle's decisions."""

    def __init__(self, context: WriteContext) -> None:
        self._client, self._cluster, self._writes, self._events, self._wall_s, self._monotonic_s = context
