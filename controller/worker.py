"""A thread that works on keys from a queue, and tries again later what fails."""

import threading
import time
from collections.abc import Callable

import structlog

from controller.metrics import RECONCILE_SECONDS, RECONCILES
from muster.kube.errors import APIError, Conflict
from muster.kube.workqueue import WorkQueue

log = structlog.get_logger(__name__)

_MAX_DELAY_S = 30.0
_FNV32_OFFSET = 2166136261
_FNV32_PRIME = 16777619


class Retry(Exception):  # noqa: N818 - not an error of ours: something outside has to change first
    """The pass did not get everything done; the message says why. It is tried again, later each time."""


class Worker:
    """One work queue with one thread; `process` is called with one key after the other.

    `may_act` is asked before each pass: a process that was frozen may have lost its lease meanwhile.
    """

    def __init__(
        self,
        name: str,
        process: Callable[[str], None],
        *,
        queue: str = "",
        monotonic_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self.name = name
        self.queue: WorkQueue[str] = WorkQueue(monotonic_s, max_delay_s=_MAX_DELAY_S, name=queue)
        self._process = process
        self.may_act: Callable[[], bool] = lambda: True
        self._thread = threading.Thread(target=self._run, name=queue or name, daemon=True)

    def start(self) -> None:
        """Starts the thread; what was added before is worked on now."""
        self._thread.start()

    def stop(self, timeout_s: float = 5.0) -> None:
        """Lets the key in work finish, and ends the thread."""
        self.queue.shut_down()
        if self._thread.is_alive():
            self._thread.join(timeout_s)

    def _run(self) -> None:
        while (key := self.queue.get()) is not None:
            started = time.perf_counter()
            result = self.once(key)
            RECONCILES.labels(self.name, result).inc()
            RECONCILE_SECONDS.labels(self.name).observe(time.perf_counter() - started)

    def _pass(self, key: str) -> None:
        if not self.may_act():
            raise Retry("this process does not lead any more")
        self._process(key)

    def once(self, key: str) -> str:
        """One pass over a key that the queue gave; says how it ended. Whatever goes wrong must not end the thread."""
        try:
            self._pass(key)
        except (Retry, APIError) as error:
            # A conflict only means that the cache was behind; it is not worth a line.
            if not isinstance(error, Conflict):
                log.warning("pass failed, will be tried again", controller=self.name, key=key, why=str(error))
            self.queue.add_rate_limited(key)
            return "retry"
        except Exception:
            log.exception("pass failed by a defect, will be tried again", controller=self.name, key=key)
            self.queue.add_rate_limited(key)
            return "defect"
        else:
            self.queue.forget(key)
            return "done"
        finally:
            self.queue.done(key)


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
