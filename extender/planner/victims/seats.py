"""Spares that running gangs give up for a gang that asks for room: pieces without pods, so nobody is evicted for them.

Seats that are lent are none: who borrows them goes for their lender alone. A gang that leaves as a whole leaves its
seats, too, so that they are pieces before its rest.
"""

from collections.abc import Sequence

import numpy as np

from extender.planner.framework import decisions
from extender.planner.framework.session import Session
from extender.planner.state.gangs import GangView
from extender.planner.state.spareseats import seats_of
from extender.planner.victims.pieces import Piece
from muster.api.muster.placement import SpareSeats


def seat_pieces(session: Session, gang: GangView) -> list[Piece]:
    """Return a piece for the seats of each node that a gang could give up; none during an active placement."""
    if gang.active or not gang.preemptable:
        return []
    found = []
    for seats, cls in seats_of(gang):
        column = session.snapshot.index.get(seats.node)
        count = seats.count - session.away[gang.uid, seats.pod_set, seats.node]
        if column is not None and count > 0:
            rows = np.repeat(session.snapshot.row_of(cls)[None, :], count, axis=0)
            here = SpareSeats(seats.pod_set, seats.node, count)
            found.append(Piece(gang, (), rest=False, columns=np.full(count, column), rows=rows, seats=(here, cls)))
    return found


def decide_given(session: Session, pieces: Sequence[Piece]) -> None:
    """Decide KeepSpares for the gangs that give seats up, with what is left of them after this cycle so far."""
    given: dict[str, tuple[GangView, list[SpareSeats]]] = {}
    for piece in pieces:
        if piece.seats is not None:
            seats = piece.seats[0]
            given.setdefault(piece.gang.key, (piece.gang, []))[1].append(seats)
            session.away[piece.gang.uid, seats.pod_set, seats.node] += seats.count
    for gang, gone in given.values():
        before = next((each for each in session.decided(decisions.KeepSpares) if each.gang is gang), None)
        kept = before.spares if before else gang.placement.spec.spares if gang.placement else []
        session.withdraw(gang, decisions.KeepSpares)
        missing = (before.missing if before else 0) + sum(each.count for each in gone)
        session.decide(decisions.KeepSpares(gang, _without(kept, gone), missing))


def _without(kept: Sequence[SpareSeats], gone: Sequence[SpareSeats]) -> list[SpareSeats]:
    """Return the seats that are left of them."""
    less = {(each.pod_set, each.node): each.count for each in gone}
    left = [SpareSeats(each.pod_set, each.node, each.count - less.get((each.pod_set, each.node), 0)) for each in kept]
    return [each for each in left if each.count > 0]
