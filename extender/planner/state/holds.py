"""Seats that active placements hold on nodes until their pods are bound: room that nobody else may have.

Between the moment a placement is written and the moment its pods are bound, no pod uses the room that was given away.
A charge per open seat stands in for it, so that the planner, the filter verb and everybody who counts see one truth.
"""

from collections import Counter
from typing import NamedTuple

from extender.planner.state.gangs import ACTIVE, GangView
from extender.planner.state.nodes import NodeTable
from extender.planner.state.podclass import PodClass
from extender.planner.state.podrecord import PodRecord
from extender.planner.state.queueuse import QueueUse
from muster.api.muster.gang import Seat
from muster.api.muster.placement import Placement, devices_of, node_of, seats_of
from muster.api.names import DEFAULT_QUEUE


class HeldSeat(NamedTuple):
    """The holder of a charge: one seat of one gang, while no pod has taken it."""

    gang_uid: str
    seat: Seat


class Holds:
    """The charges of held seats in a table of nodes, by gang."""

    def __init__(self, nodes: NodeTable, queue_use: QueueUse) -> None:
        self._nodes = nodes
        self._queue_use = queue_use
        self._held: dict[str, Placement] = {}
        self._open: Counter[str] = Counter()
        """Key of a gang → seats that are charged for it; gangs without any are left out."""

    def __contains__(self, key: str) -> bool:
        return key in self._held

    def hold(self, key: str, gang: GangView | None) -> None:
        """Charges the seats of the gang's active placement, and only those; None for a gang that is gone.

        Seats that the gang does not have hold nothing, whatever its placement says.
        """
        before = {holder for holder, _ in _holders(self._held.pop(key, None))}
        placement = gang.placement if gang else None
        if gang and placement and placement.status.phase in ACTIVE:
            self._held[key] = placement
            sets = {pod_set.name: pod_set for pod_set in gang.pod_sets}
            for holder, node in _holders(placement):
                pod_set, rank = sets.get(holder.seat.pod_set), holder.seat.rank
                cls = pod_set.class_of(rank) if pod_set else None
                wanted = pod_set and (rank < pod_set.replicas or rank in pod_set.waiting)
                if pod_set and wanted and cls and rank not in pod_set.taken:
                    self._charge(key, holder, node, cls, devices_of(placement, holder.seat) if cls.gpu else ())
                    before.discard(holder)
        for holder in before:
            self._discharge(key, holder)

    def seat_changed(self, key: str, record: PodRecord) -> None:
        """Follows one pod that changed: its seat is held while it has no node, and free once the pod is charged."""
        placement = self._held.get(key)
        if placement is None or record.seat is None:
            return
        holder = HeldSeat(placement.spec.pod_group_uid, record.seat)
        node = node_of(placement, record.seat.pod_set, record.seat.rank)
        if record.taken or node is None:
            self._discharge(key, holder)
        else:
            devices = devices_of(placement, record.seat) if record.cls.gpu else ()
            self._charge(key, holder, node, record.cls, devices)

    def _charge(self, key: str, holder: HeldSeat, node: str, cls: PodClass, devices: tuple[int, ...]) -> None:
        self._open[key] += self._nodes.charged(holder) is None
        self._nodes.charge(holder, node, cls, devices=devices)
        self._queue_use.charge(holder, key, DEFAULT_QUEUE, self._nodes.counted(cls, node))

    def _discharge(self, key: str, holder: HeldSeat) -> None:
        if self._nodes.discharge(holder) is not None:
            self._open[key] -= 1
            if not self._open[key]:
                del self._open[key]
        self._queue_use.discharge(holder)

    def of_gang(self, key: str) -> int:
        """How many seats are held for a gang."""
        return self._open[key]

    def seats(self) -> dict[str, int]:
        """Key of a gang → how many seats are held for it; gangs without any are left out."""
        return dict(self._open)


def _holders(placement: Placement | None) -> list[tuple[HeldSeat, str]]:
    """The seats of a placement as holders of charges, each with its node; none without a placement."""
    if placement is None:
        return []
    return [(HeldSeat(placement.spec.pod_group_uid, seat), node) for seat, node in seats_of(placement)]
