"""Periodic check whether the API server serves a kind that depends on a feature gate or on an installed CRD.

A kind can appear and disappear while a process runs, because the API server may restart with other gates. A watch would
report nothing before the first object of a kind exists.
"""

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import msgspec

from muster.api.base import Resource, Wire
from muster.kube.client import Client
from muster.kube.errors import APIError, NotFound

FRESH_S = 60.0
"""Time for which the result of a check is used without another request."""
_TIMEOUT_S = 3.0


class _ServedKind(Wire):
    """One kind or subresource in the API server's list."""

    name: str = ""


class _ServedKinds(Wire):
    """The API server's list of the kinds in one group and version."""

    resources: list[_ServedKind] = msgspec.field(default_factory=list)


class Served:
    """Cached check whether the API server serves a kind; a call returns a result of the last minute. Thread-safe.

    If the result is older than a minute, one caller sends a request and waits, while other callers get the old result.
    If the request fails, the old result is kept. Before the first result, the kind counts as unserved.
    """

    def __init__(
        self, client: Client, resource: Resource[Any], *, monotonic_s: Callable[[], float] = time.monotonic
    ) -> None:
        self._client = client
        self._plural = resource.plural
        self._path = f"/apis/{resource.group}/{resource.version}"
        self._monotonic_s = monotonic_s
        self._asking = threading.Lock()
        self._served = False
        self._until_s = float("-inf")

    def __call__(self) -> bool:
        """Return the latest result of the check. Do not call this method on the event loop's own thread."""
        if self._monotonic_s() >= self._until_s and self._asking.acquire(blocking=False):
            try:
                with suppress(APIError):
                    self._served = self._ask()
                self._until_s = self._monotonic_s() + FRESH_S
            finally:
                self._asking.release()
        return self._served

    def _ask(self) -> bool:
        try:
            body = self._client.request("GET", self._path, timeout_s=_TIMEOUT_S)
        except NotFound:
            return False
        return any(each.name == self._plural for each in msgspec.json.decode(body, type=_ServedKinds).resources)
