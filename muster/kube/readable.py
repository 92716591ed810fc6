"""Record of whether each kind can be read, for the log, metrics and readiness checks."""

import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import structlog
from prometheus_client import Gauge

from muster.kube.errors import APIError

log = structlog.get_logger(__name__)

FAILING = Gauge("muster_kube_watch_failing", "Kinds that cannot be watched at the moment, by resource.", ["resource"])
PATIENCE_S = 30.0
"""Time for which a kind may be unreadable before the process is not ready; longer than an API server's restart."""


@dataclass(slots=True)
class Failing:
    """Reason why a kind cannot be read, and the time of the first failure (monotonic clock and time of day)."""

    since_s: float
    clock: str
    why: str
    logged: str = ""


class Readable:
    """State of one kind, named by its plural: not read yet, read, or failing since a certain time."""

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._failing: Failing | None = None
        self.first = threading.Event()
        """Event that is set once the kind has been read."""

    @property
    def trouble(self) -> str | None:
        """A sentence with the time (UTC) and reason if the kind has been unreadable for 30 seconds; otherwise None."""
        failing = self._failing
        if failing is None or time.monotonic() < failing.since_s + PATIENCE_S:
            return None
        return f"{self._kind} cannot be read since {failing.clock}: {failing.why}"

    @property
    def synced(self) -> bool:
        """True once the kind has been read: its first list is in the store and has been reported to the handlers."""
        return self.first.is_set()

    @property
    def following(self) -> bool:
        """True while the kind is up to date: it was read, and the last request for it succeeded."""
        return self.first.is_set() and self._failing is None

    def succeeded(self) -> None:
        """Record that a request for the kind succeeded."""
        if self._failing is not None:
            self._failing = None
            FAILING.labels(self._kind).dec()

    def failed(self, error: Exception) -> None:
        """Record why the kind cannot be read, with the time of the first failure."""
        why = str(error) or type(error).__name__
        if self._failing is not None:
            self._failing.why = why
            return
        self._failing = Failing(time.monotonic(), time.strftime("%H:%M:%S UTC", time.gmtime()), why)
        FAILING.labels(self._kind).inc()

    def refused(self, error: APIError) -> None:
        """Record and log a failed read. While Muster is starting, log the same error only once.

        Before the first successful read, Muster's installation may still be in progress.
        """
        self.failed(error)
        failing = self._failing
        if failing is None or self.first.is_set() or time.monotonic() >= failing.since_s + PATIENCE_S:
            log.warning("cannot list or watch", resource=self._kind, why=str(error))
        elif failing.logged != str(error):
            failing.logged = str(error)
            log.info("waiting until the kind can be read", resource=self._kind, why=str(error))


class Read(Protocol):
    """Interface to the state of a kind that is read by a reflector or in another way."""

    @property
    def trouble(self) -> str | None:
        """A warning if objects of the kind could not be read for some time, otherwise None."""

    @property
    def synced(self) -> bool:
        """True once the kind has been read."""


def not_ready(kinds: Mapping[str, Read], *unfilled: str) -> str | None:
    """Return a sentence about kinds that have not been read yet, or cannot be read any more; None without such kinds.

    The sentence names kinds by their names in `kinds`. `unfilled` are the names of other caches that are not filled
    yet.
    """
    if troubles := [trouble for each in kinds.values() if (trouble := each.trouble)]:
        return "; ".join(troubles)
    waiting = [*(name for name, each in kinds.items() if not each.synced), *unfilled]
    return f"the caches are not filled yet: {', '.join(waiting)}" if waiting else None
