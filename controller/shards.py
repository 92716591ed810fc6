"""Work on Jobs, shared out so that a Job always has the same one worker."""

import time
from collections.abc import Callable

from controller.worker import Worker

_FNV32_OFFSET = 2166136261
_FNV32_PRIME = 16777619


def fnv32(text: str) -> int:
    """The 32-bit FNV-1 hash (not FNV-1a) of the text in UTF-8."""
    value = _FNV32_OFFSET
    for byte in text.encode():
        value = (value * _FNV32_PRIME) & 0xFFFFFFFF ^ byte
    return value


class Shards:
    """`count` workers; a key always goes to the one that its hash says."""

    def __init__(
        self, count: int, process: Callable[[str], None], monotonic_s: Callable[[], float] = time.monotonic
    ) -> None:
        self.workers = [Worker("job", process, queue=f"job-{index}", monotonic_s=monotonic_s) for index in range(count)]

    def add(self, key: str) -> None:
        """Wants a pass over the key now."""
        self._of(key).queue.add(key)

    def add_after(self, key: str, delay_s: float) -> None:
        """Wants a pass over the key in `delay_s`."""
        self._of(key).queue.add_after(key, delay_s)

    def _of(self, key: str) -> Worker:
        return self.workers[fnv32(key) % len(self.workers)]
