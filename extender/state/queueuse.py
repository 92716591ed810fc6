"""What each queue uses, kept up to date by every charge of a node: pods on nodes, and seats that placements hold.

A gang's pods count for the queue that its PodGroup names, as that is now; pods without a gang for the queue that they
name. Amounts are resource vectors, not arrays: the resources that nodes offer come and go. What pods use that are being
deleted is kept apart: it is not free yet, and it is not the queue's for long.
"""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field

from extender.state.amounts import clipped
from extender.state.podclass import PodClass
from muster.resources.vector import Vector

NO_QUEUE = ""
"""Of pods that are none of Muster's."""


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


@dataclass(frozen=True, slots=True)
class _Entry:
    owner: str
    cls: PodClass
    leaving: bool


class QueueUse:
    """Amounts by queue and by gang. An owner is the key of a gang, or for pods without one `queue:` and its name."""

    def __init__(self) -> None:
        self.queues: dict[str, Use] = {}
        """By name, what its own pods use, without those of queues below it."""
        self.gangs: dict[str, Use] = {}
        """By key; gangs that use nothing are left out."""
        self._queue_of: dict[str, str] = {}
        self._entries: dict[Hashable, _Entry] = {}

    def charge(self, holder: Hashable, gang: str | None, queue: str, cls: PodClass, *, leaving: bool = False) -> None:
        """Lets a holder use what `cls` requests. `queue` counts for pods without a gang, or until that is known."""
        owner = gang or f"queue:{queue}"
        entry = _Entry(owner, cls, leaving)
        known = self._entries.get(holder)
        if known == entry:
            return
        self.discharge(holder)
        if gang is None:
            self._queue_of[owner] = queue
        else:
            self._queue_of.setdefault(owner, queue)
        self._entries[holder] = entry
        self._count(entry, 1)

    def discharge(self, holder: Hashable) -> None:
        """Gives back what a holder uses; nothing happens if it uses nothing."""
        entry = self._entries.pop(holder, None)
        if entry is not None:
            self._count(entry, -1)

    def moved(self, gang: str, queue: str) -> None:
        """A gang is in this queue from now on, with all that it uses."""
        before = self._queue_of.get(gang)
        self._queue_of[gang] = queue
        use = self.gangs.get(gang)
        if before == queue or use is None:
            return
        for name, sign in ((before, -1), (queue, 1)):
            if name is not None:
                self._add(name, use.staying, sign, leaving=False)
                self._add(name, use.leaving, sign, leaving=True)

    def gone(self, gang: str) -> None:
        """The PodGroup is gone; what its pods still use stays with the queue until they are gone too."""
        if gang not in self.gangs:
            self._queue_of.pop(gang, None)

    def _count(self, entry: _Entry, sign: int) -> None:
        owner, requests = entry.owner, entry.cls.requests
        self._add(self._queue_of[owner], requests, sign, leaving=entry.leaving)
        if owner.startswith("queue:"):
            return
        use = self.gangs.setdefault(owner, Use())
        use.add(requests, sign, leaving=entry.leaving)
        if not use.staying and not use.leaving:
            del self.gangs[owner]

    def _add(self, queue: str, requests: Mapping[str, int], sign: int, *, leaving: bool) -> None:
        use = self.queues.setdefault(queue, Use())
        use.add(requests, sign, leaving=leaving)
        if not use.staying and not use.leaving:
            del self.queues[queue]
