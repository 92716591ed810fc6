"""What each queue uses: the sum by queue of what stands in the ledger (`extender.planner.ledger`).

A gang's pods count for the queue that its PodGroup names, as that is now; pods without a gang for the queue that they
name. Amounts are resource vectors, not arrays: the resources that nodes offer come and go. What pods use that are being
deleted is kept apart: it is not free yet, and it is not the queue's for long.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

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


class QueueUse:
    """Amounts by queue and by gang; they depend on what is used now, and not on how it came to that."""

    def __init__(self) -> None:
        self.queues: dict[str, Use] = {}
        """By name, what its own pods use, without those of queues below it; queues that use nothing are left out."""
        self.gangs: dict[str, Use] = {}
        """By key; gangs that use nothing are left out."""
        self.queue_of: dict[str, str] = {}
        """Key of a gang whose PodGroup is known → its queue."""

    def count(
        self, gang: str | None, queue: str, requests: Mapping[str, int], sign: int, *, leaving: bool = False
    ) -> None:
        """Adds (with sign -1: takes off) what one pod takes; `queue` counts until that of its gang is known."""
        if gang is not None:
            _add(self.gangs, gang, requests, sign, leaving=leaving)
        _add(self.queues, self.queue_of.get(gang or "", queue), requests, sign, leaving=leaving)


def _add(uses: dict[str, Use], name: str, requests: Mapping[str, int], sign: int, *, leaving: bool) -> None:
    use = uses.setdefault(name, Use())
    use.add(requests, sign, leaving=leaving)
    if not use.staying and not use.leaving:
        del uses[name]
