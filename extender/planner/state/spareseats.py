"""Ledger entries of spares: the seats that a gang keeps for members that it loses, as its placement says.

They count on their node and in the gang's queue as members do, from the writing of the placement until the gang has
taken the seat, has ended or keeps others: nobody else is placed there.
"""

from extender.planner.ledger import Entry, Kind, Ledger
from extender.planner.state.gangs import GangView
from extender.planner.state.podclass import ClassTable, PodClass
from muster.api.limits import PODS, SPARES
from muster.api.muster.placement import Placement, SpareSeats
from muster.api.names import DEFAULT_QUEUE
from muster.resources.vector import scale

Seat = tuple[SpareSeats, PodClass]
"""Seats on one node, and the class of the members that fit there."""


def runs(gang: GangView) -> bool:
    """Return True for a gang that has started and has members that have not ended."""
    return gang.started and any(pod_set.alive for pod_set in gang.pod_sets)


def seats_of(gang: GangView) -> list[Seat]:
    """Return the seats that count: none of a gang without members and without an active placement."""
    placement = gang.placement
    if placement is None or not placement.spec.spares or not (gang.active or runs(gang)):
        return []
    classes = {pod_set.name: pod_set.cls for pod_set in gang.pod_sets}
    found: list[Seat] = []
    for seats in placement.spec.spares[: SPARES.value]:
        cls = classes.get(seats.pod_set)
        if cls is not None and seats.node and seats.count <= PODS.value:
            found.append((seats, cls))
    return found


class SpareEntries:
    """Opens and closes the entries of spares, by gang."""

    def __init__(self, ledger: Ledger, classes: ClassTable) -> None:
        self._ledger = ledger
        self._classes = classes
        self._known: dict[str, tuple[Placement, list[Seat]]] = {}

    def follow(self, key: str, gang: GangView | None) -> None:
        """Have entries for the spares of a gang, and only those; None: it is gone."""
        seats = seats_of(gang) if gang is not None else []
        placement, known = self._known.get(key, (None, []))
        if not seats and not known:
            return
        if gang is not None and placement is gang.placement and seats == known:
            return
        for number in range(len(known)):
            self._ledger.close(_holder(key, number))
        self._known.pop(key, None)
        if gang is None or gang.placement is None or not seats:
            return
        self._known[key] = gang.placement, seats
        for number, (each, cls) in enumerate(seats):
            amounts = self._classes.of_amounts(scale(cls.requests, each.count))
            self._ledger.open(_holder(key, number), Entry(Kind.SPARE, each.node, amounts, key, DEFAULT_QUEUE))


def _holder(key: str, number: int) -> tuple[str, str, int]:
    return ("spare", key, number)
