"""Senders of reviews: an API server that has presented a certificate, or any client that reaches the port.

Without certificates a review proves nothing, because any pod can forge its `userInfo`. Then requests to the API server
are counted by the sender's address and by the named user, because reviews of all users come from the API server's
address. So neither a sender nor a user can use up Muster's share of the API server or the time of other reviews.
Answers contain nothing that the sender may not know.
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
"""Maximum burst of requests after an idle time, enough for a hundred Jobs with many templates."""
RESERVE: Final = 500.0
"""Burst of an address that is reserved for users with few requests, each of whom may use it; refills slowly."""
USER_RATE: Final = 10.0
"""Requests per second up to which a user counts as one with few requests."""
MOST_REMEMBERED: Final = 4096
"""Maximum number of counted addresses and users; the least recent one is forgotten first."""

_LONGEST: Final = 253
ACCOUNT: Final = "system:serviceaccount:"
CONTROLLER_MANAGER: Final = "system:kube-controller-manager"

_count: ContextVar[Callable[[], None] | None] = ContextVar("the count of the sender's questions", default=None)


class Budgets:
    """The remaining requests of each address, and of each user there, which refill over time. Thread-safe."""

    def __init__(self, monotonic_s: Callable[[], float] = time.monotonic) -> None:
        self._now_s = monotonic_s
        self._lock = threading.Lock()
        self._left: OrderedDict[tuple[str, ...], tuple[float, float]] = OrderedDict()
        """Address, or address and user → remaining requests and the time of the count, least recent first."""

    def count_question(self, peer: str, user: str) -> None:
        """Count a request of this user at this address; raises TooManyRequests if there is none left for the user.

        The more requests a user has made, the more must be left: the last ones are for users with few requests.
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
            message = f"{peer} causes more than {RATE:.0f} look-ups a second, many for {user}; try again in a moment"
            raise TooManyRequests(message, status=429, reason="TooManyRequests", where="review")

    def _filled(self, whose: tuple[str, ...], most: float, rate: float) -> float:
        """Return the remaining requests."""
        now_s = self._now_s()
        left, then_s = self._left.pop(whose, (most, now_s))
        return min(most, left + (now_s - then_s) * rate)


def charged(request: AdmissionRequest) -> str:
    """Return the user to whom the requests of a review are charged, with the object's namespace.

    All service accounts of a namespace count as one, because a tenant can create any number of them. Controllers of the
    cluster act for all users. Forged names are cut to the length of Kubernetes' names.
    """
    user = shared_name(request.user_info.username)[:_LONGEST]
    return f"{user} in {request.namespace[:_LONGEST]}" if request.namespace else user


@contextmanager
def unknown(peer: str, user: str, budgets: Budgets) -> Iterator[None]:
    """Treat the review in this block as one of an unknown sender, identified only by its address."""
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
