"""What has happened to each Job since its last pass, and how far a pass has got with it.

Events come while a pass is under way, and a pass may fail at any call to the API server. So a pass takes all that is
pending as one `Batch` and strikes off what it has dealt with; whatever is left when the pass ends, in whichever way, is
put back before what has come meanwhile. Nothing is lost, and nothing is dealt with in another order than it happened.
"""

import threading
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from controller.job.rules.request import SYNC, Request
from muster.api.volcano.batch import Job


class Batch:
    """The requests of one pass. To iterate is to work: asking for the next request says that this one is dealt with.

    A Command is not through with that. It was carried out, but it exists until it is deleted, which has to be tried
    again in the next pass if it fails; so it is kept in the batch until `carried_out` has let go of it.
    """

    def __init__(self, requests: Iterable[Request]) -> None:
        self._waiting = deque(requests)
        self._carried_out: deque[Request] = deque()

    def __iter__(self) -> Iterator[Request]:
        while self._waiting:
            yield self._waiting[0]
            request = self._waiting.popleft()
            if request.command:
                self._carried_out.append(request)

    def add_first(self, requests: Iterable[Request]) -> None:
        """Adds what happened before all the others."""
        self._waiting.extendleft(reversed([*requests]))

    def commands(self) -> list[Request]:
        """The Commands that wait to be dealt with."""
        return [request for request in self._waiting if request.command]

    def carried_out(self) -> Iterator[Request]:
        """The Commands that the pass has carried out; asking for the next one says that this one is deleted."""
        while self._carried_out:
            yield self._carried_out[0]
            self._carried_out.popleft()

    def drop(self) -> None:
        """Gives up all that waits: there is nothing any more that it could be about."""
        self._waiting.clear()

    def left(self) -> list[Request]:
        """What the next pass has to deal with: Commands that are to be deleted, then what waits."""
        return [*self._carried_out, *self._waiting]


class PendingEvents:
    """Requests by the key of their Job, each once, in order of arrival. Thread safe.

    A mere sync is not kept: every pass syncs.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._requests: dict[str, dict[Request, None]] = {}
        self._gone: dict[str, list[Job]] = {}

    def put(self, key: str, request: Request) -> None:
        """Notes a request for the next pass over the Job; the caller sees to it that there is one."""
        if request != SYNC:
            with self._lock:
                self._requests.setdefault(key, {})[request] = None

    def put_gone(self, job: Job) -> None:
        """Notes that a Job is gone; its name may be another Job's by the next pass, so it is kept as it was."""
        with self._lock:
            self._gone.setdefault(job.metadata.key, []).append(job)

    def take_gone(self, key: str) -> list[Job]:
        """The Jobs of this key that have gone; they are the caller's now."""
        with self._lock:
            return self._gone.pop(key, [])

    @contextmanager
    def batch(self, key: str, unwritten: Iterable[Request] = ()) -> Iterator[Batch]:
        """All requests of the Job, Commands last and in the order in which they were given, for one pass.

        `unwritten` is looked at when the pass ends: requests that were dealt with, but whose outcome only this process
        knows until it is written (what else a Job that is restarting has to restart). They happened first.
        """
        with self._lock:
            requests = sorted(self._requests.pop(key, ()), key=lambda request: request.command_order)
        batch = Batch(requests)
        try:
            yield batch
        finally:
            self._put_back(key, [*unwritten, *batch.left()])

    def _put_back(self, key: str, requests: Iterable[Request]) -> None:
        """Before those that came meanwhile; one that came a second time keeps its first place."""
        returned = dict.fromkeys(requests)
        if returned:
            with self._lock:
                self._requests[key] = returned | self._requests.get(key, {})
