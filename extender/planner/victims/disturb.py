"""The rules by which pods of one gang may be evicted for another gang.

The purpose of an action determines which gangs may be victims:

* `recall`: gangs on spare slots of the waiting gang, because borrowers have agreed to leave.
* `preempt`: gangs of the same queue with a lower priority, if the hook `preempt_victim_filter` allows them.
* `reclaim`: gangs of other, reclaimable queues, if the hook `reclaim_victim_filter` allows them.
* `move`: gangs of no higher priority, if the hook for `preempt` (same queue) or `reclaim` (other queues) allows them.

A gang that was moved recently is not moved again for a while. No gang is moved if its owner would count the restart as
a failure.

A gang's annotations and its own budget (`state.guards`) protect the gang. Annotations and the own budget do not protect
a gang from `recall`, or from `reclaim` of capacity that its queue does not deserve. Without the exception for
`reclaim`, a user could annotate a gang after its start and thereby keep the capacity of other queues.
PodDisruptionBudgets are checked later (`victims.units`), by the API server's rules.
"""

from typing import Literal

from extender.planner.framework.operations import Chunk, Scenario
from extender.planner.framework.session import Session
from extender.planner.state.gangs import GangView
from extender.planner.state.spareentries import borrowed_spares_of
from extender.planner.timing import MOST_SLOTS, arrival_s, is_over
from muster.api.kubernetes.meta import readable_time
from muster.api.muster.placement import own_victims

Why = Literal["recall", "preempt", "reclaim", "move"]
MOVE_REST_S = 600.0
"""Time, in seconds, for which a gang is not moved again after a move or a repair."""


def may_disturb(session: Session, asker: GangView, victim: GangView, why: Why) -> bool:
    """Return True if pods of the victim may be evicted for the waiting gang."""
    if victim is asker:
        return False
    if why == "recall":
        return borrows(victim, asker)
    inside = victim.queue == asker.queue
    if why == "preempt":
        allowed = inside and victim.priority < asker.priority
    elif why == "reclaim":
        allowed = not inside
    else:
        allowed = _movable(session, asker, victim)
    if not allowed or victim.active or borrowed_spares_of(victim):
        return False
    return _in_queue(session, asker, victim) if inside else _across(session, asker, victim)


def ignores_marks(session: Session, victim: GangView, why: Why) -> bool:
    """Return True if the victim's annotations and its own budget are ignored.

    The result is True for a victim that borrows the gang's spare slots, or holds resources that its queue does not
    deserve.
    """
    return why == "recall" or (why == "reclaim" and bool(session.hooks.holds_over_quota.call(victim)))


def borrows(victim: GangView, lender: GangView) -> bool:
    """Return True if the victim runs on spare slots of the lender."""
    return any(loan.lender == lender.uid for loan in borrowed_spares_of(victim))


def gives(session: Session, asker: GangView, victim: GangView) -> bool:
    """Return True if the victim belongs to another queue that is reclaimable."""
    queue = session.snapshot.queues.get(victim.queue)
    return victim.queue != asker.queue and queue is not None and queue.spec.reclaimable is not False


def moves_agreed(session: Session, scenario: Scenario) -> bool:
    """Return True if plugins agree to these moves, by the rules of preempt or reclaim for each moved gang."""
    own, others = list[Chunk](), list[Chunk]()
    for chunk in scenario.chunks:
        (own if chunk.gang.queue == scenario.gang.queue else others).append(chunk)
    hooks = session.hooks
    return (not own or hooks.preempt_scenario_validator.call(scenario.only(own))) and (
        not others or hooks.reclaim_scenario_validator.call(scenario.only(others))
    )


def _in_queue(session: Session, asker: GangView, victim: GangView) -> bool:
    return session.hooks.preempt_victim_filter.call(asker, victim)


def _across(session: Session, asker: GangView, victim: GangView) -> bool:
    return gives(session, asker, victim) and session.hooks.reclaim_victim_filter.call(asker, victim)


def _movable(session: Session, asker: GangView, victim: GangView) -> bool:
    """Return True if the waiting gang has at least the victim's priority, because a move only restarts the victim."""
    if not victim.started or victim.does_again or victim.spends_retries or victim.priority > asker.priority:
        return False
    return not _rests(victim, session.now)


def _rests(victim: GangView, now: float) -> bool:
    """Return True for a gang that was recently moved or repaired; its placement then lists its own pods as victims."""
    placement = victim.placement
    if placement is None or not (own_victims(placement) or victim.key in placement.status.made_room):
        return False
    until = (readable_time(placement.spec.deadline) or 0.0) + MOVE_REST_S
    return not is_over(until, now, arrival_s(MOST_SLOTS) + MOVE_REST_S)
