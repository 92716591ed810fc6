"""Senders of reviews: an API server that has presented a certificate, or any client that reaches the port.

Without certificates a review proves nothing: its `userInfo` may be forged by any pod. Then questions to the API server
are counted by the address of the sender, and by whom it names: all users have the API server's address. So neither a
sender nor a user takes Muster's share of the API server or the time of other reviews. Answers list nothing that the
sender may not know.
"""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

from muster.api.kubernetes.admission import AdmissionRequest, shared_name
from muster.kube.errors import TooManyRequests

RATE: Final = 200.0
"""Requests per second that a sender may cause at the API server; this rate keeps the webhook's threads busy."""
BURST: Final = 1000.0
"""Questions at once, after a time without any: an API server that sends a hundred Jobs of many templates."""
RESERVE: Final = 500.0
"""Questions at once that an address keeps for users who have asked for little: each has so many, which fill slowly."""
USER_RATE: Final = 10.0
"""Questions per second with which a user counts as one who asks for little."""
MOST_REMEMBERED: Final = 4096
"""Addresses and users with a count; the one that has asked nothing for the longest time is forgotten first."""

_LONGEST: Final = 253
ACCOUNT: Final = "system:serviceaccount:"
CONTROLLER_MANAGER: Final = "system:kube-controller-manager"

_count: ContextVar[Callable[[], None] | None] = ContextVar("the count of the sender's questions", default=None)


class Budgets:
    """The questions that each address, and each user there, may still ask, which fill with time. Thread safe."""

    def __init__(self, monotonic_s: Callable[[], float] = time.monotonic) -> None:
        self._now_s = monotonic_s
        self._lock = threading.Lock()
        self._left: OrderedDict[tuple[str, ...], tuple[float, float]] = OrderedDict()
        """Address, or address and user → questions that were left, and when; the last to ask is the last."""

    def count_question(self, peer: str, user: str) -> None:
        """Count a question of this user at this address; raises TooManyRequests if the address has none left for them.

        The more a user has asked, the more must be left: the last questions are for those who have asked for little.
        """
        with self._lock:
            own = self._filled((peer, user), RESERVE, USER_RATE)
            left = self._filled((peer,), BURST, RATE)
            asks = left >= 1 + RESERVE - own
            now_s = self._now_s()
            self._left |= {(peer, user): (max(own - asks, 0.0), now_s), (peer,): (left - asks, now_s)}
            while len(self._left) > MOST_REMEMBERED:
                self._left.popitem(last=False)
        if not asks:
            message = f"{peer} asks for more than {RATE:.0f} look-ups a second, many for {user}; try again in a moment"
            raise TooManyRequests(message, status=429, reason="TooManyRequests", where="review")

    def _filled(self, whose: tuple[str, ...], most: float, rate: float) -> float:
        """Return what is left now."""
        now_s = self._now_s()
        left, then_s = self._left.pop(whose, (most, now_s))
        return min(most, left + (now_s - then_s) * rate)


def charged(request: AdmissionRequest) -> str:
    """Return the user whom questions of a review are counted for, with the namespace of the object.

    A tenant can make any number of accounts in a namespace: these are one. Controllers of the cluster act for all. A
    forged name may be long: no more of it is kept than Kubernetes' names have.
    """
    user = shared_name(request.user_info.username)[:_LONGEST]
    return f"{user} in {request.namespace[:_LONGEST]}" if request.namespace else user


@contextmanager
def unknown(peer: str, user: str, budgets: Budgets) -> Iterator[None]:
    """Treat the review that is decided meanwhile as one of a sender that nothing is known of but its address."""
    token = _count.set(lambda: budgets.count_question(peer, user))
    try:
        yield
    finally:
        _count.reset(token)


def is_known() -> bool:
    """Return True if the review comes from an API server, so that its `userInfo` is the user's."""
    return _count.get() is None


def count_question() -> None:
    """Count a request to the API server for this review; raises TooManyRequests if the sender's share is used up."""
    count = _count.get()
    if count:
        count()


def listed(queues: Sequence[str]) -> str:
    """Return the names of queues for a message, but only if an API server is known to be the reader."""
    if not queues:
        return "none yet"
    return ", ".join(queues) if is_known() else "see `kubectl get queues`"


def is_controller(request: AdmissionRequest, *, owned: bool) -> bool:
    """Return True if a controller has sent the object on behalf of the workload that it names as its owner (`owned`).

    The controllers of Kubernetes, JobSet and Muster use service accounts in other namespaces, which tenants cannot use.
    """
    user = request.user_info.username
    if user == CONTROLLER_MANAGER:
        return True
    return owned and user.startswith(ACCOUNT) and not user.startswith(f"{ACCOUNT}{request.namespace}:")
