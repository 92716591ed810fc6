"""A few threads for the calls of many Jobs: a batch that is nearly done is finished first, and no batch starves.

A gang starts when its last pod is there: made one after the other, the first of three starts after a third of the time,
and the last no later than in turns. So three calls of four are for the batch with the fewest left, the fourth for the
one that has waited longest.
"""

import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

T = TypeVar("T")
R = TypeVar("R")

_Batch = deque[Callable[[], None]]
_LONGEST_WAITING_EVERY = 4


class FairPool:
    """`threads` threads that work at several batches at once."""

    def __init__(self, threads: int, name: str) -> None:
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix=name)
        self._lock = threading.Lock()
        self._turns: deque[_Batch] = deque()
        """Batches with something left; the one that has waited longest for a call comes first."""
        self._calls = 0
        self._waiting: set[Future[Any]] = set()

    def each(self, items: Sequence[T], act: Callable[[T], R]) -> list[R]:
        """The results of `act` for the items, in order; waits for all. Raises CancelledError if the pool is closed."""
        futures: list[Future[R]] = [Future() for _ in items]
        batch: _Batch = deque(_call(future, act, item) for future, item in zip(futures, items, strict=True))
        if not batch:
            return []
        with self._lock:
            self._turns.append(batch)
            self._waiting.update(futures)
        try:
            self._begin(futures)
            return [future.result() for future in futures]
        finally:
            with self._lock:
                self._waiting.difference_update(futures)

    def _begin(self, futures: Sequence[Future[Any]]) -> None:
        try:
            for _ in futures:
                self._pool.submit(self._next)
        except RuntimeError:  # the pool has been closed meanwhile
            for future in futures:
                future.cancel()

    def close(self) -> None:
        """Ends the threads after the calls under way; those that have not begun are cancelled."""
        self._pool.shutdown(wait=False, cancel_futures=True)
        with self._lock:
            for future in self._waiting:
                future.cancel()

    def _next(self) -> None:
        """One call of the batch whose turn it is, which then stands behind all the others."""
        with self._lock:
            self._calls += 1
            longest = self._calls % _LONGEST_WAITING_EVERY == 0
            batch = self._turns[0] if longest else min(self._turns, key=len)
            self._turns.remove(batch)
            call = batch.popleft()
            if batch:
                self._turns.append(batch)
        call()


def _call(future: Future[R], act: Callable[[T], R], item: T) -> Callable[[], None]:
    def call() -> None:
        if not future.set_running_or_notify_cancel():
            return
        try:
            future.set_result(act(item))
        except BaseException as error:  # noqa: BLE001 - raised where the result is awaited
            future.set_exception(error)

    return call
