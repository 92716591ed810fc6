"""Takes spares back: gangs that run on spares of another one leave at once when that one has lost a member.

It runs right after `allocate`, whatever the configuration says, so that borrowers go before anybody else does. Their
pods go whole gang by whole gang, or above a minimum, as with the other actions that evict, and without notice.
"""

from collections.abc import Sequence

from extender.planner import reasons
from extender.planner.actions.evicting import Asker, Evicting
from extender.planner.actions.spares import own_room, seats_returned
from extender.planner.framework.operations import Operation, Scenario
from extender.planner.framework.session import Session
from extender.planner.state.gangs import GangView
from extender.planner.state.spareseats import loans_of, seats_of
from extender.planner.victims.order import by_cost
from extender.planner.victims.pieces import Piece
from muster.api.muster.placement import SpareSeats
from muster.api.muster.reason import Reason


class Recall(Evicting):
    """Victims are gangs that run on spares of the one that asks."""

    name = "recall"
    told = False
    borrowers = True

    def worthwhile(self, gang: GangView) -> bool:
        """Return True for a gang whose spares are lent."""
        return gang.started and any(_borrows(victim, gang) for victim in self.running) if seats_of(gang) else False

    def pieces(self, session: Session, asker: Asker) -> list[Piece]:
        """Return pieces of the borrowers, the cheapest first."""
        return by_cost(self.victims_of(session, asker, lambda victim: _borrows(victim, asker.gang)), session.now)

    def agreed(self, session: Session, scenario: Scenario) -> bool:
        """Return True: who borrows has agreed to leave."""
        del session, scenario
        return True

    def reason(self, gang: GangView) -> Reason:
        """Return the reason for the owners of the victims."""
        return reasons.placements.recalled(queue=gang.queue)

    def _try(self, session: Session, gang: GangView, *, full: bool) -> bool:
        with seats_returned(session, gang), own_room(session, gang).free():
            return super()._try(session, gang, full=full)

    def spares_left(self, session: Session, gang: GangView, operations: Sequence[Operation]) -> list[SpareSeats]:
        """Return the spares on nodes to which no member comes."""
        taken = {session.snapshot.name(operation.column) for operation in operations}
        kept = gang.placement.spec.spares if gang.placement else []
        return [seats for seats in kept if seats.node not in taken]


def _borrows(victim: GangView, lender: GangView) -> bool:
    """Return True for a gang that runs on spares of this one."""
    return any(loan.lender == lender.uid for loan in loans_of(victim))
