"""Asking by conditions of pods, to which no autoscaler answers: how long a gang asks, and how long it rests then.

Nodes that came and do not hold a gang together, and those of a part of it, cost money for as long as its pods ask, and
the others of its queue wait for their turn. So a gang that has asked in vain rests, each time for longer, as a failed
ProvisioningRequest does. The memory is the process's: another one tries again from the beginning.
"""

from collections.abc import Container, Iterable
from dataclasses import dataclass

from extender.planner.scaleup.requests import pause_s


@dataclass(slots=True)
class _Tried:
    """One gang's tries."""

    since: float | None = None
    """Begin of the try that goes on; None if it does not ask."""
    vain: int = 0
    """Tries that have ended without a start."""
    rests_until: float = 0.0


class Tries:
    """The gangs that ask or have asked in vain, by UID; times are seconds since the epoch."""

    def __init__(self) -> None:
        self._tried: dict[str, _Tried] = {}

    def forget_all_but(self, waiting: Container[str]) -> None:
        """Forget gangs that do not wait any more."""
        self._tried = {uid: tried for uid, tried in self._tried.items() if uid in waiting}

    def asked_since(self, uid: str) -> float | None:
        """Return since when a gang asks; None if it does not."""
        tried = self._tried.get(uid)
        return None if tried is None else tried.since

    def in_vain(self, uid: str) -> int:
        """Return how often a gang has asked in vain."""
        tried = self._tried.get(uid)
        return 0 if tried is None else tried.vain

    def rests(self, uid: str, now: float) -> bool:
        """Return True if a gang has asked in vain and must not ask again yet."""
        tried = self._tried.get(uid)
        return tried is not None and now < tried.rests_until

    def give_up(self, uid: str, now: float) -> None:
        """End the try of a gang that asks; it rests from now on."""
        tried = self._tried.get(uid)
        if tried is not None and tried.since is not None:
            tried.since, tried.vain = None, tried.vain + 1
            tried.rests_until = now + pause_s(tried.vain)

    def ask(self, asking: Iterable[str], now: float) -> None:
        """Note the gangs that ask from now on; no others do."""
        uids = set(asking)
        for uid, tried in self._tried.items():
            if uid not in uids:
                tried.since = None
        for uid in uids:
            tried = self._tried.setdefault(uid, _Tried())
            tried.since = now if tried.since is None else tried.since
