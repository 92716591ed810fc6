"""Senders of reviews: API servers that present a client certificate, or any clients that can reach the port.

Requests to the API server are counted for the sender's address and for the review's user, because an API server sends
reviews for all users. As a result, no sender and no user can use up Muster's rate limit, or delay other reviews.
Without a client certificate, a review may be forged, because any pod can write a `userInfo`. The response to a review
that may be forged contains no data that could be secret from the sender.
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
"""Maximum number of requests to the API server per second that one sender may cause. A higher limit would not help,
because this many requests already occupy all threads of the webhook."""
BURST: Final = 1000.0
"""Maximum number of requests in a burst after an idle time; enough for a hundred Jobs with many templates."""
RESERVE: Final = 500.0
"""Part of an address's burst that is reserved for users with few recent requests; the share of each user refills
slowly."""
USER_RATE: Final = 10.0
"""Number of requests per second by which the share of a user refills; a user below this rate counts as a user with few
requests."""
MOST_REMEMBERED: Final = 4096
"""Maximum number of addresses and users whose requests are counted; the least recently seen entry is dropped first."""

_LONGEST: Final = 253
ACCOUNT: Final = "system:serviceaccount:"
CONTROLLER_MANAGER: Final = "system:kube-controller-manager"


class Senders:
    """Rate limits for the senders of reviews: one for each address, and one for each user at an address. Thread-safe.

    Each sender may cause a limited number of requests to the API server; the limit refills over time. `certified` is
    true if all senders must present a client certificate.
    """

    def __init__(self, monotonic_s: Callable[[], float] = time.monotonic, *, certified: bool = False) -> None:
        self.certified = certified
        self._now_s = monotonic_s
        self._lock = threading.Lock()
        self._left: OrderedDict[tuple[str, ...], tuple[float, float]] = OrderedDict()
        """Maps an address, or an address and a user, to the number of remaining requests and the time of the count;
        least recent first."""

    @contextmanager
    def review(self, peer: str, request: AdmissionRequest) -> Iterator[None]:
        """Count requests to the API server within the `with` block for this address and the review's user."""
        token = _reviewed.set((self, peer, charged(request)))
        try:
            yield
        finally:
            _reviewed.reset(token)

    def count_question(self, peer: str, user: str) -> None:
        """Count a request of this user at this address; raise TooManyRequests if the user has no request left.

        The more requests a user has made, the more requests of the address must be left. The last requests are reserved
        for users with few requests.
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
        """Return the number of requests that this key may still make, and remove the key's entry."""
        left, then_s = self._left.pop(key, (most, now_s))
        return min(most, left + (now_s - then_s) * rate)


_reviewed: ContextVar[tuple[Senders, str, str] | None] = ContextVar(
    "senders, address and user of a review", default=None
)


def charged(request: AdmissionRequest) -> str:
    """Return the name under which the requests of a review are counted: the user, with the namespace of the object.

    All service accounts of a namespace share one limit, because a tenant can create any number of accounts. The
    namespace of the object is included, because controllers of the cluster act for all users. Names are cut to the
    maximum length in Kubernetes, because they may be forged.
    """
    user = shared_name(request.user_info.username)[:_LONGEST]
    return f"{user} in {request.namespace[:_LONGEST]}" if request.namespace else user


def is_known() -> bool:
    """Return True if the review comes from an API server, so that its `userInfo` is not forged."""
    reviewed = _reviewed.get()
    return reviewed is None or reviewed[0].certified


def count_question() -> None:
    """Count a request to the API server for the current review; raise TooManyRequests beyond the sender's limit."""
    if reviewed := _reviewed.get():
        senders, peer, user = reviewed
        senders.count_question(peer, user)


def listed(queues: Sequence[str]) -> str:
    """Return the names of queues for a message, or only a hint if the sender may not be an API server."""
    if not queues:
        return "none yet"
    return ", ".join(queues) if is_known() else "see `kubectl get queues`"


def may_be_controller(request: AdmissionRequest) -> bool:
    """Return True if the sender of an object with an owner may be a controller.

    Offline, the user is unknown, and the result is True.
    """
    return not request.user_info.username or is_controller(request, owned=True)


def is_controller(request: AdmissionRequest, *, owned: bool) -> bool:
    """Return True if a controller has sent the object; `owned` is true if the object names a controlling owner.

    The controllers of Kubernetes, JobSet and Muster use service accounts in other namespaces, which tenants cannot use.
    """
    user = request.user_info.username
    if user == CONTROLLER_MANAGER:
        return True
    return owned and user.startswith(ACCOUNT) and not user.startswith(f"{ACCOUNT}{request.namespace}:")
