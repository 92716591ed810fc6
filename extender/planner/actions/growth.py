"""Growth of gangs beyond their minimum, after every waiting gang has had a chance to get its own minimum.

Pods above the minimum are added one by one, or in units of several pods. A gang begins to grow a moment after its
start, because other gangs may arrive at the same time. After each added pod, the order of queues, gangs and pod sets is
computed again, so that they share the remaining capacity.
"""

from collections.abc import Sequence
from functools import partial
from math import ceil

from extender.planner.actions.obstacles import SlotLimit
from extender.planner.actions.reserve.heads import HeadReservations
from extender.planner.actions.search import SlotSearch
from extender.planner.ask import Ask
from extender.planner.framework import decisions
from extender.planner.framework.session import Session
from extender.planner.framework.shortage import lost, shortage
from extender.planner.framework.statement import undone
from extender.planner.reasons.shortages import no_room
from extender.planner.state.gangs import GangView
from extender.planner.timing import is_over
from muster.api.kubernetes.meta import parse_time
from muster.api.volcano.scheduling import NO_ROOM

STEPS = 256
"""Approximate maximum number of growth steps in one cycle; each step searches for a node and compares queues."""


def grow(
    session: Session, searches: Sequence[SlotSearch], limit: SlotLimit, reservations: HeadReservations
) -> frozenset[str]:
    """Add slots above the minimum to the searches of gangs; return the keys of the gangs that wanted to grow."""
    growing = {
        search.ask.gang.key: search
        for search in searches
        if growth_is_due(session, search.ask.gang) and search.left and not search.lacking
    }
    if not growing:
        return frozenset()

    def surplus(gang: GangView) -> int:
        """Return the number of members above the minimum, including members placed in this cycle."""
        return gang.taken + growing[gang.key].statement.slots - gang.floor.min_member

    more = set(growing)
    gangs, step = [search.ask.gang for search in growing.values()], _step(list(growing.values()))
    for gang in session.in_order(gangs, lambda gang: gang.key in more, surplus):
        add = partial(_add, search=growing[gang.key], most=step, limit=limit, reservations=reservations)
        if not session.attempt(gang, add):
            more.discard(gang.key)
    return frozenset(growing)


def _step(growing: Sequence[SlotSearch]) -> int:
    """Return how many pods a gang may add in one step: all of them, if no other gang competes for the capacity."""
    waiting = sum(search.left for search in growing)
    alone = len(growing) == 1 and sum(map(bool, growing[0].ask.open.values())) == 1
    return waiting if alone else ceil(waiting / STEPS)


def _add(
    session: Session, gang: GangView, *, search: SlotSearch, most: int, limit: SlotLimit, reservations: HeadReservations
) -> bool:
    """Place up to `most` pods of the first pod set whose pods fit; return False if the gang cannot grow further."""
    if not limit.admit(gang):
        return False
    statement, before = search.statement, search.statement.slots
    with undone(statement), reservations.room_for(gang, growth=True):
        for pod_set in session.ordered_pod_sets(gang, search.grown):
            search.more({each.name: most if each is pod_set else 0 for each in gang.pod_sets})
            if statement.slots > before:
                search.grown[pod_set.name] += statement.slots - before
                break
    limit.add(gang, statement.slots - before)
    return statement.slots > before and search.left > 0


def growth_is_due(session: Session, gang: GangView) -> bool:
    """Return True if the gang may already exceed its minimum; a gang with minimum 0 may exceed it at once."""
    delay_s = session.inputs.timing.growth_delay_s
    if gang.independent or gang.floor.min_member <= 0:
        return True
    if not gang.started:
        return delay_s <= 0
    since = parse_time(gang.placement.status.started_at) if gang.placement else None
    return since is None or is_over(since + delay_s, session.now, delay_s)


def report_why_more_wait(session: Session, ask: Ask, *, for_minimum: bool) -> None:
    """Report why a started gang does not grow, or why missing members of its minimum are not placed."""
    gang, slots = ask.gang, ask.chosen(session.hooks) if for_minimum else ask.open
    pod_set = next((each for each in gang.pod_sets if slots[each.name]), None)
    if pod_set is None:
        return
    cls = pod_set.class_of(slots[pod_set.name][0])
    full = session.queue_refusal(ask, session.amounts(ask, {pod_set.name: {cls: 1}})) if cls else None
    if full is not None:
        session.decide(decisions.refused(gang, full))
        return
    if for_minimum:
        lacks = lost(session, gang, pod_set, slots)
    else:
        lacks = shortage(session, gang, pod_set, len(slots[pod_set.name]), 0, kind="extra")
    session.decide(decisions.Unschedulable(gang, NO_ROOM, no_room(lacks), lacks))
