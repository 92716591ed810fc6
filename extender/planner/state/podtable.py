"""The records of all pods, by UID and by gang, and sums over pods by gang and by queue."""

from collections import Counter

from msgspec.structs import replace

from extender.planner.state.amounts import clipped, discard, put_entry, tally
from extender.planner.state.pods import PodRecord
from muster.api import names
from muster.api.muster.gang import Slot
from muster.resources.runtime import UNKNOWN


class PodTable:
    """Table of the records of all pods."""

    def __init__(self) -> None:
        self.records: dict[str, PodRecord] = {}
        """Maps a UID to the pod's record."""
        self.taken: Counter[str] = Counter()
        """Maps a gang to the number of its bound or succeeded pods, including pods that share a slot; without zeros.
        """
        self.slots: dict[str, Counter[str]] = {}
        """Maps a gang and a pod set to the number of distinct slots that pods have taken; pods without a slot do not
        count."""
        self.alive: Counter[str] = Counter()
        """Maps a gang to the number of its pods that use a node; without zeros."""
        self.ending: dict[str, PodRecord] = {}
        """Maps a UID to the record of a pod without a gang that is on a node and declares a runtime."""
        self.asked: dict[str, dict[str, int]] = {}
        """Maps a queue to the requests of its waiting pods that belong to no gang; zeros are omitted."""
        self.leaving: dict[str, PodRecord] = {}
        """Maps a UID to the record of a pod that is being deleted and still uses a node."""
        self.reported: dict[str, PodRecord] = {}
        """Maps a UID to the record of a gang's pod on a node with an eviction notice."""
        self.in_namespace: dict[str, set[str]] = {}
        """Maps a namespace to the UIDs of its pods."""
        self._members: dict[str, dict[str, PodRecord]] = {}
        self._slot_of: dict[str, tuple[str, Slot]] = {}
        """Maps the UID of a pod that has taken a slot to its gang and slot."""
        self._sitting: Counter[tuple[str, Slot]] = Counter()

    def of_gang(self, key: str) -> list[PodRecord]:
        """Return the pods of a gang in the order in which they were first seen."""
        return list(self._members.get(key, {}).values())

    def members(self, key: str) -> int:
        """Return the number of a gang's known pods."""
        return len(self._members.get(key, ()))

    def slot_taken(self, gang: str | None, slot: Slot | None) -> bool:
        """Return True if a pod has taken this slot of the gang."""
        return (gang, slot) in self._sitting

    def put(self, record: PodRecord) -> PodRecord | None:
        """Store a pod's record; return the pod's previous record."""
        known = self._replace(record.uid, record)
        uid, in_use = record.uid, record.uses_node
        self.in_namespace.setdefault(record.namespace, set()).add(uid)
        if record.gang:
            self._members.setdefault(record.gang, {})[uid] = record
        elif record.runtime is not UNKNOWN and in_use:
            self.ending[uid] = record
        has_notice = record.gang and record.alive and record.answer is not None and record.answer.evict_at
        put_entry(self.leaving, uid, record if record.terminating and in_use else None)
        put_entry(self.reported, uid, record if has_notice else None)
        return known

    def remove(self, uid: str) -> PodRecord | None:
        """Remove a pod that is gone; return the pod's record."""
        known = self._replace(uid, None)
        self.leaving.pop(uid, None)
        self.reported.pop(uid, None)
        if known is not None:
            discard(self.in_namespace, known.namespace, uid)
        return known

    def bound(self, uid: str, node: str, devices: tuple[int, ...] = ()) -> PodRecord | None:
        """Return the pod's record, changed to this node; None if the pod is gone or already bound."""
        record = self.records.get(uid)
        if record is None or record.node:
            return None
        return replace(record, node=node, gated=False, devices=devices or record.devices)

    def _replace(self, uid: str, record: PodRecord | None) -> PodRecord | None:
        """Replace a pod's record in all sums (None: the pod is gone); return the previous record."""
        known = put_entry(self.records, uid, record)
        for each, sign in ((known, -1), (record, 1)):
            if each is not None:
                self._count_pod(each, sign)
                self._ask(each, sign)
        self._sit(uid, record)
        self.ending.pop(uid, None)
        if known is not None and known.gang and (record is None or record.gang != known.gang):
            members = self._members[known.gang]
            del members[uid]
            if not members:
                del self._members[known.gang]
        return known

    def _ask(self, record: PodRecord, sign: int) -> None:
        """Add the request of a waiting pod without a gang to its queue's requests; with sign -1, subtract it."""
        if record.gang or not (record.ours and record.waiting) or record.gated or record.other_gates:
            return
        queue = record.queue or names.DEFAULT_QUEUE
        asked = self.asked.setdefault(queue, {})
        for resource, amount in record.cls.requests.items():
            tally(asked, resource, sign * clipped(amount))
        if not asked:
            del self.asked[queue]

    def _sit(self, uid: str, record: PodRecord | None) -> None:
        left = self._slot_of.pop(uid, None)
        if left is not None:
            tally(self._sitting, left, -1)
            if left not in self._sitting:
                gang, slot = left
                tally(self.slots[gang], slot.pod_set, -1)
                if not self.slots[gang]:
                    del self.slots[gang]
        if record is not None and record.gang and record.slot is not None and record.taken:
            place = self._slot_of[uid] = (record.gang, record.slot)
            self._sitting[place] += 1
            if self._sitting[place] == 1:
                tally(self.slots.setdefault(record.gang, Counter()), record.slot.pod_set, 1)

    def _count_pod(self, record: PodRecord, change: int) -> None:
        for counter, counts in ((self.taken, record.taken), (self.alive, record.alive)):
            if record.gang and counts:
                tally(counter, record.gang, change)
