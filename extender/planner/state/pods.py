"""Pods as the planner keeps them: a small record each, found by UID and by gang.

A whole pod is some 15 KiB and there may be 50,000, so that only what decides is kept of it
(`planner.state.podrecord`).
"""

from collections import Counter
from collections.abc import Hashable
from typing import TypeVar

from msgspec.structs import replace

from extender.planner.state.podrecord import PodRecord
from muster.api.muster.gang import Slot
from muster.resources.runtime import UNKNOWN

K = TypeVar("K", bound=Hashable)
_GOES_ON = frozenset({"", "Pending", "Running"})


def goes_on(before: PodRecord, after: PodRecord) -> bool:
    """Whether a pod that was bound still is, to that node, and has not ended: its kubelet may have told of it."""
    same = (before.node, before.gang, before.cls) == (after.node, after.gang, after.cls)
    return bool(after.node) and same and not after.terminating and {before.phase, after.phase} <= _GOES_ON


def uses_the_same(before: PodRecord, after: PodRecord) -> bool:
    """Whether a pod that goes on uses what it used, so that nothing has to be counted anew."""
    return goes_on(before, after) and (before.queue, before.devices, before.slot, before.ours) == (
        after.queue,
        after.devices,
        after.slot,
        after.ours,
    )


class PodTable:
    """The records of all pods."""

    def __init__(self) -> None:
        self.records: dict[str, PodRecord] = {}
        """By UID."""
        self.taken: Counter[str] = Counter()
        """Key of a gang → pods of it that are bound or have succeeded; gangs without any are left out.

        Never less than the gang's slots that are taken, and known without a look at its pods.
        """
        self.slots: dict[str, Counter[str]] = {}
        """Key of a gang → pod set → slots that are taken, each once; of pods that were given none yet nothing is told.

        Never more than what a look at its pods finds.
        """
        self.alive: Counter[str] = Counter()
        """Key of a gang → pods of it that use a node; gangs without any are left out."""
        self.ending: dict[str, PodRecord] = {}
        """Pods of no gang that are on a node and say how long they run, by UID."""
        self.leaving: dict[str, PodRecord] = {}
        """Pods that are being deleted and still use a node, by UID."""
        self._members: dict[str, dict[str, PodRecord]] = {}
        self._slot_of: dict[str, tuple[str, Slot]] = {}
        """UID → gang and slot of the pods that have taken one."""
        self._sitting: Counter[tuple[str, Slot]] = Counter()

    def of_gang(self, key: str) -> list[PodRecord]:
        """The pods of a gang, in the order in which they were first seen."""
        return list(self._members.get(key, {}).values())

    def slot_taken(self, gang: str | None, slot: Slot | None) -> bool:
        """Whether some pod has this slot of the gang and is bound or done."""
        return (gang, slot) in self._sitting

    def put(self, record: PodRecord) -> PodRecord | None:
        """Keeps a record; returns the one that it takes the place of."""
        known = self.records.get(record.uid)
        self._count(known, -1)
        self._count(record, 1)
        self._sit(record.uid, record)
        if known is not None and known.gang and known.gang != record.gang:
            self._leave(known.gang, known.uid)
        self.records[record.uid] = record
        self.ending.pop(record.uid, None)
        if not record.gang and record.runtime is not UNKNOWN and record.uses_node:
            self.ending[record.uid] = record
        if record.terminating and record.uses_node:
            self.leaving[record.uid] = record
        else:
            self.leaving.pop(record.uid, None)
        if record.gang:
            self._members.setdefault(record.gang, {})[record.uid] = record
        return known

    def remove(self, uid: str) -> PodRecord | None:
        """Forgets a pod that is gone; returns its record."""
        self.ending.pop(uid, None)
        self.leaving.pop(uid, None)
        record = self.records.pop(uid, None)
        self._count(record, -1)
        self._sit(uid, None)
        if record is not None and record.gang:
            self._leave(record.gang, uid)
        return record

    def bound(self, uid: str, node: str, devices: tuple[int, ...] = ()) -> PodRecord | None:
        """The record of a pod as it is once it is bound to this node; None if it is gone, or bound already."""
        record = self.records.get(uid)
        if record is None or record.node:
            return None
        return replace(record, node=node, gated=False, devices=devices or record.devices)

    def _leave(self, gang: str, uid: str) -> None:
        members = self._members.get(gang, {})
        members.pop(uid, None)
        if not members:
            self._members.pop(gang, None)

    def _sit(self, uid: str, record: PodRecord | None) -> None:
        left = self._slot_of.pop(uid, None)
        if left is not None:
            _add(self._sitting, left, -1)
            if left not in self._sitting:
                gang, slot = left
                _add(self.slots[gang], slot.pod_set, -1)
                if not self.slots[gang]:
                    del self.slots[gang]
        if record is not None and record.gang and record.slot is not None and record.taken:
            place = self._slot_of[uid] = (record.gang, record.slot)
            self._sitting[place] += 1
            if self._sitting[place] == 1:
                _add(self.slots.setdefault(record.gang, Counter()), record.slot.pod_set, 1)

    def _count(self, record: PodRecord | None, change: int) -> None:
        if record is None or not record.gang:
            return
        for counter, counts in ((self.taken, record.taken), (self.alive, record.alive)):
            if counts:
                _add(counter, record.gang, change)


def _add(counter: Counter[K], key: K, change: int) -> None:
    counter[key] += change
    if not counter[key]:
        del counter[key]
