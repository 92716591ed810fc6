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
    """The creations of one pass. Thread safe."""

    def __init__(self, refused: Counter[bytes]) -> None:
        self._lock = threading.Lock()
        self._refused = refused
        self.untried = 0
        """Pods that were not tried."""
        self.new = False
        """True if a quota has refused a pod in this pass."""

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


class _Pause:
    """The refusals of one Job's pods, the end of its pause (monotonic seconds), and the length of the last one."""

    def __init__(self) -> None:
        self.refused: Counter[bytes] = Counter()
        self.until_s = 0.0
        self.delay_s = FIRST_S / 2


class Refusals:
    """By UID of the Job; one pass over a Job at a time."""

    def __init__(self, monotonic_s: Callable[[], float]) -> None:
        self._monotonic_s = monotonic_s
        self._pauses: dict[str, _Pause] = {}

    @contextmanager
    def attempts(self, uid: str) -> Iterator[Attempts]:
        """For one pass over a Job; its refusals are kept at the end of the pass."""
        pause = self._pauses.get(uid) or _Pause()
        if self._monotonic_s() >= pause.until_s:
            pause.refused.clear()
        attempts = Attempts(pause.refused)
        yield attempts
        if attempts.new:
            pause.delay_s = min(pause.delay_s * 2, MAX_S)
            pause.until_s = self._monotonic_s() + pause.delay_s
            self._pauses[uid] = pause
        elif not attempts.untried:
            self._pauses.pop(uid, None)

    def forget(self, uid: str) -> None:
        """Drops the refusals of a Job that is gone."""
        self._pauses.pop(uid, None)
