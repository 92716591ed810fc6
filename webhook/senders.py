"""Senders of reviews: an API server that has shown a certificate, or any client that reaches the port.

Without certificates a review proves nothing: its `userInfo` may be forged by any pod. Then questions to the API server
are counted by the address of the sender. So one sender takes neither Muster's share of the API server nor the time
of other reviews. Answers list nothing that the sender may not know.
"""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

from muster.api.kubernetes.admission import AdmissionRequest
from muster.kube.errors import TooManyRequests

RATE: Final = 200.0
"""Questions that a sender may ask the API server through Muster, per second: what fills the webhook's threads."""
BURST: Final = 1000.0
"""Questions at once, after a time without any: an API server that sends a hundred Jobs of many templates."""
MOST_PEERS: Final = 4096
"""Addresses that are remembered; the one that has asked nothing for the longest time is forgotten first."""

_ACCOUNT: Final = "system:serviceaccount:"
_CONTROLLER_MANAGER: Final = "system:kube-controller-manager"

_count: ContextVar[Callable[[], None] | None] = ContextVar("the count of the sender's questions", default=None)


class Budgets:
    """The questions that each address may still ask: a bucket per address, which fills with time. Thread safe."""

    def __init__(self, monotonic_s: Callable[[], float] = time.monotonic) -> None:
        self._now_s = monotonic_s
        self._lock = threading.Lock()
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()
        """Address → questions that were left, and when; the last to ask is the last."""

    def take(self, peer: str) -> None:
        """Count a question of this address; raises TooManyRequests if it has none left."""
        with self._lock:
            now_s = self._now_s()
            left, then_s = self._left.pop(peer, (BURST, now_s))
            left = min(BURST, left + (now_s - then_s) * RATE)
            asks = left >= 1
            self._left[peer] = (left - asks, now_s)
            if len(self._left) > MOST_PEERS:
                self._left.popitem(last=False)
        if not asks:
            message = f"{peer} asks for more than {RATE:.0f} look-ups a second; try again in a moment"
            raise TooManyRequests(message, status=429, reason="TooManyRequests", where="review")


@contextmanager
def unknown(peer: str, budgets: Budgets) -> Iterator[None]:
    """Treat the review that is decided meanwhile as one of a sender that nothing is known of but its address."""
    token = _count.set(lambda: budgets.take(peer))
    try:
        yield
    finally:
        _count.reset(token)


def is_known() -> bool:
    """Return True if the review comes from an API server, so that its `userInfo` is the user's."""
    return _count.get() is None


def count_question() -> None:
    """Count a question to the API server that the review makes; raises TooManyRequests beyond the sender's share."""
    count = _count.get()
    if count:
        count()


def listed(queues: Sequence[str]) -> str:
    """Return the names of queues for a message: only where users of the cluster read it, and no pod beside it."""
    if not queues:
        return "none yet"
    return ", ".join(queues) if is_known() else "see `kubectl get queues`"


def is_controller(request: AdmissionRequest, *, owned: bool) -> bool:
    """Return True if a controller has sent an object for the workload that it names as its owner (`owned`).

    Controllers of Kubernetes, JobSet and Muster have service accounts of other namespaces; no tenant may act as these.
    """
    user = request.user_info.username
    if user == _CONTROLLER_MANAGER:
        return True
    return owned and user.startswith(_ACCOUNT) and not user.startswith(f"{_ACCOUNT}{request.namespace}:")
