"""For whom a reservation counts: for all queues as far as the head's queue is entitled to it, else for its own. Pure.

A queue may keep room from others up to its fair share (or what it deserves or is guaranteed, if that is more), less
what it uses. And while the head cannot start before pods of its own queue have ended, it keeps nothing from others,
who could not shorten that wait. Nor does it after a long time in vain (`expiry_s`), for as long as `patience_s`. Gangs
of its own queue behind it leave the room free all the same.
"""

from dataclasses import replace
from math import floor

import numpy as np

from extender.planner import reasons
from extender.planner.actions.reserve.ends import used_by_queue
from extender.planner.actions.reserve.reservation import Reservation
from extender.planner.framework.session import Session
from extender.planner.state.amounts import Amounts
from extender.planner.state.gangs import GangView
from muster.api.kubernetes.meta import readable_time
from muster.api.muster.reason import NOTHING


def judged(session: Session, reservation: Reservation) -> Reservation:
    """Return the reservation as it counts now: for all queues, or for its own only, with the reason."""
    queue, rules, aside = reservation.gang.queue, session.reservations, NOTHING
    since = since_of(session, reservation.gang)
    if session.now >= since + rules.expiry_s:
        aside = reasons.queues.expired(after_s=rules.expiry_s)
    elif waits_for_its_own(session, reservation):
        aside = reasons.queues.FOR_ITS_OWN
    elif not within_share(session, queue, reservation.need):
        aside = reasons.queues.OVER_SHARE
    if (aside, since) == (reservation.aside, reservation.since):
        return reservation
    return replace(reservation, only=queue if aside else "", aside=aside, since=since)


def since_of(session: Session, gang: GangView) -> float:
    """Return the time since when the gang has nodes reserved; now, if that time and the pause after it are over."""
    rules, now = session.reservations, float(floor(session.now))
    known = readable_time(gang.placement.status.reserved_at) if gang.placement else None
    if known is None or known > now or session.now >= known + rules.expiry_s + rules.patience_s:
        return now
    return known


def within_share(session: Session, queue: str, need: Amounts) -> bool:
    """Return True if the queue may keep so much, int64 of shape (resources, nodes); without shares everything."""
    hooks = session.hooks
    fair, used = hooks.get_queue_fair_share.call(queue), hooks.get_queue_allocated_resources.call(queue)
    if fair is None or used is None:
        return True
    deserved = hooks.get_queue_deserved_resources.call(queue)
    share = fair if deserved is None else np.maximum(fair, deserved)
    wanted = need.sum(axis=1)
    return bool((used + wanted <= share)[wanted > 0].all())


def waits_for_its_own(session: Session, reservation: Reservation) -> bool:
    """Return True if on some node the head does not fit beside what its own queue uses there."""
    columns, snapshot = reservation.columns, session.snapshot
    own = used_by_queue(snapshot, reservation.gang.queue)[:, columns]
    return bool((reservation.need > snapshot.allocatable[:, columns] - own)[reservation.need > 0].any())
