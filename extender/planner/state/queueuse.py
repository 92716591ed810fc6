"""What each queue uses, kept up to date by every charge of a node: pods on nodes, and seats that placements hold.

A gang's pods count for the queue that its PodGroup names, as that is now; pods without a gang for the queue that they
name. Amounts are resource vectors, not arrays: the resources that nodes offer come and go. What pods use that are being
deleted is kept apart: it is not free yet, and it is not the queue's for long.
"""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from extender.planner.state.amounts import clipped
from muster.resources.vector import Vector


@dataclass(slots=True)
class Use:
    """What somebody uses."""

    staying: Vector = field(default_factory=dict)
    leaving: Vector = field(default_factory=dict)
    """What pods use that are being deleted."""

    def add(self, requests: Mapping[str, int], sign: int, *, leaving: bool) -> None:
        """Adds (or with sign -1 takes off) what one pod requests."""
        target = self.leaving if leaving else self.staying
        for resource, amount in requests.items():
            total = target.get(resource, 0) + sign * clipped(amount)
            if total:
                target[resource] = total
            else:
                target.pop(resource, None)

    def copy(self) -> "Use":
        """Another one with the same amounts."""
        return Use(dict(self.staying), dict(self.leaving))


class _Entry(NamedTuple):
    gang: str | None
    queue: str
    """What the pod itself names, which counts while its gang's queue is not known."""
    requests: Mapping[str, int]
    leaving: bool


class QueueUse:
    """Amounts by queue and by gang; what is kept depends on what there is now, and not on how it came to that."""

    def __init__(self) -> None:
        self.queues: dict[str, Use] = {}
        """By name, what its own pods use, without those of queues below it; queues that use nothing are left out."""
        self.gangs: dict[str, Use] = {}
        """By key; gangs that use nothing are left out."""
        self._queue_of: dict[str, str] = {}
        """Key of a gang whose PodGroup is known → its queue."""
        self._entries: dict[Hashable, _Entry] = {}
        self._holders: dict[str, set[Hashable]] = {}
        """By key of a gang."""

    def charge(
        self, holder: Hashable, gang: str | None, queue: str, requests: Mapping[str, int], *, leaving: bool = False
    ) -> None:
        """Lets a holder use what it requests, a mapping that may not be changed.

        `queue` counts for pods without a gang, or until that is known.
        """
        entry = _Entry(gang, queue, requests, leaving)
        known = self._entries.get(holder)
        if known is not None:
            if known == entry:
                return
            self.discharge(holder)
        self._entries[holder] = entry
        if gang is not None:
            self._holders.setdefault(gang, set()).add(holder)
            _add(self.gangs, gang, entry, 1)
        _add(self.queues, self._queue(entry), entry, 1)

    def discharge(self, holder: Hashable) -> None:
        """Gives back what a holder uses; nothing happens if it uses nothing."""
        entry = self._entries.pop(holder, None)
        if entry is None:
            return
        if entry.gang is not None:
            holders = self._holders[entry.gang]
            holders.discard(holder)
            if not holders:
                del self._holders[entry.gang]
            _add(self.gangs, entry.gang, entry, -1)
        _add(self.queues, self._queue(entry), entry, -1)

    def moved(self, gang: str, queue: str | None) -> None:
        """A gang is in this queue from now on, with all that it uses; None: its PodGroup is gone."""
        if self._queue_of.get(gang) == queue:
            return
        entries = [self._entries[holder] for holder in self._holders.get(gang, ())]
        for entry in entries:
            _add(self.queues, self._queue(entry), entry, -1)
        if queue is None:
            del self._queue_of[gang]
        else:
            self._queue_of[gang] = queue
        for entry in entries:
            _add(self.queues, self._queue(entry), entry, 1)

    def _queue(self, entry: _Entry) -> str:
        return self._queue_of.get(entry.gang or "", entry.queue)


def _add(uses: dict[str, Use], name: str, entry: _Entry, sign: int) -> None:
    use = uses.get(name)
    if use is None:
        use = uses[name] = Use()
    use.add(entry.requests, sign, leaving=entry.leaving)
    if not use.staying and not use.leaving:
        del uses[name]
