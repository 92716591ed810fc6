"""Places gangs of pods that ask for nothing where `allocate` left them out.

Volcano's action of this name does so for pods without requests, which its allocate leaves out altogether. Ours does
not, so that little is left: gangs of a queue that is strictly ordered and whose head waits for room. A pod that asks
for nothing takes none of that room, only one of the pods that its node can have; of those, too, what is reserved stays.
"""

from extender.planner import reasons
from extender.planner.actions.allocate import wants_nodes
from extender.planner.actions.obstacles import obstacle
from extender.planner.actions.search import place_minimum, runs_of_operations
from extender.planner.framework import decisions
from extender.planner.framework.session import Session
from extender.planner.framework.statement import Statement
from extender.planner.state.gangs import GangView
from muster.resources.vector import PODS


class Backfill:
    """Looks at gangs that wait because of strict order. Comes after `allocate`."""

    name = "backfill"

    def execute(self, session: Session) -> None:
        """Decides Place for those whose pods ask for nothing and fit."""
        behind = [
            waits for waits in session.decided(decisions.Unschedulable) if waits.reason == reasons.queues.STRICT_ORDER
        ]
        for waits in behind:
            if asks_for_nothing(waits.gang) and session.attempt(waits.gang, _placed):
                session.decisions.remove(waits)


def asks_for_nothing(gang: GangView) -> bool:
    """Whether all its pods are known, and none requests anything (best effort)."""
    classes = gang.classes
    return bool(classes) and all(
        cls and not any(cls.requests[name] for name in cls.requests if name != PODS) for cls in classes
    )


def _placed(session: Session, gang: GangView) -> bool:
    if not wants_nodes(session, gang) or obstacle(session, gang) is not None:
        return False
    session.reserved = session.reserved_in_all
    statement = Statement(session)
    try:
        fits = place_minimum(session, statement, gang) is None
        if fits:
            placed, operations = statement.slots, statement.commit()
            session.decide(
                decisions.Place(gang, runs_of_operations(session, gang, operations), gang.next_epoch(), placed)
            )
    finally:
        statement.discard()
        session.reserved = None
    return fits
