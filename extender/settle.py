"""Takes what the caches hold from the start out of the garbage collector's rounds.

A full collection looks at every object there is, and everything waits meanwhile, bind calls too: 0.16 s with 20,000
pods. What the first lists have brought stays for long, and goes by its reference counts when it goes.
"""

import asyncio
import gc
from collections.abc import Callable

import structlog

from muster.process import memory

log = structlog.get_logger()


async def settle(filled: Callable[[], bool], *, look_s: float = 0.2) -> None:
    """Waits until the caches are filled, and freezes what there is then."""
    while not filled():  # noqa: ASYNC110 - a list that has ended is no event
        await asyncio.sleep(look_s)
    gc.collect()
    gc.freeze()
    memory.give_back()
    log.info("caches are filled", objects=gc.get_freeze_count())
