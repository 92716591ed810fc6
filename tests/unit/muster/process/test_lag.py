"""An event loop that stands is seen from another thread, by a clock of its own."""

import asyncio
import threading

from prometheus_client import REGISTRY

from muster.process.lag import STANDS_S, TICK_S, LoopLag


def counted() -> float:
    """The number of measured timers."""
    return REGISTRY.get_sample_value("muster_loop_lag_seconds_count") or 0.0


def test_a_loop_that_turns_does_not_stand() -> None:
    """Its timers come, and each one is measured."""
    lag = LoopLag()

    async def turn() -> None:
        lag.follow()
        before = counted()
        async with asyncio.timeout(20):
            while counted() < before + 2:  # noqa: ASYNC110 - nothing else says it; there is a deadline
                await asyncio.sleep(TICK_S)

    assert lag.standing() is None
    asyncio.run(turn())


def test_a_loop_that_stands_is_told_from_another_thread() -> None:
    """As long as no timer comes, however long that is; and no longer once one comes."""
    now_s, said = [100.0], []
    lag = LoopLag(monotonic_s=lambda: now_s[0])

    async def stand() -> None:
        lag.follow()
        for late_s in (STANDS_S - 1, STANDS_S + 2):
            now_s[0] = 100.0 + TICK_S + late_s
            asking = threading.Thread(target=lambda: said.append(lag.standing()))
            asking.start()
            asking.join()  # on purpose on the loop: it stands meanwhile
        async with asyncio.timeout(20):
            while lag.standing():  # noqa: ASYNC110 - nothing else says it; there is a deadline
                await asyncio.sleep(TICK_S)

    asyncio.run(stand())
    assert said == [None, "the event loop has stood for 7 s"]
