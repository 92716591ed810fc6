"""What quotas have refused, per Job: not to be tried again and again.

What a quota has refused a few times it would refuse for all pods of the same amounts, so the rest of these is not
tried; nor is any of them for a while, which is longer each time. Whatever wakes the Job meanwhile, a refusal costs the
API server a call or two a minute.
"""

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

OVER_QUOTA_AT_MOST = 3
"""Refusals after which no more pods of the same amounts are tried, of whichever tasks they are."""
FIRST_S, MAX_S = 1.0, 30.0
"""How long they are not tried again after that; doubled each time."""


class Attempts:
    """The creations of one pass: which pods are worth a call. Thread safe."""

    def __init__(self, refused: Counter[bytes]) -> None:
        self._lock = threading.Lock()
        self._refused = refused
        self.untried = 0
        """Pods that were not tried."""
        self.new = False
        """Whether a quota has refused something in this pass."""

    def begin(self, amounts: bytes) -> bool:
        """Whether another pod of these amounts is worth a call."""
        with self._lock:
            fits = self._refused[amounts] < OVER_QUOTA_AT_MOST
            self.untried += not fits
            return fits

    def refused(self, amounts: bytes) -> None:
        """A quota has refused a pod of these amounts."""
        with self._lock:
            self._refused[amounts] += 1
            self.new = True


class _Rest:
    """What was refused of one Job's pods, until when it is believed (monotonic seconds), and how long it was last."""

    def __init__(self) -> None:
        self.refused: Counter[bytes] = Counter()
        self.until_s = 0.0
        self.delay_s = FIRST_S / 2


class Refusals:
    """By UID of the Job; one pass over a Job at a time."""

    def __init__(self, monotonic_s: Callable[[], float]) -> None:
        self._monotonic_s = monotonic_s
        self._rests: dict[str, _Rest] = {}

    @contextmanager
    def attempts(self, uid: str) -> Iterator[Attempts]:
        """For one pass over a Job; what comes of it is remembered at its end."""
        rest = self._rests.get(uid) or _Rest()
        if self._monotonic_s() >= rest.until_s:
            rest.refused.clear()
        attempts = Attempts(rest.refused)
        yield attempts
        if attempts.new:
            rest.delay_s = min(rest.delay_s * 2, MAX_S)
            rest.until_s = self._monotonic_s() + rest.delay_s
            self._rests[uid] = rest
        elif not attempts.untried:
            self._rests.pop(uid, None)

    def forget(self, uid: str) -> None:
        """The Job is gone."""
        self._rests.pop(uid, None)
