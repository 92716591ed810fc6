"""Asks the API server what it thinks of a pod, by creating it without keeping it (a server-side dry run).

It is asked with Muster's rights, not the user's: to impersonate users, Muster would need the right to be anybody, and
who says here which user asks is whoever reaches the webhook's port. What is told of the answer is the handler's matter.
A verdict "fine" is remembered for a moment, as Jobs often come many at a time and all alike.
"""

import hashlib
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any, Protocol

import msgspec

from muster.api.kubernetes.core import PODS
from muster.kube.client import Client
from muster.kube.errors import AlreadyExists, APIError, BadRequest, Forbidden, Invalid
from webhook import deadline

_MAX_S = 4.0  # the API server waits 10 s for the whole review
_REMEMBERED_S = 20.0
_MAX_REMEMBERED = 1024


class DryRuns(Protocol):
    """Whoever can try pods out; tests have one that answers as they like."""

    def attempt(self, pod: Mapping[str, Any], namespace: str) -> APIError | None:
        """The API server's refusal of this pod, or None; raises APIError if it could not be asked."""


class ServerDryRuns:
    """`DryRuns` by the API server. Thread safe."""

    def __init__(self, client: Client, monotonic_s: Callable[[], float] = time.monotonic) -> None:
        self._client = client
        self._monotonic_s = monotonic_s
        self._lock = threading.Lock()
        self._fine: OrderedDict[bytes, float] = OrderedDict()

    def attempt(self, pod: Mapping[str, Any], namespace: str) -> APIError | None:
        """The refusal, by a call unless the very same pod was fine a moment ago; refusals are not remembered."""
        key = hashlib.sha256(msgspec.json.encode([namespace, pod])).digest()
        with self._lock:
            if self._fine.get(key, 0.0) > self._monotonic_s():
                return None
        try:
            self._client.create(PODS, pod, namespace, dry_run=True, timeout_s=deadline.within(_MAX_S))
        except AlreadyExists:
            return None  # a name that the server made up; what it names was found valid before
        except (Invalid, BadRequest, Forbidden) as refusal:
            return refusal
        with self._lock:
            self._fine[key] = self._monotonic_s() + _REMEMBERED_S
            if len(self._fine) > _MAX_REMEMBERED:
                self._fine.popitem(last=False)
        return None
