"""Periodic check that the API server serves a kind of a feature gate or an installation.

Such a kind can come and go while a process runs, as the API server starts again with other gates. A watch would report
nothing before the first object of the kind exists.
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
"""Time for which an answer holds."""
_TIMEOUT_S = 3.0


class _Entry(Wire):
    """One kind in the API server's list, and its subresources."""

    name: str = ""


class _Kinds(Wire):
    """The API server's list of what it serves of one group and version."""

    resources: list[_Entry] = msgspec.field(default_factory=list)


class Served:
    """`served()` is true while the API server serves the kind, going by an answer of the last minute. Thread safe.

    One caller asks and waits for it; others get the answer before it meanwhile. Without an answer it stays as it was;
    before any it is not served.
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
        """Return the newest answer; not for the loop's own thread."""
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
        return any(each.name == self._plural for each in msgspec.json.decode(body, type=_Kinds).resources)
