"""Preempt and reclaim: room for a waiting gang within its queue, and between queues.

After KAI-Scheduler's actions and Volcano's gangpreempt: whole gangs are evicted, or pods above a minimum.
"""

from extender.planner import reasons
from extender.planner.actions.evicting import Asker, Evicting
from extender.planner.actions.sparesalone import SparesAlone
from extender.planner.framework.operations import Scenario
from extender.planner.framework.session import Session
from extender.planner.state.gangs import GangView
from extender.planner.victims.order import across_queues, by_cost
from extender.planner.victims.pieces import Piece
from muster.api.muster.reason import NOTHING, Reason


class Preempt(Evicting):
    """Victims are preemptable gangs of the same queue and a lower priority."""

    name = "preempt"
    takes_seats = True

    def worthwhile(self, gang: GangView) -> bool:
        """Return True if a running gang of its queue has a lower priority."""
        return self.lowest.get(gang.queue, gang.priority) < gang.priority

    def pieces(self, session: Session, asker: Asker) -> list[Piece]:
        """Return pieces of the gang's queue, the cheapest first."""
        gang = asker.gang

        def lower(victim: GangView) -> bool:
            return (
                victim.queue == gang.queue
                and victim.priority < gang.priority
                and session.hooks.preempt_victim_filter.call(gang, victim)
            )

        return by_cost(self.victims_of(session, asker, lower), session.now)

    def agreed(self, session: Session, scenario: Scenario) -> bool:
        """Return True if all plugins agree."""
        return session.hooks.preempt_scenario_validator.call(scenario)

    def reason(self, gang: GangView) -> Reason:
        """Return the reason for the owners of the victims."""
        return reasons.placements.preempted(priority=gang.priority, queue=gang.queue)


class Reclaim(Evicting):
    """Victims are gangs of other, reclaimable queues, as far as a plugin that knows shares allows (`proportion`)."""

    name = "reclaim"
    takes_seats = True

    def worthwhile(self, gang: GangView) -> bool:
        """Return True if a gang of another queue runs."""
        return len(self.lowest) > (gang.queue in self.lowest)

    def allowed(self, session: Session, asker: Asker) -> bool:
        """Return True if the gang's queue would stay within its share; a queue at its own limit may not reclaim."""
        wanted = session.amounts(asker.ask)
        return not asker.queue_full and bool(session.hooks.can_reclaim_resources.call(asker.gang, wanted))

    def pieces(self, session: Session, asker: Asker) -> list[Piece]:
        """Return pieces of other queues, first from the queue that is furthest over its share."""
        session.hooks.on_job_solution_start.call(asker.gang)
        gang = asker.gang

        def reclaimable(victim: GangView) -> bool:
            return _gives(session, gang, victim) and session.hooks.reclaim_victim_filter.call(gang, victim)

        return across_queues(session, self.victims_of(session, asker, reclaimable))

    def why_not(self, session: Session, gang: GangView) -> Reason:
        """Return the rule that keeps from a gang what its queue deserves; empty if it has that, or would have more."""
        amounts = session.amounts(session.ask(gang))
        standing = session.hooks.reclaim_standing.call(gang, amounts)
        if standing is None or not standing.owed:
            return NOTHING
        if not session.hooks.can_reclaim_resources.call(gang, amounts):
            return reasons.queues.OVER_FAIR
        if not standing.above:
            return reasons.queues.NOBODY_ABOVE
        others = [victim for victim in self.running if victim.queue in standing.above]
        giving = [victim for victim in others if victim.preemptable and _gives(session, gang, victim)]
        if not giving:
            return reasons.queues.OF_OTHERS
        if not any(session.hooks.reclaim_victim_filter.call(gang, victim) for victim in giving):
            return reasons.queues.PROTECTED
        return reasons.queues.NOT_ENOUGH

    def agreed(self, session: Session, scenario: Scenario) -> bool:
        """Return True if all plugins agree."""
        return session.hooks.reclaim_scenario_validator.call(scenario)

    def reason(self, gang: GangView) -> Reason:
        """Return the reason for the owners of the victims."""
        return reasons.placements.reclaimed(queue=gang.queue)


class SparesForPreempt(SparesAlone, Preempt):
    """Takes spares by the rules of `preempt`."""


class SparesForReclaim(SparesAlone, Reclaim):
    """Takes spares by the rules of `reclaim`."""


def _gives(session: Session, gang: GangView, victim: GangView) -> bool:
    """Return True for a gang of another queue that is reclaimable."""
    queue = session.snapshot.queues.get(victim.queue)
    return victim.queue != gang.queue and queue is not None and queue.spec.reclaimable is not False
