"""Reasons to skip a gang without a search, and the limit on the number of slots that are placed but not yet bound."""

from collections import Counter
from collections.abc import Hashable, Mapping
from typing import TypeVar

from extender.planner import reasons
from extender.planner.framework import decisions
from extender.planner.framework.session import Session
from extender.planner.framework.snapshot import Snapshot
from extender.planner.state.gangs import GangView
from muster.api.muster.placement import PlacementStatus
from muster.api.muster.reason import NOTHING, Reason, stored
from muster.api.volcano.batch import is_job

K = TypeVar("K", bound=Hashable)
LIMIT = 256
"""Maximum number of placed slots. A single gang may exceed the limit, because all members of its minimum start
together."""
MAX_SLOTS = 3 * LIMIT
"""Number of placed slots above which only small gangs are placed; slots beyond a share also count."""
QUEUE_SHARE = 192
"""Maximum number of a queue's placed slots that count towards the limit for other queues."""
NAMESPACE_SHARE = 96
"""Maximum number of a namespace's placed slots in one queue that count towards the limit for other namespaces."""
GANG_SHARE = 128
"""Maximum number of one gang's placed slots that count towards the limit."""
SMALL = 8
"""Maximum size, in slots, of a gang that may use the reserved part of the limit on placed slots."""
RESERVE = 32
"""Number of slots above the limit on placed slots that only small gangs may use."""
LATE_S = 5.0
"""Time after which a placed slot counts only if its pod exists, because missing pods may never be created."""


def obstacle(session: Session, gang: GangView) -> decisions.Unschedulable | None:
    """Return the reason to skip a gang: back-off, completion, other controllers' scheduling gates, or too few pods."""
    if until := gang.waits_until(session.now):
        return _backs_off(gang, until)
    if gang.world_ended:
        ended = gang.taken - sum(pod_set.alive for pod_set in gang.pod_sets)
        return decisions.Unschedulable(gang, reasons.pods.WORLD_ENDED, reasons.pods.world_ended(ended))
    if not gang.compared:
        return decisions.Unschedulable(gang, reasons.pods.NOT_COMPARED, reasons.pods.not_compared)
    if not gang.started and (held := gang.gated_by_others):
        gates = sorted({gate for pod in held for gate in pod.other_gates})
        words = reasons.pods.gated(sorted(pod.name for pod in held), gates)
        return decisions.Unschedulable(gang, reasons.pods.GATED, words)
    return None if session.hooks.job_ready.call(gang) else _too_few(session, gang)


def _too_few(session: Session, gang: GangView) -> decisions.Unschedulable:
    """Return why a gang with too few pods waits: because it was evicted, or because pods are missing."""
    have = sum(len(slots) for slots in gang.open_slots.values()) + gang.taken
    if not have and (evicted := gang.group.evicted):
        return decisions.Unschedulable(gang, reasons.placements.EVICTED, evicted)
    why = reasons.pods.too_few(have=have, wanted=gang.min_member)
    meta = gang.group.metadata
    if meta.namespace in session.snapshot.left_namespaces and not is_job(meta.controller):
        why = why.also(reasons.pods.left(namespace=meta.namespace))
    return decisions.Unschedulable(gang, reasons.pods.TOO_FEW, why.also(leaving(gang)))


def leaving(gang: GangView) -> Reason:
    """Return a reason if all pods of a gang are being deleted; empty if at least one pod stays."""
    there = [pod.terminating for pod in gang.pods if pod.waiting or pod.uses_node or pod.terminating]
    return reasons.pods.leaving(len(there)) if there and all(there) else NOTHING


def _backs_off(gang: GangView, until: str) -> decisions.Unschedulable:
    """Return why a gang is not placed before `until` (RFC 3339): its pods were not bound, or were not created."""
    status = gang.placement.status if gang.placement else PlacementStatus()
    if gang.was_not_bound:
        why = reasons.pods.not_bound(status.attempts, until).also(stored(status.why, status.message))
        return decisions.Unschedulable(gang, reasons.pods.NOT_BOUND, why)
    return decisions.Unschedulable(gang, reasons.pods.NOT_CREATED, reasons.pods.not_created(status.attempts, until))


class SlotLimit:
    """Limits on placed slots: in total, per queue, per namespace and per gang.

    The total limit keeps the waiting time of bind calls at the barrier short. Slots whose pods are never created stay
    placed until the placement's deadline. Slots of other gangs need not wait for this deadline, because each queue has
    a share of the limit and small gangs have a reserve. `since` maps the UID of each gang with placed slots to the time
    at which its first slots were placed.
    """

    def __init__(self, snapshot: Snapshot, since: Mapping[str, float], now: float) -> None:
        self._gangs: Counter[str] = Counter()
        self._namespaces: Counter[tuple[str, str]] = Counter()
        self._queues: Counter[str] = Counter()
        self._total = 0
        self._slots = 0
        for gang in snapshot.gangs:
            waits = gang.placement is not None and bool(gang.placement.spec.victims)  # so that other gangs come first
            if (slots := snapshot.placed.get(gang.key, 0)) and not waits:
                late = now - since.get(gang.uid, now) >= LATE_S
                waiting = sum(len(pod_set.waiting) for pod_set in gang.pod_sets)
                self.add(gang, min(slots, waiting) if late else slots)

    def add(self, gang: GangView, slots: int) -> None:
        """Count additional placed slots of a gang."""
        namespace = gang.queue, gang.group.metadata.namespace
        more = _grow(self._gangs, gang.key, slots, GANG_SHARE)
        more = _grow(self._namespaces, namespace, more, NAMESPACE_SHARE)
        self._total += _grow(self._queues, gang.queue, more, QUEUE_SHARE)
        self._slots += slots

    def admit(self, gang: GangView) -> bool:
        """Return True if the limits allow more placed slots for this gang."""
        reserve = RESERVE if gang.min_member - gang.taken <= SMALL else 0
        own = self._namespaces[gang.queue, gang.group.metadata.namespace]
        shares = max(self._total, self._queues[gang.queue], own)
        return shares < LIMIT + reserve and self._slots < MAX_SLOTS + reserve


def _grow(counts: Counter[K], key: K, more: int, share: int) -> int:
    """Increase a count by a number, and return by how much min(count, share) increases."""
    before = min(counts[key], share)
    counts[key] += more
    return min(counts[key], share) - before
