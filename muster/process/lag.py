"""Delay of an event loop, as a metric, and as a health check that detects a blocked loop from another thread."""

import asyncio
import time
from collections.abc import Callable
from typing import Final

from prometheus_client import Histogram

TICK_S: Final = 0.1
"""Interval between two timers of the loop."""
BLOCKED_S: Final = 5.0
"""Delay from which an event loop counts as blocked; the loop's process is then neither ready nor alive."""
LAG = Histogram(
    "muster_loop_lag_seconds",
    "Seconds by which the event loop was late for a timer",
    buckets=(0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5, 1.0, 5.0),
)


class LoopLag:
    """Meter of one event loop's delay, beginning with the call of `follow`; any thread may call `blocked`."""

    def __init__(self, monotonic_s: Callable[[], float] = time.monotonic) -> None:
        self._monotonic_s = monotonic_s
        self._due_s: float | None = None

    def follow(self) -> None:
        """Start the measurement; the caller must run on the loop."""
        self._due_s = self._monotonic_s() + TICK_S
        asyncio.get_running_loop().call_later(TICK_S, self._tick)

    def blocked(self) -> str | None:
        """Return a sentence if the loop has not reached its timer for five seconds; None otherwise."""
        late_s = 0.0 if self._due_s is None else self._monotonic_s() - self._due_s
        return f"the event loop has been blocked for {late_s:.0f} s" if late_s > BLOCKED_S else None

    def _tick(self) -> None:
        if self._due_s is not None:
            LAG.observe(max(0.0, self._monotonic_s() - self._due_s))
        self.follow()
