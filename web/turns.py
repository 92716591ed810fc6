"""One at a time: what thinks for seconds leaves the threads and the processor to other pages."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from typing import Final

from starlette.exceptions import HTTPException

WAITING: Final = 4
"""Requests that wait for their turn; each has one of the server's forty threads meanwhile."""
PATIENCE_S: Final = 20.0
"""Who waits longer is told to come back."""


class Turns:
    """Lets one request after the other do something; `what` says it in the message to those that are too many."""

    def __init__(self, what: str, waiting: int = WAITING, patience_s: float = PATIENCE_S) -> None:
        self._what = what
        self._patience_s = patience_s
        self._places = threading.BoundedSemaphore(waiting + 1)
        self._turn = threading.Lock()

    @contextmanager
    def taken(self) -> Iterator[None]:
        """Wait for the turn, and have it; HTTPException 429 if too many wait, or for too long."""
        if not self._places.acquire(blocking=False):
            raise self._later()
        try:
            if not self._turn.acquire(timeout=self._patience_s):
                raise self._later()
            try:
                yield
            finally:
                self._turn.release()
        finally:
            self._places.release()

    def _later(self) -> HTTPException:
        why = f"others {self._what} at this moment: try again in some seconds"
        return HTTPException(HTTPStatus.TOO_MANY_REQUESTS, why, {"retry-after": "10"})
