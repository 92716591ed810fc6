"""What has happened to each Job since its last pass."""

import threading
from collections.abc import Iterable

from controller.job.request import SYNC, Request


class Inbox:
    """Requests by the key of their Job, each once, in order of arrival. Thread safe.

    A mere sync is not kept: every pass syncs.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._requests: dict[str, dict[Request, None]] = {}

    def put(self, key: str, request: Request) -> None:
        """Adds a request."""
        if request != SYNC:
            with self._lock:
                self._requests.setdefault(key, {})[request] = None

    def take(self, key: str) -> list[Request]:
        """All requests of the Job; they are the caller's now."""
        with self._lock:
            return list(self._requests.pop(key, ()))

    def put_back(self, key: str, requests: Iterable[Request]) -> None:
        """Returns requests that could not be dealt with, before those that came meanwhile."""
        with self._lock:
            returned = dict.fromkeys(requests)
            if returned:
                self._requests[key] = returned | self._requests.get(key, {})
