"""A work queue of keys with client-go's semantics.

A key is queued at most once, however often it is added. A key in progress is not returned again; if the key is added in
the meantime, it is queued again after `done`. Keys can be added after a fixed delay, or after a delay that doubles with
each failure. A worker runs this loop::

    while (key := queue.get()) is not None:
        try:
            work(key)
            queue.forget(key)
        except Exception:
            queue.add_rate_limited(key)
        finally:
            queue.done(key)

A key has only one worker at a time, so workers need no lock for it. Unlike client-go's queue, this queue does not
process keys in order of arrival. The queue alternates between groups of keys (`GroupQueue`), so that many keys of one
tenant do not delay the few keys of another. Without the function `group_of`, each key is a group of its own.
"""

import heapq
import threading
import time
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Hashable
from itertools import count
from typing import Generic, TypeVar

from prometheus_client import Gauge

from muster.resources.delays import doubled_s

K = TypeVar("K", bound=Hashable)

QUEUE_DEPTH = Gauge("muster_kube_queue_depth", "Number of keys in a work queue, by name of the queue.", ["queue"])


class WorkQueue(Generic[K]):
    """Work queue of keys. The queue is thread-safe, and has no thread of its own.

    `name` is the label of the queue's metric.
    """

    def __init__(
        self,
        monotonic_s: Callable[[], float] = time.monotonic,
        base_delay_s: float = 0.005,
        max_delay_s: float = 60,
        *,
        name: str = "",
        group_of: Callable[[K], Hashable] = lambda key: key,
    ) -> None:
        self._monotonic_s = monotonic_s
        self._base_delay_s = base_delay_s
        self._max_delay_s = max_delay_s
        self._changed = threading.Condition()
        self._ready: GroupQueue[K] = GroupQueue(group_of)
        self._dirty: set[K] = set()  # keys that need work: in _ready, or in _processing and added again
        self._processing: set[K] = set()
        self._due: dict[K, float] = {}  # time at which a delayed key is added
        self._heap: list[tuple[float, int, K]] = []  # may contain outdated entries, which _due does not confirm
        self._order = count()
        self._failures: dict[K, int] = {}
        self._down = False
        if name:
            QUEUE_DEPTH.labels(name).set_function(self.__len__)

    def __len__(self) -> int:
        """Return the number of keys that are ready for `get`, excluding delayed keys."""
        return len(self._ready)

    def add(self, key: K, *, first: bool = False) -> None:
        """Add a key, unless the key is already queued; with `first`, before the other keys of its group."""
        with self._changed:
            self._add(key, first=first)

    def add_after(self, key: K, delay_s: float) -> None:
        """Add a key after `delay_s`; a key that is added several times is queued at the earliest time."""
        with self._changed:
            if self._down:
                return
            if delay_s <= 0:
                self._add(key)
                return
            due = self._monotonic_s() + delay_s
            if due < self._due.get(key, float("inf")):
                self._due[key] = due
                heapq.heappush(self._heap, (due, next(self._order), key))
                self._changed.notify()

    def add_rate_limited(self, key: K) -> None:
        """Add a key again after a failure, with growing delays until `forget`."""
        with self._changed:
            failures = self._failures.get(key, 0)
            self._failures[key] = failures + 1
        self.add_after(key, doubled_s(self._base_delay_s, failures, self._max_delay_s))

    def forget(self, key: K) -> None:
        """Reset the failure count of a key."""
        with self._changed:
            self._failures.pop(key, None)

    def failures(self, key: K) -> int:
        """Return the number of calls of `add_rate_limited` since the last `forget`."""
        return self._failures.get(key, 0)

    def get(self, timeout_s: float | None = None) -> K | None:
        """Return the next key, and mark the key as in progress until `done`; None after `timeout_s` or a shutdown."""
        deadline = None if timeout_s is None else self._monotonic_s() + timeout_s
        with self._changed:
            while not self._down:
                next_due = self._promote()
                if self._ready:
                    key = self._ready.next_key()
                    self._dirty.discard(key)
                    self._processing.add(key)
                    return key
                now = self._monotonic_s()
                if deadline is not None and now >= deadline:
                    return None
                ends = [moment - now for moment in (deadline, next_due) if moment is not None]
                self._changed.wait(max(0.0, min(ends)) if ends else None)
            return None

    def done(self, key: K) -> None:
        """Mark the work on a key as done; queue the key again if it was added in the meantime."""
        with self._changed:
            if key in self._processing:
                self._processing.discard(key)
                self._ready.done(key)
            if key in self._dirty:
                self._ready.add(key)
                self._changed.notify()

    def others_wait(self, key: K) -> bool:
        """Return True if keys of a group without keys in progress wait, so that a long-running worker can yield."""
        with self._changed:
            self._promote()
            return self._ready.others_wait(key)

    def shut_down(self) -> None:
        """Stop accepting and returning keys: `get` returns None at once. Keys in progress can finish."""
        with self._changed:
            self._down = True
            self._changed.notify_all()

    def _add(self, key: K, *, first: bool = False) -> None:
        if self._down or key in self._dirty:
            return
        self._dirty.add(key)
        if key not in self._processing:
            self._ready.add(key, first=first)
            self._changed.notify()

    def _promote(self) -> float | None:
        """Queue all delayed keys that are due, and return the time when the next one is due.

        A key that is added again with an earlier time gets a second entry, because entries cannot be removed from
        within a heap. `_due` contains the valid time of each key; heap entries with another time are skipped.
        """
        now = self._monotonic_s()
        while self._heap:
            due, _, key = self._heap[0]
            if self._due.get(key) == due:
                if due > now:
                    return due
                del self._due[key]
                self._add(key)
            heapq.heappop(self._heap)
        return None


class GroupQueue(Generic[K]):
    """Queued keys, taken from each group (`group_of`) alternately. Not thread-safe.

    Groups without keys in progress come before all other groups. Among equal groups, the one that has waited longest
    comes first. The cost of an operation on the queue does not depend on the number of keys and groups.
    """

    def __init__(self, group_of: Callable[[K], Hashable]) -> None:
        self._group_of = group_of
        self._idle: OrderedDict[Hashable, tuple[deque[K], deque[K]]] = OrderedDict()
        """Maps a group without a key in progress to its queued keys in order of arrival, first the keys added with
        `first`."""
        self._busy: OrderedDict[Hashable, tuple[deque[K], deque[K]]] = OrderedDict()
        """Maps a group with a key in progress to its queued keys, in the same order as `_idle`."""
        self._in_work: Counter[Hashable] = Counter()
        self._length = 0

    def __len__(self) -> int:
        """Return the number of queued keys."""
        return self._length

    def add(self, key: K, *, first: bool = False) -> None:
        """Add a key at the end of its group; with `first`, before all keys that were added without `first`."""
        group = self._group_of(key)
        groups = self._busy if group in self._in_work else self._idle
        groups.setdefault(group, (deque(), deque()))[0 if first else 1].append(key)
        self._length += 1

    def next_key(self) -> K:
        """Return the next key, and mark the key as in progress. Raises KeyError if no key is queued."""
        group, keys = (self._idle or self._busy).popitem(last=False)
        key = (keys[0] or keys[1]).popleft()
        self._length -= 1
        self._in_work[group] += 1
        if any(keys):
            self._busy[group] = keys
        return key

    def done(self, key: K) -> None:
        """Mark the key as no longer in progress."""
        group = self._group_of(key)
        self._in_work[group] -= 1
        if self._in_work[group] > 0:
            return
        del self._in_work[group]
        if keys := self._busy.pop(group, None):
            self._idle[group] = keys

    def others_wait(self, key: K) -> bool:
        """Return True if keys of an idle group wait."""
        return len(self._idle) > (self._group_of(key) in self._idle)
