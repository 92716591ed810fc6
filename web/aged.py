"""A value that is long in the making, and so may be a little old: what is shown meanwhile is the one before."""

import threading
import time
from collections.abc import Callable, Hashable
from typing import Final, Generic, TypeVar

import structlog

T = TypeVar("T")
log = structlog.get_logger()
QUICK_S: Final = 0.15
"""What takes no longer is made while its reader waits."""
SHARE: Final = 10
"""What takes longer is made anew so seldom that it takes a tenth of the time."""


class Aged(Generic[T]):
    """One value, made anew where what it is made of has changed; thread safe."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._making = threading.Lock()
        self._value: T | None = None
        self._made_of: Hashable = None
        self._cost_s = 0.0
        self._made_at = 0.0

    def value(self, made_of: Hashable, make: Callable[[], T]) -> T:
        """Return the value; `made_of` is another one whenever the value may be, e.g. a number of changes."""
        with self._lock:
            value, known, cost_s, made_at = self._value, self._made_of, self._cost_s, self._made_at
        if value is not None and known == made_of:
            return value
        if value is None or cost_s <= QUICK_S:
            with self._making:
                return self._made(made_of, make)
        if self._clock() - made_at > SHARE * cost_s and self._making.acquire(blocking=False):
            threading.Thread(target=self._behind, args=(made_of, make), name="aged", daemon=True).start()
        return value

    def renewed(self, made_of: Hashable, make: Callable[[], T]) -> T:
        """Return the value as it is now: the reader waits for it, however long it takes."""
        with self._making:
            return self._made(made_of, make)

    def _behind(self, made_of: Hashable, make: Callable[[], T]) -> None:
        try:
            self._made(made_of, make)
        except Exception:
            log.exception("aged")
        finally:
            self._making.release()

    def _made(self, made_of: Hashable, make: Callable[[], T]) -> T:
        with self._lock:
            if self._value is not None and self._made_of == made_of:  # another thread has made it meanwhile
                return self._value
        began = self._clock()
        value = make()
        with self._lock:
            self._value, self._made_of = value, made_of
            self._made_at = self._clock()
            self._cost_s = self._made_at - began
        return value
