"""Keys whose passes failed as a webhook did not answer: one of them is tried for all, and all when it gets through.

While Muster is installed, its own webhook is not there yet: it waits for its certificate, which the controller makes.
All that the controller wants to write then has to wait: that is said once, and soon after it answers work goes on.
"""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

import structlog

from muster.kube.errors import APIError, silent_webhook

log = structlog.get_logger(__name__)

START_S: Final = 120.0
"""How long after the start of a process, and from then on, a webhook may be silent before that is worth a warning."""
_SHARE: Final = 0.25
_SHORTEST_S: Final = 0.5
_LONGEST_S: Final = 30.0


@dataclass(slots=True)
class _Wait:
    """For one webhook."""

    since_s: float
    first: str
    """The key that is tried for all."""
    warned: bool
    keys: dict[str, None] = field(default_factory=dict)
    """In the order in which they came."""


class Unanswered:
    """The keys of one worker that wait for webhooks. Thread safe."""

    def __init__(self, controller: str, monotonic_s: Callable[[], float] = time.monotonic) -> None:
        self._controller = controller
        self._monotonic_s = monotonic_s
        self._started_s = monotonic_s()
        self._lock = threading.Lock()
        self._waits: dict[str, _Wait] = {}

    def failed(self, key: str, error: Exception) -> float | None:
        """Takes in that a pass failed: the seconds until it is tried again, None for a failure of another kind.

        A key that waits for the pass of another one gets 0: `passed` will give it back.
        """
        webhook = silent_webhook(error) if isinstance(error, APIError) else ""
        if not webhook:
            return None
        with self._lock:
            now_s = self._monotonic_s()
            wait = self._waits.get(webhook)
            if wait is None:
                wait = self._waits[webhook] = _Wait(now_s, key, warned=now_s - self._started_s > START_S)
                self._tell(webhook, wait, error)
            elif not wait.warned and now_s - wait.since_s > START_S:
                wait.warned = True
                self._tell(webhook, wait, error)
            wait.keys[key] = None
            if key != wait.first:
                return 0.0
            return min(max((now_s - wait.since_s) * _SHARE, _SHORTEST_S), _LONGEST_S)

    def passed(self, key: str) -> list[str]:
        """Takes in that no webhook was missing in a pass: the other keys that need not wait any more."""
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

    def _tell(self, webhook: str, wait: _Wait, error: Exception) -> None:
        tell = log.warning if wait.warned else log.info
        tell("waiting for a webhook to answer", controller=self._controller, webhook=webhook, why=str(error))
