"""What has happened to each Job since its last pass."""

import threading
from collections.abc import Iterable

from controller.job.rules.request import SYNC, Request
from muster.api.batch import Job


class PendingEvents:
    """Requests by the key of their Job, each once, in order of arrival. Thread safe.

    A mere sync is not kept: every pass syncs.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._requests: dict[str, dict[Request, None]] = {}
        self._gone: dict[str, list[Job]] = {}

    def put(self, key: str, request: Request) -> None:
        """Adds a request."""
        if request != SYNC:
            with self._lock:
                self._requests.setdefault(key, {})[request] = None

    def put_gone(self, job: Job) -> None:
        """Adds the news that a Job is gone."""
        with self._lock:
            self._gone.setdefault(job.metadata.key, []).append(job)

    def take_gone(self, key: str) -> list[Job]:
        """The Jobs of this key that have gone; they are the caller's now."""
        with self._lock:
            return self._gone.pop(key, [])

    def take(self, key: str) -> list[Request]:
        """All requests of the Job, Commands last and in the order in which they were given; the caller's now."""
        with self._lock:
            return sorted(self._requests.pop(key, ()), key=lambda request: request.command_order)

    def put_back(self, key: str, requests: Iterable[Request]) -> None:
        """Returns requests that could not be dealt with, before those that came meanwhile."""
        with self._lock:
            returned = dict.fromkeys(requests)
            if returned:
                self._requests[key] = returned | self._requests.get(key, {})
