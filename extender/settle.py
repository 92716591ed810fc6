"""Takes what the caches hold from the start out of the garbage collector's rounds.

A full collection looks at every object there is, and everything waits meanwhile, bind calls too: 0.16 s with 20,000
pods. What the first lists have brought stays for long, and goes by its reference counts when it goes. While they are
read nothing is collected: of what they bring nothing is garbage, and with 50,000 pods it was a seventh of the time.
"""

import gc
import threading
from collections.abc import Callable, Iterable
from itertools import count

import structlog

from muster.process import memory

log = structlog.get_logger()

LOOK_S = 0.2
FILLING_S = 60.0
"""After so long collections begin, filled or not: tries that fail leave garbage behind."""


class Settle:
    """A thread that waits until `filled` holds, and then ends."""

    def __init__(self, filled: Callable[[], bool], *, look_s: float = LOOK_S, filling_s: float = FILLING_S) -> None:
        self._filled = filled
        self._look_s = look_s
        self._looks = round(filling_s / look_s)
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
        gc.disable()
        try:
            filled = self._wait(range(self._looks))
            if filled:
                _freeze()  # before the first allocation afterwards has everything looked at once more
        finally:
            gc.enable()
        if not filled and self._wait(count()):
            _freeze()

    def _wait(self, looks: Iterable[int]) -> bool:
        """Looks so often; True once the caches are filled, False if the process ends or they are not."""
        for _ in looks:
            if self._filled():
                return True
            if self._stopped.wait(self._look_s):
                return False
        return False


def _freeze() -> None:
    gc.collect()
    gc.freeze()
    memory.give_back()
    log.info("caches are filled", objects=gc.get_freeze_count())
