"""Gives gangs that wait the spares of others, where these alone are enough: nobody is evicted or moved for them.

It runs right after spares were taken back, before any action that evicts, for each of `reclaim` and `preempt` that the
configuration names, and by its rules. A queue whose first gang finds nothing so is not looked at further: those
behind it would take what that one may need beside evictions.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Mapping

from extender.planner.actions.evicting import ATTEMPTS_PER_QUEUE, Asker, Evicting
from extender.planner.framework import decisions
from extender.planner.framework.session import Session
from extender.planner.state.gangs import GangView
from extender.planner.victims.pieces import Piece
from extender.planner.victims.room import helpful
from extender.planner.victims.seats import seat_pieces
from muster.api.muster.reason import NOTHING, Reason


class SparesAlone(Evicting):
    """The part of an evicting action that takes spares alone; it comes before that action's class."""

    def execute(self, session: Session) -> None:
        """Decide Place and KeepSpares for gangs that get room by it; nothing where nobody keeps spares."""
        if session.decided(decisions.Unschedulable) and session.keepers:
            super().execute(session)

    def victims_of(self, session: Session, asker: Asker, allowed: Callable[[GangView], bool]) -> list[Piece]:
        """Return the spares of all allowed gangs that would help the asker."""
        found: list[Piece] = []
        for gang in session.keepers:
            if gang is not asker.gang and allowed(gang):
                pieces = seat_pieces(session, gang)
                found += pieces if asker.queue_full else helpful(pieces, asker.needs)
        return found

    def why_not(self, _session: Session, _gang: GangView) -> Reason:
        """Return nothing: the action itself says it."""
        return NOTHING

    def _look(
        self, session: Session, why: decisions.Unschedulable, queues: Counter[str], told: Mapping[Hashable, Reason]
    ) -> Reason:
        before = len(session.decided(decisions.Place))
        words = super()._look(session, why, queues, told)
        if len(session.decided(decisions.Place)) == before:
            queues[why.gang.queue] = ATTEMPTS_PER_QUEUE
        return words
