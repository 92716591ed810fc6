"""What a queue answers to a gang that it has no room for, and the one question that actions ask about it."""

from dataclasses import dataclass

from extender.planner.framework.session import Session
from extender.planner.state.amounts import Amounts
from extender.planner.state.gangs import GangView


@dataclass(frozen=True, slots=True)
class QueueRefusal:
    """A queue, on the way from the gang's own up to the root, that has no room for what is asked."""

    reason: str
    """One word, for a condition."""
    queue: str
    """The queue that refuses, which may be one above the gang's."""
    resource: str
    requested: int
    """What would be added, in milli-CPU or base units, as the other two."""
    used: int
    """What the queue uses (or keeps for others) already."""
    limit: int
    message: str
    """A sentence for the gang's owner: which queue, which resource, how much, and what to do."""


def queue_refusal(session: Session, gang: GangView, amounts: Amounts) -> QueueRefusal | None:
    """Why the gang's queues do not let it have these amounts more; None if they do.

    The amounts are int64 of shape (resources,); the answer counts what the session has placed and evicted so far.
    """
    refusal: QueueRefusal | None = session.ask("is_job_over_queue_capacity", gang, amounts)
    if refusal is None:
        refusal = session.ask("is_non_preemptible_job_over_queue_quota", gang, amounts)
    return refusal
