"""A gang that needs evictions, either because nodes lack free capacity or because its queue has reached a limit."""

from dataclasses import dataclass

from extender.planner import reasons
from extender.planner.ask import Ask
from extender.planner.framework.decisions import Unschedulable
from extender.planner.state.gangs import GangView
from extender.planner.victims.capacity import Need

OWN_LIMIT = frozenset({reasons.queues.OVER_CAPABILITY, reasons.queues.OVER_DESERVED})
"""Reason codes of gangs that wait because their own queue has reached a limit."""
FULL_QUEUE = OWN_LIMIT | {reasons.queues.GUARANTEED}
"""Codes of rejections by a queue that reclaim may overcome: other queues use its guaranteed resources."""


@dataclass(slots=True)
class Asker:
    """A gang that needs evictions to start."""

    ask: Ask
    needs: list[Need]
    refused: str
    """The reason why the queue rejects the gang; empty if the gang only lacks nodes."""

    @property
    def gang(self) -> GangView:
        """The gang."""
        return self.ask.gang

    @property
    def queue_full(self) -> bool:
        """True if the gang's queue has reached a limit, so that victims on any node help the gang."""
        return self.refused in FULL_QUEUE

    @property
    def at_own_limit(self) -> bool:
        """True if the gang's queue may use no more resources, regardless of the usage of other queues."""
        return self.refused in OWN_LIMIT


def refused_by(why: Unschedulable) -> str:
    """Return the reason why a queue rejects a gang; empty if the gang only lacks nodes."""
    return why.reason if why.reason in FULL_QUEUE else ""
