"""Asks the API server whether the user of a review may do something else too (a SubjectAccessReview).

Some objects make a controller of ours act with its own rights on what their user may have no rights to. So he is asked
for the right that he would need to do it himself. An answer is remembered for a few seconds: as long as the API server
may be behind a change of roles itself.
"""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Protocol

import msgspec

from muster.api.kubernetes.admission import UserInfo
from muster.api.kubernetes.authorization import (
    SUBJECT_ACCESS_REVIEWS,
    ResourceAttributes,
    SubjectAccessReview,
    SubjectAccessReviewSpec,
)
from muster.kube.client import Client
from webhook import deadline

_MAX_S = 4.0  # the API server waits 10 s for the whole review
_REMEMBERED_S = 5.0
_MAX_REMEMBERED = 1024


class Rights(Protocol):
    """Whoever knows what users may do; tests have one that answers as they like."""

    def allows(self, user: UserInfo, action: ResourceAttributes) -> bool:
        """Whether this user may do this; raises APIError if that could not be found out."""


class ServerRights:
    """`Rights` by the API server's own authorizers, whatever they are. Thread safe."""

    def __init__(self, client: Client, monotonic_s: Callable[[], float] = time.monotonic) -> None:
        self._client = client
        self._monotonic_s = monotonic_s
        self._lock = threading.Lock()
        self._known: OrderedDict[bytes, tuple[float, bool]] = OrderedDict()

    def allows(self, user: UserInfo, action: ResourceAttributes) -> bool:
        """The answer, by a call unless the very same was asked a moment ago; what fails is not remembered."""
        spec = SubjectAccessReviewSpec(
            user=user.username, uid=user.uid, groups=user.groups, extra=user.extra, resource_attributes=action
        )
        key = msgspec.json.encode(spec, order="sorted")
        with self._lock:
            until, allowed = self._known.get(key, (0.0, False))
        if self._monotonic_s() < until:
            return allowed
        asked = SubjectAccessReview(spec=spec)
        answer = self._client.create(SUBJECT_ACCESS_REVIEWS, asked, timeout_s=deadline.within(_MAX_S))
        with self._lock:
            self._known[key] = self._monotonic_s() + _REMEMBERED_S, answer.status.allowed
            self._known.move_to_end(key)
            if len(self._known) > _MAX_REMEMBERED:
                self._known.popitem(last=False)
        return answer.status.allowed
