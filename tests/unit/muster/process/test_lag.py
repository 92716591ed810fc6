"""An event loop that is blocked is seen from another thread, by a clock of its own."""

import asyncio
import threading

import pytest
from prometheus_client import REGISTRY

from muster.process.lag import BLOCKED_S, TICK_S, LoopLag


def counted() -> float:
    """The number of measured timers."""
    return REGISTRY.get_sample_value("muster_loop_lag_seconds_count") or 0.0


def test_a_loop_that_runs_is_not_blocked() -> None:
    """Its timers come, and each one is measured."""
    lag = LoopLag()

    async def turn() -> None:
        lag.follow()
        before = counted()
        async with asyncio.timeout(20):
            while counted() < before + 2:  # noqa: ASYNC110 - nothing else says it; there is a deadline
                await asyncio.sleep(TICK_S)

    assert lag.blocked() is None
    asyncio.run(turn())


def test_a_blocked_loop_is_seen_from_another_thread() -> None:
    """As long as no timer comes, however long that is; and no longer once one comes."""
    now_s, said = [100.0], []
    before_s = REGISTRY.get_sample_value("muster_loop_lag_seconds_sum") or 0.0
    lag = LoopLag(monotonic_s=lambda: now_s[0])

    async def block() -> None:
        lag.follow()
        for late_s in (BLOCKED_S - 1, BLOCKED_S + 2):
            now_s[0] = 100.0 + TICK_S + late_s
            asking = threading.Thread(target=lambda: said.append(lag.blocked()))
            asking.start()
            asking.join()  # on purpose on the loop: it is blocked meanwhile
        async with asyncio.timeout(20):
            while lag.blocked():  # noqa: ASYNC110 - nothing else says it; there is a deadline
                await asyncio.sleep(TICK_S)

    asyncio.run(block())
    assert said == [None, "the event loop has been blocked for 7 s"]
    assert (REGISTRY.get_sample_value("muster_loop_lag_seconds_sum") or 0.0) - before_s == pytest.approx(7.0)
