"""Rights of users, checked by the API server and cached for half a minute."""

import hashlib
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, Final, TypeVar

from muster.api.base import Resource
from muster.api.kubernetes import reviews
from muster.kube.client import Client

T = TypeVar("T")
BELIEVED_S: Final = 30.0
"""Time in seconds for which an answer of the API server is valid. Data derived from an answer may be used for the same
time again. Therefore a user who loses a right sees the data for at most another minute."""
_MOST: Final = 50_000


class Remembered:
    """Thread-safe cache of the API server's answers about users.

    Two threads may send the same question at once.

    If the cache is full, the oldest answer of the user with the most answers is dropped, so that no user displaces
    other users' answers.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic, most: int = _MOST) -> None:
        self._clock, self._most = clock, most
        self._of: dict[str, OrderedDict[Hashable, tuple[float, Any]]] = {}
        """Maps a user and a question to the answer and its time; the oldest answers come first."""
        self._total, self._swept_s = 0, clock()
        self._lock = threading.Lock()

    def answer(self, question: Hashable, ask: Callable[[], T], asker: str = "") -> T:
        """Return the cached answer to a question about a user; if there is none, ask the API server."""
        with self._lock:
            known = self._of.get(asker)
            found = known.get(question) if known else None
            if found is not None and self._clock() - found[0] < BELIEVED_S:
                remembered: T = found[1]
                return remembered
        answer = ask()
        with self._lock:
            mine = self._of.setdefault(asker, OrderedDict())
            self._total += question not in mine
            mine[question] = self._clock(), answer
            mine.move_to_end(question)
            self._sweep()
        return answer

    def __len__(self) -> int:
        return self._total

    def _sweep(self) -> None:
        """Drop answers that exceed the limit and, from time to time, answers that are too old."""
        now = self._clock()
        if now - self._swept_s >= BELIEVED_S:
            self._swept_s = now
            for asker, mine in [*self._of.items()]:
                while mine and now - next(iter(mine.values()))[0] >= BELIEVED_S:
                    self._drop(asker, mine)
        while self._total > self._most:
            self._drop(*max(self._of.items(), key=lambda each: len(each[1])))

    def _drop(self, asker: str, mine: OrderedDict[Hashable, tuple[float, Any]]) -> None:
        mine.popitem(last=False)
        self._total -= 1
        if not mine:
            del self._of[asker]


def listing(resource: Resource[Any], namespace: str = "", verb: str = "list") -> reviews.ResourceAttributes:
    """Return the right to list a kind, in the whole cluster by default."""
    return reviews.ResourceAttributes(verb=verb, group=resource.group, resource=resource.plural, namespace=namespace)


def may_i(client: Client, right: reviews.ResourceAttributes) -> bool:
    """Return True if the user of this client has a right."""
    asked = reviews.SubjectAccessReview(spec=reviews.SubjectAccessReviewSpec(resource_attributes=right))
    return client.create(reviews.SELF_SUBJECT_ACCESS_REVIEWS, asked).status.allowed


def digest_of(token: str) -> str:
    """Return the hash of a token, under which the cache keeps the answers; the token itself is not stored."""
    return hashlib.sha256(token.encode()).hexdigest()
