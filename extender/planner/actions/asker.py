"""A gang that needs evictions, either for nodes or because its queue's limit refuses it."""

from dataclasses import dataclass

from extender.planner import reasons
from extender.planner.ask import Ask
from extender.planner.framework.decisions import Unschedulable
from extender.planner.state.gangs import GangView
from extender.planner.victims.capacity import Need

OWN_LIMIT = frozenset({reasons.queues.OVER_CAPABILITY, reasons.queues.OVER_DESERVED})
"""Reasons for which a gang waits because its queue has reached a limit."""
FULL_QUEUE = OWN_LIMIT | {reasons.queues.GUARANTEED}
"""Reasons for which a queue refuses a gang; resources that others took from a guarantee may be reclaimed."""


@dataclass(slots=True)
class Asker:
    """A gang that needs evictions to start."""

    ask: Ask
    needs: list[Need]
    refused: str
    """The reason why a queue refuses the gang; empty if the gang lacks nodes."""

    @property
    def gang(self) -> GangView:
        """The gang."""
        return self.ask.gang

    @property
    def queue_full(self) -> bool:
        """True if victims on any node help the gang, because a queue's limit refuses it."""
        return self.refused in FULL_QUEUE

    @property
    def at_own_limit(self) -> bool:
        """True if the gang's queue may use no more resources, regardless of the usage of other queues."""
        return self.refused in OWN_LIMIT


def refused_by(why: Unschedulable) -> str:
    """Return the reason why a queue refuses a gang; empty if the gang lacks nodes."""
    return why.reason if why.reason in FULL_QUEUE else ""
