"""The files with which a server speaks TLS, followed while it runs: whoever renews certificates only writes files.

What is made of them is in `muster.process.tls`, which weighs more: who serves plain HTTP does not import it.
"""

import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Generic, NamedTuple, TypeVar

import structlog
from prometheus_client import Gauge

log = structlog.get_logger()
T = TypeVar("T")


class FileError(ValueError):
    """A file that cannot be used; the message says which and why, and shows nothing of a key."""


class Files(NamedTuple):
    """The certificate and the key of a server, both PEM, and the authorities of its clients, if it asks for those."""

    cert: Path
    key: Path
    client_ca: Path | None = None

    def stamp(self) -> tuple[tuple[int, int, int], ...]:
        """Another value when one of them is another file, or has other content; OSError if one is not there."""
        return tuple((stat.st_mtime_ns, stat.st_ino, stat.st_size) for stat in (file.stat() for file in self if file))


class Followed(Generic[T]):
    """What `make` makes of the files, made anew when one of them changes.

    While they cannot be used (a writer between two of them) what was made before stays.
    """

    def __init__(self, files: Files, make: Callable[[Files], T]) -> None:
        self._files = files
        self._make = make
        self._lock = threading.Lock()
        self._stamp: tuple[tuple[int, int, int], ...] = ()
        self._made: T | None = None

    def get(self) -> T:
        """What they are now; OSError or ValueError (also ssl.SSLError) if they never could be used."""
        with self._lock:
            try:
                stamp = self._files.stamp()
                if self._made is None or stamp != self._stamp:
                    self._made = self._make(self._files)
                    self._stamp = stamp
            except (OSError, ValueError) as error:
                if self._made is None:
                    raise
                log.warning("new certificate not usable yet, the old one stays", error=str(error))
            return self._made


def memory_folder() -> str | None:
    """A folder whose files are never written to a disk; None where there is none."""
    memory = "/dev/shm"  # noqa: S108 - whoever uses it makes private files or folders there
    return memory if os.access(memory, os.W_OK) else None


def tell_end(ends_s: Callable[[], float]) -> None:
    """Has /metrics tell when the certificate ends that clients are shown; once per process."""
    Gauge(
        "muster_server_certificate_expiry_timestamp_seconds",
        "When the certificate ends that clients are shown, in seconds since the epoch.",
    ).set_function(ends_s)
