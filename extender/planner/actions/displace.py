"""The actions preempt and reclaim, which free capacity for a waiting gang within its queue or in other queues.

The action recall returns lent spare slots to their gang. Preempt, reclaim and recall evict whole gangs, or the pods
above a gang's minimum, like KAI-Scheduler's actions and Volcano's gangpreempt.

If a gang has lost a member, the gangs that borrow the gang's spare slots are evicted at once and without notice. In
every configuration, recall runs after `allocate`. After recall, a waiting gang gets spare slots of other gangs if it
fits there, so that no gang is evicted or moved. Recalling and lending spare slots follow the rules of `reclaim` and
`preempt`, if the configuration names these actions.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from extender.planner import reasons
from extender.planner.actions.asker import Asker
from extender.planner.actions.evicting import Evicting
from extender.planner.actions.spares import own_spares, spares_returned
from extender.planner.framework import decisions
from extender.planner.framework.operations import Operation, Scenario
from extender.planner.framework.session import Session
from extender.planner.state.gangs import GangView
from extender.planner.state.spareentries import spare_runs_of
from extender.planner.victims.capacity import helpful
from extender.planner.victims.disturb import Why, borrows, gives, ignores_marks, may_disturb
from extender.planner.victims.order import across_queues, by_cost
from extender.planner.victims.units import EvictableUnit, spare_units
from muster.api.muster.placement import NodeSpares
from muster.api.muster.reason import NOTHING, Reason


class Preempt(Evicting):
    """The action preempt, whose victims are preemptable gangs of the same queue with a lower priority.

    If victims of the same queue do not free enough capacity and the action `reclaim` is configured, gangs of other
    queues are added by the rules of `reclaim`.
    """

    name = "preempt"
    takes_spares = True

    def worthwhile(self, gang: GangView) -> bool:
        """Return True if a running gang of the same queue has a lower priority."""
        return self.lowest.get(gang.queue, gang.priority) < gang.priority

    def units(self, session: Session, asker: Asker) -> list[EvictableUnit]:
        """Return evictable units of the waiting gang's queue, the cheapest units first."""
        own = by_cost(self.victims_of(session, asker, "preempt"), session.now)
        return [*own, *self._of_others(session, asker, own)]

    def _of_others(self, session: Session, asker: Asker, own: Sequence[EvictableUnit]) -> list[EvictableUnit]:
        """Return evictable units of other queues, for resources that victims in the gang's own queue cannot free."""
        if not own or asker.at_own_limit or Reclaim.name not in session.actions:
            return []
        wanted = np.maximum(session.amounts(asker.ask) - sum(unit.amounts for unit in own), 0)
        if not session.hooks.can_reclaim_resources.call(asker.gang, wanted):
            return []
        return _reclaimable(self, session, asker)

    def agreed(self, session: Session, scenario: Scenario) -> bool:
        """Return True if all plugins agree.

        If a victim is in the gang's own queue, its resources do not count as taken from other queues.
        """
        gang = scenario.gang
        own = tuple(chunk for chunk in scenario.chunks if chunk.gang.queue == gang.queue)
        others = tuple(chunk for chunk in scenario.chunks if chunk.gang.queue != gang.queue)
        if not session.hooks.preempt_scenario_validator.call(scenario.only(own)):
            return False
        left = np.maximum(scenario.requested - sum(chunk.amounts for chunk in own), 0)
        beyond = replace(scenario, requested=left, chunks=others)
        return not others or session.hooks.reclaim_scenario_validator.call(beyond)

    def reason(self, gang: GangView, found: Sequence[EvictableUnit]) -> Reason:
        """Return the reason for the eviction, which is shown to the owners of the victims."""
        if any(unit.gang.queue != gang.queue for unit in found):
            return reasons.placements.reclaimed(queue=gang.queue)
        return reasons.placements.preempted(priority=gang.priority, queue=gang.queue)


class Reclaim(Evicting):
    """The action reclaim, which evicts gangs of other, reclaimable queues.

    A plugin that computes shares of queues, such as `proportion`, must agree to every reclaim.
    """

    name = "reclaim"
    takes_spares = True
    by_shares = True

    def worthwhile(self, gang: GangView) -> bool:
        """Return True if a gang of another queue is running."""
        return len(self.lowest) > (gang.queue in self.lowest)

    def allowed(self, session: Session, asker: Asker) -> bool:
        """Return True if the gang's queue would stay within its share and has not reached its own limit."""
        wanted = session.amounts(asker.ask)
        return not asker.at_own_limit and bool(session.hooks.can_reclaim_resources.call(asker.gang, wanted))

    def units(self, session: Session, asker: Asker) -> list[EvictableUnit]:
        """Return evictable units of other queues; units of the queue that exceeds its share most come first."""
        return _reclaimable(self, session, asker)

    def why_not(self, session: Session, gang: GangView) -> Reason:
        """Return the rule that prevents reclaim if the gang's queue has less than it deserves; otherwise empty."""
        amounts = session.amounts(session.ask(gang))
        state = session.hooks.reclaim_standing.call(gang, amounts)
        if state is None or not state.owed:
            return NOTHING
        if not session.hooks.can_reclaim_resources.call(gang, amounts):
            return reasons.queues.OVER_FAIR
        if not state.above:
            return reasons.queues.NOBODY_ABOVE
        others = [victim for victim in self.running if victim.queue in state.above]
        giving = [
            victim for victim in others
            if gives(session, gang, victim) and (victim.preemptable or ignores_marks(session, victim, "reclaim"))
        ]  # fmt: skip
        if not giving:
            return reasons.queues.OF_OTHERS
        if not any(may_disturb(session, gang, victim, "reclaim") for victim in giving):
            return reasons.queues.PROTECTED
        return reasons.queues.NOT_ENOUGH

    def agreed(self, session: Session, scenario: Scenario) -> bool:
        """Return True if all plugins agree."""
        return session.hooks.reclaim_scenario_validator.call(scenario)

    def reason(self, gang: GangView, _found: Sequence[EvictableUnit]) -> Reason:
        """Return the reason for the eviction, which is shown to the owners of the victims."""
        return reasons.placements.reclaimed(queue=gang.queue)


class SparesAlone(Evicting):
    """Mix-in for an evicting action that uses only other gangs' spare slots; list it before the action's class.

    If the first gang of a queue finds no solution, the queue's other gangs are skipped, because the first gang may need
    the spare slots in addition to evictions.
    """

    first_alone = True

    def execute(self, session: Session) -> None:
        """Decide Place and KeepSpares for gangs that fit on other gangs' spare slots."""
        if session.decided(decisions.Unschedulable) and session.keepers:
            super().execute(session)

    def victims_of(self, session: Session, asker: Asker, why: Why) -> list[EvictableUnit]:
        """Return the spare slots that would help the waiting gang, from all gangs that lend spare slots."""
        found: list[EvictableUnit] = []
        for gang in session.keepers:
            if may_disturb(session, asker.gang, gang, why):
                units = spare_units(session, gang)
                found += units if asker.queue_full else helpful(units, asker.needs)
        return found

    def why_not(self, _session: Session, _gang: GangView) -> Reason:
        """Return an empty reason, because a later action evicts pods and reports the reason."""
        return NOTHING


class SparesForPreempt(SparesAlone, Preempt):
    """The action that takes spare slots of other gangs by the rules of `preempt`."""


class SparesForReclaim(SparesAlone, Reclaim):
    """The action that takes spare slots of other gangs by the rules of `reclaim`."""


class Recall(Evicting):
    """Mix-in for an action whose victims borrow spare slots of the gang that needs capacity."""

    name = "recall"
    borrowers = True

    def execute(self, session: Session) -> None:
        """Decide Place and MakeRoom for gangs that get their spare slots back."""
        if session.keepers:
            super().execute(session)

    def worthwhile(self, gang: GangView) -> bool:
        """Return True for a gang whose spare slots are lent."""
        return gang.started and any(borrows(victim, gang) for victim in self.running) if spare_runs_of(gang) else False

    def units(self, session: Session, asker: Asker) -> list[EvictableUnit]:
        """Return evictable units of the borrowing gangs, the cheapest units first."""
        return by_cost(self.victims_of(session, asker, "recall"), session.now)

    def reason(self, gang: GangView, _found: Sequence[EvictableUnit]) -> Reason:
        """Return the reason for the eviction, which is shown to the owners of the victims."""
        return reasons.placements.recalled(queue=gang.queue)

    def _try(self, session: Session, gang: GangView, *, refused: str) -> bool:
        with spares_returned(session, gang), own_spares(session, gang).free():
            return super()._try(session, gang, refused=refused)

    def spares_left(self, session: Session, gang: GangView, operations: Sequence[Operation]) -> list[NodeSpares]:
        """Return the gang's spare slots on nodes that its members do not use."""
        taken = {session.snapshot.name(operation.column) for operation in operations}
        return [run for run in gang.spares if run.node not in taken]


def _reclaimable(action: Evicting, session: Session, asker: Asker) -> list[EvictableUnit]:
    """Return evictable units of other queues; units of the queue that exceeds its share most come first."""
    session.hooks.on_job_solution_start.call(asker.gang)
    return across_queues(session, action.victims_of(session, asker, "reclaim"))
