"""Threads that work on keys from a queue, and try again later what fails.

Namespaces take turns: the work that one tenant makes delays the others by one piece of it at most. A long piece of work
asks `others_wait` in between, and leaves the rest for its next turn.
"""

import threading
import time
from collections.abc import Callable

import structlog

from controller.metrics import RECONCILE_SECONDS, RECONCILES
from muster.kube.errors import APIError, Conflict
from muster.kube.workqueue import WorkQueue

log = structlog.get_logger(__name__)

_MAX_DELAY_S = 30.0


class Retry(Exception):  # noqa: N818 - not an error of ours: something outside has to change first
    """The pass did not get everything done; the message says why. It is tried again, later each time."""


class Worker:
    """One work queue with its threads; `process` is called with one key after the other, never twice at once with one.

    `may_act` is asked before each pass: a process that was frozen may have lost its lease meanwhile.
    """

    def __init__(
        self,
        name: str,
        process: Callable[[str], None],
        *,
        queue: str = "",
        threads: int = 1,
        monotonic_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self.name = name
        self.queue: WorkQueue[str] = WorkQueue(monotonic_s, max_delay_s=_MAX_DELAY_S, name=queue, group_of=_namespace)
        self._process = process
        self.may_act: Callable[[], bool] = lambda: True
        names = [f"{queue or name}-{number}" if threads > 1 else queue or name for number in range(threads)]
        self._threads = [threading.Thread(target=self._run, name=each, daemon=True) for each in names]

    def start(self) -> None:
        """Starts the threads; what was added before is worked on now."""
        for thread in self._threads:
            thread.start()

    def stop(self, timeout_s: float = 5.0) -> None:
        """Lets the keys in work finish, and ends the threads."""
        self.queue.shut_down()
        for thread in self._threads:
            if thread.is_alive():
                thread.join(timeout_s)

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


def _namespace(key: str) -> str:
    return key.partition("/")[0]
