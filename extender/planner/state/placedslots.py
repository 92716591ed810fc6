"""Ledger entries of placed slots: an entry holds capacity from the placement of a slot until its pod is bound.

If a member will restart on another node because of a move or a repair, capacity on the new node is held for the member.
Capacity on the new node is held even while the member is still running on its old node during its notice period. The
gang's queue is charged only once, for the old node, until the member leaves. The same rules apply if a member that
shares GPUs gets other GPUs of the same node.
"""

from collections.abc import Iterator
from typing import NamedTuple

from extender.planner.ledger import Ledger
from extender.planner.ledgerentry import EntryKind, LedgerEntry
from extender.planner.state.gangs import GangView
from extender.planner.state.podclass import PodClass
from extender.planner.state.pods import PodRecord
from extender.planner.state.podset import PodSetView
from muster.api.muster.gang import Slot
from muster.api.muster.noderuns import slots_of
from muster.api.muster.placement import Placement, devices_of, node_of_slot, own_victims
from muster.api.names import DEFAULT_QUEUE


class PlacedSlot(NamedTuple):
    """A placed slot of a gang, as the holder of a ledger entry."""

    gang_uid: str
    slot: Slot


class PlacedSlots:
    """The ledger entries of placed slots; all entries of a gang are updated together."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._active: dict[str, Placement] = {}

    def __contains__(self, key: str) -> bool:
        return key in self._active

    def follow(self, key: str, gang: GangView | None) -> None:
        """Set the entries to exactly the placed slots of a gang; without an active placement, remove all entries."""
        known, placement = self._active.pop(key, None), gang.placement if gang is not None and gang.active else None
        before = {_holder(known, slot) for slot, _ in slots_of(known)} if known is not None else set()
        if gang is not None and placement is not None:
            self._active[key] = placement
            for slot, node, pod_set in gang.placed_slots():
                cls = self._class_of(placement, slot, pod_set)
                if cls:
                    self._open(key, placement, slot, node, cls)
                    before.discard(_holder(placement, slot))
            for pod, slot, node in _coming_again(gang):
                self._open(key, placement, slot, node, pod.cls, counts=not pod.alive)
                before.discard(_holder(placement, slot))
        for holder in before:
            self._ledger.close(holder)

    def _class_of(self, placement: Placement, slot: Slot, pod_set: PodSetView | None) -> PodClass | None:
        """Return the class of the pod that will take the slot; None if no pod will be created.

        Without a template, the owner is expected to re-create a lost pod unchanged until the placement ends. For
        example, a pod pinned to another node must be re-created, and no other gang may take its capacity in the
        meantime.
        """
        if pod_set and (slot.rank < pod_set.replicas or slot.rank in pod_set.waiting):
            return pod_set.class_of(slot.rank)
        if pod_set and pod_set.template:
            return None
        known = self._ledger.entries.get(_holder(placement, slot))
        return known.cls if known is not None else None

    def pod_changed(self, key: str, record: PodRecord) -> None:
        """Update the entry of a changed pod's slot, which stays placed until the pod is on the planned node."""
        placement, slot = self._active.get(key), record.slot
        if placement is None or slot is None:
            return
        node = node_of_slot(placement, slot)
        if node is None or _sits(record, placement, slot, node):
            self._ledger.close(_holder(placement, slot))
        else:
            self._open(key, placement, slot, node, record.cls, counts=not record.alive)

    def _open(
        self, key: str, placement: Placement, slot: Slot, node: str, cls: PodClass, *, counts: bool = True
    ) -> None:
        devices, queue = devices_of(placement, slot) if cls.gpu else (), DEFAULT_QUEUE if counts else ""
        self._ledger.open(_holder(placement, slot), LedgerEntry(EntryKind.PLACED, node, cls, key, queue, devices))


def _holder(placement: Placement, slot: Slot) -> PlacedSlot:
    return PlacedSlot(placement.spec.pod_group_uid, slot)


def _sits(pod: PodRecord, placement: Placement, slot: Slot, node: str) -> bool:
    """Return True if a pod is on its slot's planned node and uses the planned GPUs of this node."""
    if pod.node != node or not pod.devices:
        return pod.node == node
    return devices_of(placement, slot) in {(), pod.devices}


def _coming_again(gang: GangView) -> Iterator[tuple[PodRecord, Slot, str]]:
    """Yield the members that hold a slot and will restart elsewhere, each with its slot and its new node.

    The yielded members are not on their planned nodes. If the gang's own members are evicted for the placement,
    finished members that will run again are also yielded.
    """
    taken = [pod for pod in gang.pods if pod.taken]
    if gang.placement is None or not gang.active or not taken:
        return
    planned, evicted = dict(slots_of(gang.placement)), bool(own_victims(gang.placement))
    ended = {pod.uid for pod in gang.does_again}
    for pod in taken:
        node = planned.get(pod.slot) if pod.slot is not None else None
        if pod.slot is None or node is None:
            continue
        elsewhere = not _sits(pod, gang.placement, pod.slot, node)
        again = elsewhere if pod.alive else pod.uid in ended and (evicted or elsewhere)
        if again:
            yield pod, pod.slot, node
