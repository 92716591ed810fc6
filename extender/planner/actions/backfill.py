"""Places best-effort gangs of strictly ordered queues whose head waits for room.

Volcano's action places all pods without requests; here `allocate` places the others. A pod without requests takes none
of the head's room but one of the pods that its node can have; reservations of those are kept.
"""

from extender.planner import reasons
from extender.planner.actions.allocate import wants_nodes
from extender.planner.actions.obstacles import obstacle
from extender.planner.actions.search import SlotSearch, runs_of_operations
from extender.planner.framework import decisions
from extender.planner.framework.session import Session
from extender.planner.framework.statement import Statement
from extender.planner.state.gangs import GangView
from muster.resources.vector import PODS


class Backfill:
    """Tries gangs that wait because of strict order. Comes after `allocate`."""

    name = "backfill"

    def execute(self, session: Session) -> None:
        """Decide Place for best-effort gangs that fit."""
        for waits in session.decided(decisions.Unschedulable):
            behind = waits.reason == reasons.queues.STRICT_ORDER
            if behind and _best_effort(waits.gang) and session.attempt(waits.gang, _placed):
                session.decisions.remove(waits)


def _best_effort(gang: GangView) -> bool:
    """Return True if all pods of the gang are known, and none has requests."""
    classes = gang.all_classes
    return bool(classes) and all(
        cls and not any(cls.requests[name] for name in cls.requests if name != PODS) for cls in classes
    )


def _placed(session: Session, gang: GangView) -> bool:
    if not wants_nodes(session, gang) or obstacle(session, gang) is not None:
        return False
    session.reserved = session.reserved_from(gang)
    statement = Statement(session)
    try:
        fits = SlotSearch(session, statement, session.ask(gang)).minimum() is None
        if fits:
            placed, operations = statement.slots, statement.commit()
            session.decide(
                decisions.Place(gang, runs_of_operations(session, gang, operations), gang.next_epoch(), placed)
            )
    finally:
        statement.discard()
        session.reserved = None
    return fits
