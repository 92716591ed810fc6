"""Makes room within a queue: gangs of strictly lower priority go for one that waits.

KAI-Scheduler's action of that name, and Volcano's gangpreempt in spirit: whole gangs, or pods above a minimum.
"""

from extender.actions.evicting import Asker, Evicting
from extender.framework.scenario import Scenario
from extender.framework.session import Session
from extender.state.gangs import GangView
from extender.victims.order import by_cost
from extender.victims.pieces import Piece


class Preempt(Evicting):
    """Victims are gangs of the same queue and a lower priority that may be displaced."""

    name = "preempt"

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
                and bool(session.ask("preempt_victim_filter", gang, victim))
            )

        return by_cost(self.victims_of(session, asker, lower))

    def agreed(self, session: Session, scenario: Scenario) -> bool:
        """All plugins must agree."""
        return bool(session.ask("preempt_scenario_validator", scenario))

    def reason(self, gang: GangView) -> str:
        """For the owners of the victims."""
        return f"preempted by gang {gang.key} of priority {gang.priority} in queue {gang.queue}"
