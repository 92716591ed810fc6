"""Compares the planner's state with its objects now and then, and says when they differ."""

import threading
from collections.abc import Callable

import structlog
from prometheus_client import Counter

from extender.cluster import Cluster
from extender.planner.state.comparison import differences, digest, objects_of, rebuilt

log = structlog.get_logger()
DIFFERENCES = Counter(
    "muster_state_differences_total", "Times that the planner's state was not what its objects say, twice in a row"
)
CHECKS = Counter("muster_state_checks_total", "Comparisons of the planner's state with its objects")

EVERY_S = 300.0
AGAIN_S = 10.0


class SelfCheck:
    """A thread that checks every five minutes.

    The objects may be a moment ahead of the state (their change is on its way to it), so that only a difference that
    is still there ten seconds later counts.
    """

    def __init__(self, cluster: Cluster, *, every_s: float = EVERY_S, again_s: float = AGAIN_S) -> None:
        self._cluster = cluster
        self._every_s = every_s
        self._again_s = again_s
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="selfcheck", daemon=True)

    def start(self) -> None:
        """Starts the thread; the first check comes after one period, when the caches are filled."""
        self._thread.start()

    def stop(self) -> None:
        """Ends the thread, if need be in the middle of a check, which only reads."""
        self._stopped.set()
        self._thread.join(timeout=10)

    def check(self, wait: Callable[[float], object]) -> list[str]:
        """What differs now and still does after `wait` was called with the time to wait in seconds."""
        CHECKS.inc()
        first = set(self._differences())
        if not first:
            return []
        wait(self._again_s)
        lasting = [difference for difference in self._differences() if difference in first]
        if lasting:
            DIFFERENCES.inc()
            log.error("the planner's state is not what its objects say", first=lasting[0], differences=len(lasting))
        return lasting

    def _differences(self) -> list[str]:
        """The loop waits only while what there is to compare is copied.

        Pods are read from the API server page by page: nobody keeps them whole.
        """
        kept, objects = self._cluster.ask(lambda state: (digest(state), objects_of(state)))
        return differences(kept, digest(rebuilt(objects, self._cluster.pods(), kept)))

    def _run(self) -> None:
        while not self._stopped.wait(self._every_s):
            if not self._cluster.synced:
                continue
            try:
                self.check(self._stopped.wait)
            except Exception:
                log.exception("the self-check failed; the next one tries again")
