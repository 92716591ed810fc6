"""A small thread pool for the calls of many Jobs; it prefers batches with few remaining calls, and no batch starves.

A gang starts when its last pod exists. If the pods of three gangs are created gang by gang, the first gang starts after
a third of the total time. The last gang starts at the same time as with alternating calls. Therefore, three out of four
calls belong to the batch with the fewest remaining calls. The fourth belongs to the batch that has waited longest.
"""

import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any, TypeVar

T = TypeVar("T")
R = TypeVar("R")

_Batch = deque[tuple[Future[Any], Callable[[], Any]]]
_LONGEST_WAITING_EVERY = 4


class FairPool:
    """A pool of `threads` threads that work on several batches at once."""

    def __init__(self, threads: int, name: str) -> None:
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix=name)
        self._lock = threading.Lock()
        self._waiting: deque[_Batch] = deque()
        """Unfinished batches, sorted by the time of their last call, earliest first."""
        self._calls = 0

    def each(self, items: Sequence[T], act: Callable[[T], R]) -> list[R]:
        """Call `act` for each item, in the pool's threads; return the results in the order of the items.

        Raise CancelledError if the pool is closed.
        """
        futures: list[Future[R]] = [Future() for _ in items]
        if futures:
            with self._lock:
                self._waiting.append(deque(zip(futures, (partial(act, item) for item in items), strict=True)))
        try:
            for _ in futures:
                self._pool.submit(self._next)
        except RuntimeError:  # the pool has been closed meanwhile
            self._cancel()
        return [future.result() for future in futures]

    def close(self) -> None:
        """Stop each thread after its current call; cancel all pending calls."""
        self._pool.shutdown(wait=False)
        self._cancel()

    def _cancel(self) -> None:
        with self._lock:
            for batch in self._waiting:
                for future, _ in batch:
                    future.cancel()

    def _next(self) -> None:
        """Make one call of a batch, and move the batch to the end of the queue."""
        with self._lock:
            self._calls += 1
            longest = self._calls % _LONGEST_WAITING_EVERY == 0
            batch = self._waiting[0] if longest else min(self._waiting, key=len)
            self._waiting.remove(batch)
            future, call = batch.popleft()
            if batch:
                self._waiting.append(batch)
        if future.set_running_or_notify_cancel():
            try:
                future.set_result(call())
            except BaseException as error:  # noqa: BLE001 - raised where the result is awaited
                future.set_exception(error)
