"""Senders of reviews: an API server with a client certificate, or any client of the port.

Requests to the API server are counted by the sender's address and by the named user, because reviews of all users come
from the API server's address. As a result, neither a sender nor a user can use up Muster's share of the API server or
the time of other reviews. Without a certificate a review proves nothing, because any pod can forge its `userInfo`, so
answers contain nothing that the sender may not know.
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
"""Maximum rate of requests to the API server that one sender may cause, per second; more would not help, because this
many already occupy all threads of the webhook."""
BURST: Final = 1000.0
"""Maximum burst of requests after an idle time, enough for a hundred Jobs with many templates."""
RESERVE: Final = 500.0
"""Part of an address's burst that only users with few recent requests may use; the share of each user refills
slowly."""
USER_RATE: Final = 10.0
"""Rate per second at which the share of a user refills; users below this rate count as users with few requests."""
MOST_REMEMBERED: Final = 4096
"""Maximum number of addresses and users whose requests are counted; the least recently seen one is dropped first."""

_LONGEST: Final = 253
ACCOUNT: Final = "system:serviceaccount:"
CONTROLLER_MANAGER: Final = "system:kube-controller-manager"


class Senders:
    """Rate limits of the senders of reviews, by address, and by user at an address. Thread-safe.

    Senders may cause a limited number of requests to the API server; their allowance grows again over time.
    `certified` is true if each sender has presented a certificate.
    """

    def __init__(self, monotonic_s: Callable[[], float] = time.monotonic, *, certified: bool = False) -> None:
        self.certified = certified
        self._now_s = monotonic_s
        self._lock = threading.Lock()
        self._left: OrderedDict[tuple[str, ...], tuple[float, float]] = OrderedDict()
        """The remaining requests of each address, and of each user at an address, with the time of the count; least
        recent first."""

    @contextmanager
    def review(self, peer: str, request: AdmissionRequest) -> Iterator[None]:
        """Charge the requests to the API server within the `with` block to the review's user at this address."""
        token = _reviewed.set((self, peer, charged(request)))
        try:
            yield
        finally:
            _reviewed.reset(token)

    def count_question(self, peer: str, user: str) -> None:
        """Count a request of this user at this address; raise TooManyRequests if the user has no request left.

        The more requests a user has made, the more requests must remain: the last requests are reserved for users with
        few requests.
        """
        with self._lock:
            now_s = self._now_s()
            own = self._refilled((peer, user), RESERVE, USER_RATE, now_s)
            left = self._refilled((peer,), BURST, RATE, now_s)
            allowed = left >= 1 + RESERVE - own
            self._left |= {(peer, user): (max(own - allowed, 0.0), now_s), (peer,): (left - allowed, now_s)}
            while len(self._left) > MOST_REMEMBERED:
                self._left.popitem(last=False)
        if not allowed:
            message = (
                f"reviews from {peer} cause more than {RATE:.0f} look-ups per second, many of them for "
                f"{user}; try again in a moment"
            )
            raise TooManyRequests(message, status=429, reason="TooManyRequests", where="review")

    def _refilled(self, key: tuple[str, ...], most: float, rate: float, now_s: float) -> float:
        """Return the number of requests that this key may still make now, and remove its entry."""
        left, then_s = self._left.pop(key, (most, now_s))
        return min(most, left + (now_s - then_s) * rate)


_reviewed: ContextVar[tuple[Senders, str, str] | None] = ContextVar(
    "senders, address and user of a review", default=None
)


def charged(request: AdmissionRequest) -> str:
    """Return the name to which the requests of a review are charged: the user, with the namespace of the object.

    All service accounts of a namespace share one allowance, because a tenant can create any number of accounts.
    Controllers of the cluster act for all users. Forged names are cut to the length of Kubernetes' names.
    """
    user = shared_name(request.user_info.username)[:_LONGEST]
    return f"{user} in {request.namespace[:_LONGEST]}" if request.namespace else user


def is_known() -> bool:
    """Return True if the review comes from an API server, so that its `userInfo` is not forged."""
    reviewed = _reviewed.get()
    return reviewed is None or reviewed[0].certified


def count_question() -> None:
    """Count a request to the API server for this review; raises TooManyRequests if the sender's share is used up."""
    if reviewed := _reviewed.get():
        senders, peer, user = reviewed
        senders.count_question(peer, user)


def listed(queues: Sequence[str]) -> str:
    """Return the names of queues for a message, but only if an API server is known to be the reader."""
    if not queues:
        return "none yet"
    return ", ".join(queues) if is_known() else "see `kubectl get queues`"


def may_be_controller(request: AdmissionRequest) -> bool:
    """Return True if a controller may have sent an object with an owner.

    Offline, where no user is known, always return True.
    """
    return not request.user_info.username or is_controller(request, owned=True)


def is_controller(request: AdmissionRequest, *, owned: bool) -> bool:
    """Return True if a controller has sent the object on behalf of the workload that it names as its owner (`owned`).

    The controllers of Kubernetes, JobSet and Muster use service accounts in other namespaces, which tenants cannot use.
    """
    user = request.user_info.username
    if user == CONTROLLER_MANAGER:
        return True
    return owned and user.startswith(ACCOUNT) and not user.startswith(f"{ACCOUNT}{request.namespace}:")
