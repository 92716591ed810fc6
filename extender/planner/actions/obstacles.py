"""What keeps a gang from being tried at all."""

from collections import Counter
from collections.abc import Hashable, Mapping
from typing import TypeVar

from extender.planner import reasons
from extender.planner.framework import decisions
from extender.planner.framework.session import Session
from extender.planner.framework.snapshot import Snapshot
from extender.planner.state.gangs import GangView


def obstacle(session: Session, gang: GangView) -> decisions.Unschedulable | None:
    """What keeps the gang from being tried at all; None if nothing does."""
    if until := gang.waits_until(session.now):
        attempts = gang.placement.status.attempts if gang.placement else 0
        return decisions.Unschedulable(gang, reasons.pods.NOT_CREATED, reasons.pods.not_created(attempts, until))
    if not gang.started and (held := gang.gated_by_others):
        gates = sorted({gate for pod in held for gate in pod.other_gates})
        words = reasons.pods.gated(sorted(pod.name for pod in held), gates)
        return decisions.Unschedulable(gang, reasons.pods.GATED, words)
    if not session.hooks.job_ready.call(gang):
        have = sum(len(slots) for slots in gang.open_slots().values()) + gang.taken
        words = reasons.pods.too_few(have=have, wanted=gang.min_member)
        return decisions.Unschedulable(gang, reasons.pods.TOO_FEW, words)
    return None


K = TypeVar("K", bound=Hashable)

LIMIT = 256
"""Slots that may be placed at once; the gang that reaches it may exceed it, as it starts whole."""
MAX_SLOTS = 3 * LIMIT
"""Placed slots, counted as they are and not by shares, with which no gang is added but small ones."""
QUEUE_SHARE = 192
"""What a queue counts for at most when others ask."""
NAMESPACE_SHARE = 96
"""What a namespace counts for at most, in one queue, when others ask."""
GANG_SHARE = 128
"""What a gang counts for at most."""
SMALL = 8
"""Gangs of so many slots or fewer may also use the reserve."""
RESERVE = 32
"""Slots above the limit that only small gangs may use."""


LATE_S = 5.0
"""After so long only those slots of a gang count whose pods exist: the others may never come."""


class SlotLimit:
    """Counts placed slots as the limits see them.

    `since` says of a gang's UID since when it has placed slots, for those of earlier cycles; `now` is the time of the
    same clock, in seconds.
    """

    def __init__(self, snapshot: Snapshot, since: Mapping[str, float] | None = None, now: float = 0.0) -> None:
        self._gangs: Counter[str] = Counter()
        self._namespaces: Counter[tuple[str, str]] = Counter()
        self._queues: Counter[str] = Counter()
        self._total = 0
        self._slots = 0
        for gang in snapshot.gangs:
            waits = gang.placement is not None and bool(gang.placement.spec.victims)  # for others to go first
            if (slots := snapshot.placed.get(gang.key, 0)) and not waits:
                late = now - (since or {}).get(gang.uid, now) >= LATE_S
                waiting = sum(len(pod_set.waiting) for pod_set in gang.pod_sets)
                self.add(gang, min(slots, waiting) if late else slots)

    def add(self, gang: GangView, slots: int) -> None:
        """So many more slots of a gang are placed."""
        namespace = gang.queue, gang.group.metadata.namespace
        more = _grow(self._gangs, gang.key, slots, GANG_SHARE)
        more = _grow(self._namespaces, namespace, more, NAMESPACE_SHARE)
        self._total += _grow(self._queues, gang.queue, more, QUEUE_SHARE)
        self._slots += slots

    def admit(self, gang: GangView) -> bool:
        """Whether slots of this gang may be placed."""
        reserve = RESERVE if gang.min_member - gang.taken <= SMALL else 0
        own = self._namespaces[gang.queue, gang.group.metadata.namespace]
        shares = max(self._total, self._queues[gang.queue], own)
        return shares < LIMIT + reserve and self._slots < MAX_SLOTS + reserve


def _grow(counts: Counter[K], key: K, more: int, share: int) -> int:
    """Adds to a count; by how much more it counts for the others, for whom it counts for its share at most."""
    before = min(counts[key], share)
    counts[key] += more
    return min(counts[key], share) - before
