"""Starts processes again that have ended by themselves, as a kubelet does with containers.

A process that elects a leader ends when it could not renew its lease in time, which on a slow machine is not rare.
"""

import threading
from collections.abc import Iterable
from typing import Final, Self

from musterctl.plane.process import PlaneProcess

_PAUSE_S: Final = 1.0


class Keeper:
    """Watches over parts while its `with` statement lasts."""

    def __init__(self, parts: Iterable[PlaneProcess]) -> None:
        self._parts = list(parts)
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="keeper", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def kill(self, parts: Iterable[PlaneProcess]) -> None:
        """Ends these parts with SIGKILL, and starts them no more: a cluster that is gone at once."""
        with self._lock:
            gone = list(parts)
            self._parts = [each for each in self._parts if each not in gone]
            for part in gone:
                part.kill()

    def _run(self) -> None:
        while not self._ended.wait(_PAUSE_S):
            with self._lock:
                for part in self._parts:
                    if part.word == "dead":
                        part.start()
