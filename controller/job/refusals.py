"""Refusals of pods by quotas, per Job, so that they are not tried again and again.

A quota that has refused a few pods would refuse all pods of the same amounts, so the rest of these is not tried; nor is
any of them for a while, which is longer each time. However often the Job has a pass meanwhile, a refusal costs the API
server a call or two a minute.
"""

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

OVER_QUOTA_AT_MOST = 3
"""Refusals after which no more pods of the same amounts are tried, whatever their tasks."""
FIRST_S, MAX_S = 1.0, 30.0
"""The pause after that; doubled each time."""


class Attempts:
    """The creations of one Job's pods: the refused ones, and the pause before they are tried again. Thread safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._refused: Counter[bytes] = Counter()
        self.until_s = 0.0
        """End of the pause, monotonic."""
        self.delay_s = FIRST_S / 2
        """Length of the last pause."""
        self.start()

    def start(self, *, anew: bool = False) -> None:
        """Starts a pass; `anew`: the pause is over."""
        self.untried = 0
        """Pods that were not tried in this pass."""
        self.new = False
        """True if a quota has refused a pod in this pass."""
        if anew:
            self._refused.clear()

    def begin(self, amounts: bytes) -> bool:
        """True if another pod of these amounts is worth a call."""
        with self._lock:
            fits = self._refused[amounts] < OVER_QUOTA_AT_MOST
            self.untried += not fits
            return fits

    def refused(self, amounts: bytes) -> None:
        """A quota has refused a pod of these amounts."""
        with self._lock:
            self._refused[amounts] += 1
            self.new = True


class Refusals:
    """By UID of the Job; one pass over a Job at a time."""

    def __init__(self, monotonic_s: Callable[[], float]) -> None:
        self._monotonic_s = monotonic_s
        self._jobs: dict[str, Attempts] = {}

    @contextmanager
    def attempts(self, uid: str) -> Iterator[Attempts]:
        """For one pass over a Job; its refusals are kept at the end of the pass."""
        attempts = self._jobs.get(uid) or Attempts()
        attempts.start(anew=self._monotonic_s() >= attempts.until_s)
        yield attempts
        if attempts.new:
            attempts.delay_s = min(attempts.delay_s * 2, MAX_S)
            attempts.until_s = self._monotonic_s() + attempts.delay_s
            self._jobs[uid] = attempts
        elif not attempts.untried:
            self._jobs.pop(uid, None)

    def forget(self, uid: str) -> None:
        """Drops the refusals of a Job that is gone."""
        self._jobs.pop(uid, None)
