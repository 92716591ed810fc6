"""The queue of events of each Job since the Job's last pass.

A pass takes all pending requests as one `Batch` and removes the requests that it has handled. When the pass ends or
fails, unhandled requests are put back, in front of requests that have arrived in the meantime. Thus, no request is
lost, and requests stay in order.
"""

import threading
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from controller.job.rules.events import SYNC, JobEvent
from muster.api.volcano.batch import Job


class Batch:
    """The requests that one pass over a Job handles.

    A request counts as handled when the loop over the batch takes the next request. A Command stays in the batch until
    it is deleted, and counts as deleted when the loop over `carried_out` takes the next Command.
    """

    def __init__(self, requests: Iterable[JobEvent]) -> None:
        self._waiting = deque(requests)
        self._carried_out: deque[JobEvent] = deque()

    def __iter__(self) -> Iterator[JobEvent]:
        while self._waiting:
            yield self._waiting[0]
            request = self._waiting.popleft()
            if request.command:
                self._carried_out.append(request)

    def add_first(self, requests: Iterable[JobEvent]) -> None:
        """Add requests at the front, because their events happened before the events of all other requests."""
        self._waiting.extendleft(reversed([*requests]))

    def commands(self) -> list[JobEvent]:
        """Return the requests of Commands that have not been handled."""
        return [request for request in self._waiting if request.command]

    def carried_out(self) -> Iterator[JobEvent]:
        """Yield the Commands that the pass has executed."""
        while self._carried_out:
            yield self._carried_out[0]
            self._carried_out.popleft()

    def drop(self) -> None:
        """Drop all unhandled requests of a deleted Job."""
        self._waiting.clear()

    def left(self) -> list[JobEvent]:
        """Return the requests for the next pass: Commands that must still be deleted, then unhandled requests."""
        return [*self._carried_out, *self._waiting]


class PendingEvents:
    """The pending requests of each Job, in order of arrival, without duplicates and without requests for a sync.

    Thread-safe.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._requests: dict[str, dict[JobEvent, None]] = {}
        self._gone: dict[str, list[Job]] = {}

    def put(self, key: str, request: JobEvent) -> None:
        """Add a request for the next pass over the Job; the caller queues the pass."""
        if request != SYNC:
            with self._lock:
                self._requests.setdefault(key, {})[request] = None

    def put_gone(self, job: Job) -> None:
        """Record a deleted Job, because another Job of this name may exist by the next pass."""
        with self._lock:
            self._gone.setdefault(job.metadata.key, []).append(job)

    def take_gone(self, key: str) -> list[Job]:
        """Return the deleted Jobs that had this key, and drop the record of these Jobs."""
        with self._lock:
            return self._gone.pop(key, [])

    @contextmanager
    def batch(self, key: str, unwritten: Iterable[JobEvent] = ()) -> Iterator[Batch]:
        """Take all requests of the Job for one pass, with Commands last.

        When the `with` block ends, put back `unwritten` requests, then unhandled requests.
        """
        with self._lock:
            requests = sorted(self._requests.pop(key, ()), key=lambda request: request.command_order)
        batch = Batch(requests)
        try:
            yield batch
        finally:
            returned = dict.fromkeys([*unwritten, *batch.left()])
            if returned:  # in front of newer requests; a repeated request keeps its place
                with self._lock:
                    self._requests[key] = returned | self._requests.get(key, {})
