"""Worker threads that run a pass for each key in a queue, and repeat failed passes later.

The queue alternates between namespaces, so that the work of one tenant delays other tenants by at most one pass. A long
pass checks `queue.others_wait` in between, and leaves the rest of its work for a later pass.

If a webhook does not answer, only one of the affected keys is retried; all other keys wait until this key succeeds. The
wait is logged once. During installation, for example, Muster's own webhook waits for the certificate that the
controller creates.
"""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

import structlog
from prometheus_client import Counter, Histogram

from muster.kube.errors import APIError, Conflict, NamespaceEnds, silent_webhook
from muster.kube.workqueue import WorkQueue
from muster.process.counters import from_zero

log = structlog.get_logger(__name__)
RECONCILES = Counter(
    "muster_controller_reconciles_total", "Passes over an object, by controller and result.", ["controller", "result"]
)
RECONCILE_SECONDS = Histogram(
    "muster_controller_reconcile_seconds",
    "Duration of one pass over an object in seconds, by controller.",
    ["controller"],
    buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10),
)
_MAX_DELAY_S = 30.0
START_S: Final = 120.0
"""Time in seconds after which the wait for a webhook is logged as a warning. The time counts from the start of the
process or of the wait."""
_SHARE: Final = 0.25
_SHORTEST_S: Final = 0.5
_LONGEST_S: Final = 30.0


@dataclass(slots=True)
class _Wait:
    """The keys whose passes failed because one webhook did not answer."""

    since_s: float
    first: str
    """The only key that is retried."""
    warned: bool
    keys: dict[str, None] = field(default_factory=dict)
    """All waiting keys, in the order of arrival."""


class Unanswered:
    """Keys of one worker that wait for a webhook that did not respond in their last passes. Thread-safe."""

    def __init__(self, controller: str, monotonic_s: Callable[[], float] = time.monotonic) -> None:
        self._controller = controller
        self._monotonic_s = monotonic_s
        self._started_s = monotonic_s()
        self._lock = threading.Lock()
        self._waits: dict[str, _Wait] = {}

    def failed(self, key: str, error: Exception) -> float | None:
        """Record a failed pass; return the seconds until its retry, or None if no webhook caused the failure.

        For any key except the retried key, return 0: `passed` returns these keys once the retried key succeeds.
        """
        webhook = silent_webhook(error) if isinstance(error, APIError) else ""
        if not webhook:
            return None
        with self._lock:
            now_s = self._monotonic_s()
            wait = self._waits.get(webhook)
            if wait is None:
                wait = self._waits[webhook] = _Wait(now_s, key, warned=now_s - self._started_s > START_S)
                self._report(webhook, wait, error)
            elif not wait.warned and now_s - wait.since_s > START_S:
                wait.warned = True
                self._report(webhook, wait, error)
            wait.keys[key] = None
            if key != wait.first:
                return 0.0
            return min(max((now_s - wait.since_s) * _SHARE, _SHORTEST_S), _LONGEST_S)

    def passed(self, key: str) -> list[str]:
        """Record a pass for which all webhooks answered; return the waiting keys, which can be retried now."""
        if not self._waits:
            return []
        freed: list[str] = []
        with self._lock:
            for webhook, wait in list(self._waits.items()):
                wait.keys.pop(key, None)
                if key == wait.first:
                    del self._waits[webhook]
                    freed += wait.keys
                    after_s = round(self._monotonic_s() - wait.since_s, 1)
                    log.info("the webhook answers", controller=self._controller, webhook=webhook, after_s=after_s)
        return freed

    def _report(self, webhook: str, wait: _Wait, error: Exception) -> None:
        tell = log.warning if wait.warned else log.info
        tell("waiting for a webhook to answer", controller=self._controller, webhook=webhook, why=str(error))


class Retry(Exception):  # noqa: N818 - no defect: something outside has to change first
    """Error that ends an incomplete pass; the pass is retried after growing delays. The message is the reason."""


class Worker:
    """A work queue with threads that call `process` with each key; calls with the same key never overlap.

    If a webhook does not answer, only one of the affected keys is retried (`Unanswered`). `may_act` is called before
    each pass, because the process may have lost its lease while it was suspended.
    """

    def __init__(
        self,
        name: str,
        process: Callable[[str], None],
        *,
        threads: int = 1,
        monotonic_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self.name = name
        from_zero(RECONCILES, ("done", "retry", "defect"), name)
        self.queue: WorkQueue[str] = WorkQueue(monotonic_s, max_delay_s=_MAX_DELAY_S, name=name, group_of=_namespace)
        self._process = process
        self._unanswered = Unanswered(name, monotonic_s)
        self.may_act: Callable[[], bool] = lambda: True
        names = [f"{name}-{number}" if threads > 1 else name for number in range(threads)]
        self._threads = [threading.Thread(target=self._run, name=each, daemon=True) for each in names]

    def start(self) -> None:
        """Start the threads, which also process keys that were added before."""
        for thread in self._threads:
            thread.start()

    def stop(self, timeout_s: float = 5.0) -> None:
        """Wait until the running passes have ended, and stop the threads."""
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

    def once(self, key: str) -> str:
        """Run one pass over a key of the queue; return its result. An exception in a pass does not end the thread."""
        waits_s: float | None = None
        try:
            if not self.may_act():
                raise Retry("this process is no longer the leader")  # noqa: TRY301 - counted as any other one
            self._pass(key)
        except (Retry, APIError) as error:
            waits_s = self._unanswered.failed(key, error)
            if waits_s is None:
                # A conflict only means that the cache was stale, so it is not logged.
                if not isinstance(error, Conflict):
                    log.warning("pass failed and is retried", controller=self.name, key=key, why=str(error))
                self.queue.add_rate_limited(key)
            elif waits_s:
                self.queue.add_after(key, waits_s)
            return "retry"
        except Exception:
            log.exception("pass failed with an unexpected error and is retried", controller=self.name, key=key)
            self.queue.add_rate_limited(key)
            return "defect"
        else:
            self.queue.forget(key)
            return "done"
        finally:
            self.queue.done(key)
            if waits_s is None:
                for each in self._unanswered.passed(key):
                    self.queue.add(each)

    def _pass(self, key: str) -> None:
        try:
            self._process(key)
        except NamespaceEnds as error:  # the namespace is being deleted: not an error
            log.debug("pass left off", controller=self.name, key=key, why=str(error))


def _namespace(key: str) -> str:
    return key.partition("/")[0]
