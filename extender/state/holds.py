"""Seats that active placements hold on nodes until their pods are bound: room that nobody else may have."""

from extender.state.gangs import ACTIVE, GangView, PodRecord, Seat, seats_of
from extender.state.nodes import NodeTable
from muster.api.placement import Placement, node_of


class Holds:
    """The charges of seats in a table of nodes, by gang."""

    def __init__(self, nodes: NodeTable) -> None:
        self._nodes = nodes
        self._held: dict[str, Placement] = {}

    def __contains__(self, key: str) -> bool:
        return key in self._held

    def hold(self, key: str, gang: GangView | None) -> None:
        """Charge the seats of the gang's active placement, and only those; None for a gang that is gone."""
        previous = self._held.pop(key, None)
        before = {seat for seat, _ in seats_of(previous)} if previous else set()
        placement = gang.placement if gang else None
        if gang and placement and placement.status.phase in ACTIVE:
            self._held[key] = placement
            sets = {pod_set.name: pod_set for pod_set in gang.pod_sets}
            for seat, node in seats_of(placement):
                pod_set = sets.get(seat.pod_set)
                cls = pod_set.class_of(seat.index) if pod_set else None
                if pod_set and cls and seat.index not in pod_set.taken:
                    self._nodes.charge(seat, node, cls)
                    before.discard(seat)
        for seat in before:
            self._nodes.discharge(seat)

    def seat_changed(self, key: str, record: PodRecord) -> None:
        """One pod changed: its seat is held while it has no node, and free once the pod itself is charged."""
        placement = self._held.get(key)
        if placement is None or record.member is None:
            return
        seat = Seat(placement.spec.pod_group_uid, record.member.pod_set, record.member.index)
        node = node_of(placement, seat.pod_set, seat.index)
        if record.taken or node is None:
            self._nodes.discharge(seat)
        else:
            self._nodes.charge(seat, node, record.cls)

    def seats(self) -> int:
        """How many are held, over all gangs."""
        return sum(
            1 for held in self._held.values() for seat, _ in seats_of(held) if self._nodes.charged(seat) is not None
        )
