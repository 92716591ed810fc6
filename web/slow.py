"""Cache of values that are slow to compute, and limits on requests and threads that wait for slow work."""

import threading
import time
from collections import Counter
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from http import HTTPStatus
from typing import Final, Generic, TypeVar
from weakref import WeakValueDictionary

import structlog
from anyio import CapacityLimiter
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException

T = TypeVar("T")
log = structlog.get_logger()
QUICK_S: Final = 0.15
"""Maximum duration, in seconds, of a computation for which a request waits."""
SHARE: Final = 10
"""Minimum interval between two computations of a slow value, as a multiple of the computation's time. So the
computations use at most 10 % of a core."""
WAITING: Final = 4
"""Maximum number of requests that wait for slow work; each waiting request occupies one of the server's forty threads.
"""
EACH: Final = 3
"""Maximum number of one account's slow requests, running and waiting."""
PATIENCE_S: Final = 20.0
"""Maximum time in seconds that a slow request waits before it is rejected."""
THREADS_EACH: Final = 8
"""Maximum number of threads for one account; the server has forty threads."""


class StaleWhileRevalidate(Generic[T]):
    """Thread-safe cache of one value; while a slow value is computed again, callers get the previous value."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._making = threading.Lock()
        self._value: T | None = None
        self._made_of: Hashable = None
        self._cost_s = 0.0
        self._made_at = 0.0

    def value(self, made_of: Hashable, make: Callable[[], T]) -> T:
        """Return the value that `make` computes; a value that is slow to compute may be outdated.

        `made_of`, such as a number of changes, identifies the input of the computation; each different input must have
        a different `made_of`.
        """
        with self._lock:
            value, known, cost_s, made_at = self._value, self._made_of, self._cost_s, self._made_at
        if value is not None and known == made_of:
            return value
        if value is None or cost_s <= QUICK_S:
            with self._making:
                return self._made(made_of, make)
        if self._clock() - made_at > SHARE * cost_s and self._making.acquire(blocking=False):
            threading.Thread(target=self._behind, args=(made_of, make), name="revalidate", daemon=True).start()
        return value

    def renewed(self, made_of: Hashable, make: Callable[[], T]) -> T:
        """Return the current value; wait until it is computed, even if the computation is slow."""
        with self._making:
            return self._made(made_of, make)

    def _behind(self, made_of: Hashable, make: Callable[[], T]) -> None:
        try:
            self._made(made_of, make)
        except Exception:
            log.exception("a slow value could not be computed; the previous value stays")
        finally:
            self._making.release()

    def _made(self, made_of: Hashable, make: Callable[[], T]) -> T:
        with self._lock:
            if self._value is not None and self._made_of == made_of:  # another thread has computed it in the meantime
                return self._value
        began = self._clock()
        value = make()
        with self._lock:
            self._value, self._made_of = value, made_of
            self._made_at = self._clock()
            self._cost_s = self._made_at - began
        return value


class SlowWork:
    """Lock that lets one slow request run at a time.

    `what` describes the work in the message to rejected requests.

    An account may have at most `each` running and waiting requests, so that requests of other accounts are not crowded
    out.
    """

    def __init__(self, what: str, waiting: int = WAITING, patience_s: float = PATIENCE_S, each: int = EACH) -> None:
        self._what = what
        self._most, self._each = waiting + 1, each
        self._patience_s = patience_s
        self._held: Counter[str] = Counter()
        self._lock = threading.Lock()
        self._turn = threading.Lock()

    @contextmanager
    def taken(self, account: str) -> Iterator[None]:
        """Wait for the lock, and hold it within the `with` block.

        Raises HTTPException 429 if too many requests wait, or if this request waits too long.
        """
        with self._lock:
            if self._held[account] >= self._each:
                raise self._later(f"{self._each} of your requests {self._what}")
            if self._held.total() >= self._most:
                raise self._later()
            self._held[account] += 1
        try:
            if not self._turn.acquire(timeout=self._patience_s):
                raise self._later()
            try:
                yield
            finally:
                self._turn.release()
        finally:
            with self._lock:
                self._held -= Counter([account])

    def _later(self, who: str = "") -> HTTPException:
        why = f"{who or f'others {self._what}'} at this moment: try again in a few seconds"
        return HTTPException(HTTPStatus.TOO_MANY_REQUESTS, why, {"retry-after": "10"})


class Threads:
    """The server's threads; one account gets a limited number, and its other requests wait without a thread."""

    def __init__(self, each: int = THREADS_EACH) -> None:
        self._each = each
        self._of: WeakValueDictionary[str, CapacityLimiter] = WeakValueDictionary()

    async def run(self, account: str, answer: Callable[[], T]) -> T:
        """Run a function that may block in a thread, and return its result. Call this coroutine on the event loop."""
        own = self._of.get(account)
        if own is None:
            own = self._of[account] = CapacityLimiter(self._each)
        async with own:
            return await run_in_threadpool(answer)
