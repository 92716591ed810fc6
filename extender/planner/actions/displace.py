"""Makes room within a queue: gangs of strictly lower priority go for one that waits.

KAI-Scheduler's action of that name, and Volcano's gangpreempt in spirit: whole gangs, or pods above a minimum.
"""

from extender.planner import reasons
from extender.planner.actions.evicting import Asker, Evicting
from extender.planner.framework.demand import amounts_of, minimum_wanted
from extender.planner.framework.operations import Scenario
from extender.planner.framework.session import Session
from extender.planner.state.gangs import GangView
from extender.planner.victims.order import across_queues, by_cost
from extender.planner.victims.pieces import Piece


class Preempt(Evicting):
    """Victims are gangs of the same queue and a lower priority that may be displaced."""

    name = "preempt"

    def __init__(self) -> None:
        super().__init__()
        self._lowest: dict[str, int] = {}
        self._of: list[GangView] = []

    def worthwhile(self, _session: Session, gang: GangView) -> bool:
        """Whether any gang of its queue that runs has a lower priority."""
        if self._of is not self.running:
            self._of, self._lowest = self.running, {}
            for one in self.running:
                self._lowest[one.queue] = min(one.priority, self._lowest.get(one.queue, one.priority))
        lowest = self._lowest.get(gang.queue)
        return lowest is not None and lowest < gang.priority

    def allowed(self, _session: Session, _asker: Asker) -> bool:
        """Always: whom it may displace is asked one by one."""
        return True

    def pieces(self, session: Session, asker: Asker) -> list[Piece]:
        """Of its queue, the cheapest first."""
        gang = asker.gang

        def lower(victim: GangView) -> bool:
            return (
                victim.queue == gang.queue
                and victim.priority < gang.priority
                and session.hooks.preempt_victim_filter.call(gang, victim)
            )

        return by_cost(self.victims_of(session, asker, lower))

    def agreed(self, session: Session, scenario: Scenario) -> bool:
        """All plugins must agree."""
        return session.hooks.preempt_scenario_validator.call(scenario)

    def reason(self, gang: GangView) -> str:
        """For the owners of the victims."""
        return reasons.evictions.preempted(gang=gang.key, priority=gang.priority, queue=gang.queue)


class Reclaim(Evicting):
    """Victims are gangs of other queues that let others reclaim from them."""

    name = "reclaim"

    def __init__(self) -> None:
        super().__init__()
        self._queues: set[str] = set()
        self._of: list[GangView] = []

    def worthwhile(self, _session: Session, gang: GangView) -> bool:
        """Whether anything runs in another queue."""
        if self._of is not self.running:
            self._of, self._queues = self.running, {one.queue for one in self.running}
        return len(self._queues) > (gang.queue in self._queues)

    def allowed(self, session: Session, asker: Asker) -> bool:
        """Whether the gang's queue would still be within its share; what fills the queue's own limit stays its own."""
        wanted = amounts_of(session.snapshot, asker.gang, minimum_wanted(asker.gang))
        return not asker.queue_full and bool(session.hooks.can_reclaim_resources.call(asker.gang, wanted))

    def pieces(self, session: Session, asker: Asker) -> list[Piece]:
        """Of other queues; the one that is furthest over its share gives first."""
        session.hooks.on_job_solution_start.call(asker.gang)
        gang, queues = asker.gang, session.snapshot.queues

        def reclaimable(victim: GangView) -> bool:
            queue = queues.get(victim.queue)
            return (
                victim.queue != gang.queue
                and queue is not None
                and queue.spec.reclaimable is not False
                and session.hooks.reclaim_victim_filter.call(gang, victim)
            )

        return across_queues(session, self.victims_of(session, asker, reclaimable))

    def agreed(self, session: Session, scenario: Scenario) -> bool:
        """All plugins must agree."""
        return session.hooks.reclaim_scenario_validator.call(scenario)

    def reason(self, gang: GangView) -> str:
        """For the owners of the victims."""
        return reasons.evictions.reclaimed(queue=gang.queue, gang=gang.key)
