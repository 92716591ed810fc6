"""Rights as the API server answers them, cached for half a minute."""

import hashlib
import threading
import time
from collections.abc import Callable, Hashable
from typing import Any, Final, TypeVar

from cachetools import TTLCache

from muster.api.base import Resource
from muster.api.kubernetes import reviews
from muster.kube.client import Client

T = TypeVar("T")
BELIEVED_S: Final = 30.0
"""Time for which an answer counts. Results of answers count as long again, so that no user sees more than allowed for
longer than a minute."""
_MOST: Final = 50_000


class Remembered:
    """Answers of the API server; thread safe, and two threads may ask the same at once."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._known: TTLCache[Hashable, Any] = TTLCache(_MOST, BELIEVED_S, clock)
        self._lock = threading.Lock()

    def answer(self, question: Hashable, ask: Callable[[], T]) -> T:
        """Return the answer that is remembered, or else ask."""
        with self._lock:
            if question in self._known:
                found: T = self._known[question]
                return found
        answer = ask()
        with self._lock:
            self._known[question] = answer
        return answer


def listing(resource: Resource[Any], namespace: str = "", verb: str = "list") -> reviews.ResourceAttributes:
    """Return the right to list a kind, in the whole cluster by default."""
    return reviews.ResourceAttributes(verb=verb, group=resource.group, resource=resource.plural, namespace=namespace)


def may_i(client: Client, right: reviews.ResourceAttributes) -> bool:
    """Return True if the client's own user has a right."""
    asked = reviews.SubjectAccessReview(spec=reviews.SubjectAccessReviewSpec(resource_attributes=right))
    return client.create(reviews.SELF_SUBJECT_ACCESS_REVIEWS, asked).status.allowed


def digest_of(token: str) -> str:
    """Return what stands for a token where it is remembered: no token is kept."""
    return hashlib.sha256(token.encode()).hexdigest()
