"""Seats that active placements give to pods which are not bound yet.

Between the moment a placement is written and the moment its pods are bound, no pod uses the room that was given away.
So each such seat has an entry in the ledger, and the planner, the filter verb and everybody who counts see one truth.
"""

from typing import NamedTuple

from extender.planner.ledger import Entry, Kind, Ledger
from extender.planner.state.gangs import GangView
from extender.planner.state.podclass import PodClass
from extender.planner.state.podrecord import PodRecord
from muster.api.muster.gang import Seat
from muster.api.muster.placement import Placement, devices_of, node_of, seats_of
from muster.api.names import DEFAULT_QUEUE


class PlacedSeat(NamedTuple):
    """The holder of an entry: one seat of one gang, while no pod has taken it."""

    gang_uid: str
    seat: Seat


class PlacedSeats:
    """Opens and closes the entries of placed seats, by gang."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._active: dict[str, Placement] = {}

    def __contains__(self, key: str) -> bool:
        return key in self._active

    def follow(self, key: str, gang: GangView | None) -> None:
        """Has entries for the placed seats of a gang, and only those; None for a gang that is gone, or not active.

        Seats that the gang does not have take nothing, whatever its placement says.
        """
        known, placement = self._active.pop(key, None), gang.placement if gang is not None and gang.active else None
        before = {_holder(known, seat) for seat, _ in seats_of(known)} if known is not None else set()
        if gang is not None and placement is not None:
            self._active[key] = placement
            for seat, node, pod_set in gang.placed_seats():
                cls = pod_set.class_of(seat.rank) if pod_set else None
                if pod_set and cls and (seat.rank < pod_set.replicas or seat.rank in pod_set.waiting):
                    self._open(key, placement, seat, node, cls)
                    before.discard(_holder(placement, seat))
        for holder in before:
            self._ledger.close(holder)

    def pod_changed(self, key: str, record: PodRecord) -> None:
        """Follows one pod that changed: its seat is placed while it has no node, and its own once it has one."""
        placement, seat = self._active.get(key), record.seat
        if placement is None or seat is None:
            return
        node = node_of(placement, seat.pod_set, seat.rank)
        if record.taken or node is None:
            self._ledger.close(_holder(placement, seat))
        else:
            self._open(key, placement, seat, node, record.cls)

    def _open(self, key: str, placement: Placement, seat: Seat, node: str, cls: PodClass) -> None:
        devices = devices_of(placement, seat) if cls.gpu else ()
        self._ledger.open(_holder(placement, seat), Entry(Kind.PLACED, node, cls, key, DEFAULT_QUEUE, devices))


def _holder(placement: Placement, seat: Seat) -> PlacedSeat:
    return PlacedSeat(placement.spec.pod_group_uid, seat)
