"""Takes what the caches hold from the start out of the garbage collector's rounds.

A full collection looks at every object there is, and everything waits meanwhile, bind calls too: 0.16 s with 20,000
pods. What the first lists have brought stays for long, and goes by its reference counts when it goes.
"""

import gc
import threading
from collections.abc import Callable

import structlog

from muster.process import memory

log = structlog.get_logger()

LOOK_S = 0.2


class Settle:
    """A thread that waits until `filled` holds, and then ends."""

    def __init__(self, filled: Callable[[], bool], *, look_s: float = LOOK_S) -> None:
        self._filled = filled
        self._look_s = look_s
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="settle", daemon=True)

    def start(self) -> None:
        """Starts the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Ends it, whether or not the caches are filled."""
        self._stopped.set()
        self._thread.join(timeout=10)

    def _run(self) -> None:
        while not self._filled():
            if self._stopped.wait(self._look_s):
                return
        gc.collect()
        gc.freeze()
        memory.give_back()
        log.info("caches are filled", objects=gc.get_freeze_count())
