"""The action that places gangs: first the whole minimum or nothing, on one statement, then as many further pods as fit.

Gangs are taken in scheduling order. For each gang, `allocate` checks for obstacles, computes the demand, and checks the
queue's limits. A search then places the gang tentatively on a statement. If the gang fits, the statement is committed;
otherwise it is rolled back and the reason is reported. `actions.growth` adds pods above the minimum. A waiting gang
does not keep capacity from other gangs, unless nodes are reserved for it. Independent pods are placed as gangs of one.

`allocate` never undoes a placement in favour of a later gang. Within a cycle, placements only reduce the free capacity.
If a gang does not fit, gangs of the same shape are therefore skipped until a relevant change (`actions.failures`).
"""

from collections.abc import Hashable
from dataclasses import dataclass, field
from functools import partial

from extender.planner import reasons
from extender.planner.actions.cyclework import CycleWork
from extender.planner.actions.failures import Failures, Rotation, SearchFailure, nodes_of, shape_of
from extender.planner.actions.growth import grow, report_why_more_wait
from extender.planner.actions.obstacles import LIMIT, SlotLimit, leaving, obstacle
from extender.planner.actions.reserve.heads import HeadReservations
from extender.planner.actions.reserve.reservation import ReservationSearches
from extender.planner.actions.search import SlotSearch
from extender.planner.actions.spares import (
    Spares,
    after_use,
    as_spare_runs,
    lendable_spares,
    own_spares,
    place_together,
)
from extender.planner.framework import decisions
from extender.planner.framework.session import Session
from extender.planner.framework.statement import Statement, undone
from extender.planner.reasons.pods import LATER
from extender.planner.reasons.shortages import UNTOLD, no_room
from extender.planner.state.gangs import GangView
from muster.api.muster.reason import NOTHING
from muster.api.volcano.scheduling import NO_ROOM
from muster.resources.spares import borrows

LIMIT_REPORTED_AFTER_S = 5.0
"""Time after which a gang's status reports that the gang waits for the limit on placed slots. Most gangs are placed
before this time, so that their status need not be written."""
HELD_BACK_S = 30.0
"""Time for which a Pending gang is not admitted if only the limit on placed slots prevents its placement. Admitting the
gang would create gated pods, and each gated pod costs a write. Most gangs that wait for the limit on placed slots are
placed soon."""


@dataclass(slots=True)
class _Found:
    """The gangs that the action has processed in the current cycle, with the results of their searches."""

    limit: SlotLimit
    reservations: HeadReservations
    limited: dict[str, float]
    """Maps a gang's UID to the time since which only the limit on placed slots has prevented its placement, as of the
    previous cycle."""
    tried: list[SlotSearch] = field(default_factory=list)
    """Searches for gangs whose minimum has been placed.

    Each search contains the slots that the current cycle has placed for its gang.
    """


class Allocate:
    """The action that places admitted gangs with open slots, in the session's order."""

    name = "allocate"

    def __init__(self) -> None:
        self._failures, self._rotation = Failures(), Rotation()
        self._searched: ReservationSearches = {}
        """Searches for reservations that found no nodes."""
        self._limited: dict[str, float] = {}
        """Maps the UID of a gang that waits only for the limit on slots to the start of its wait, in seconds since the
        epoch."""
        self._placed_since: dict[str, float] = {}
        """Maps a gang's UID to the time at which its first slots were placed."""
        self._spares = Spares()
        self._work = CycleWork()

    def execute(self, session: Session) -> None:
        """Decide Place for gangs that fit, and Unschedulable with the reason for all others."""
        gangs = [gang for gang in session.snapshot.gangs if session.attempt(gang, wants_nodes)]
        found = self._begin(session, gangs)
        place = partial(self._try, found=found)
        for gang in session.in_order(self._rotation.awake(session, gangs, self._failures)):
            self._keep(session, self._rotation.ahead_of(gang), found)
            if gang.key not in session.failures:
                session.attempt(gang, place)
        self._keep(session, self._rotation.left(), found)
        grown = grow(session, found.tried, found.limit, found.reservations)
        for search in found.tried:
            gang = search.ask.gang
            if gang.key not in session.failures:
                session.attempt(gang, partial(_decide, search=search, grown=gang.key in grown))
        self._spares.refill(session, found.reservations)
        found.reservations.close()
        self._work.end(session)
        self._failures.end(session)
        self._rotation.end()

    def _begin(self, session: Session, gangs: list[GangView]) -> _Found:
        """Return the results of earlier cycles that are still valid."""
        self._failures.begin(session, len(gangs))
        self._searched = {gang.uid: self._searched[gang.uid] for gang in gangs if gang.uid in self._searched}
        placed = [gang.uid for gang in session.snapshot.gangs if gang.key in session.snapshot.placed]
        self._placed_since = {uid: min(self._placed_since.get(uid, session.now), session.now) for uid in placed}
        limit = SlotLimit(session.snapshot, self._placed_since, session.now)
        found = _Found(limit, HeadReservations(session, gangs, self._searched), self._limited)
        self._limited = {}
        return found

    def _keep(self, session: Session, resting: list[decisions.Unschedulable], found: _Found) -> None:
        """Repeat the last cycle's decisions about gangs that rest in this cycle."""
        session.postponed.update(why.gang.key for why in resting)
        found.reservations.stay([why.gang for why in resting])
        session.decisions += resting

    def _try(self, session: Session, gang: GangView, *, found: _Found) -> None:
        """Try to place one gang.

        A successful search is kept for the decision; after a failed search, the reason why the gang waits is reported.
        """
        if self._held_up(session, gang, found):
            return
        ask = session.ask(gang)
        full = None if _restores_members(gang) else session.queue_refusal(ask)
        session.hooks.pre_job_allocation.call(gang)
        statement = Statement(session)
        search = SlotSearch(session, statement, ask)
        with undone(statement), found.reservations.room_for(gang) as restrictions:
            shape = None if _restores_members(gang) else (shape_of(session, ask), restrictions)
            failed = None if gang.options or gang.spares_asked else self._failures.get(shape)
            if shape is not None and failed is None and self._put_off(session, gang, found):
                return
            if full is None:
                failed = failed or self._search(search, shape, found.reservations)
            elif ask.any_members and search.any_members():
                failed = full = None
        if full is not None:  # no nodes are reserved for a gang that waits for its queue
            statement.discard()
            session.decide(self._work.failed(decisions.refused(gang, full)))
            return
        if failed is not None:
            why = failed.why.also(found.reservations.waits(gang)).also(leaving(gang))
            waits = self._work.failed(decisions.Unschedulable(gang, NO_ROOM, why, failed.lacks))
            session.decide(waits)
            if not (gang.started or gang.options or gang.spares_asked):
                self._rotation.note(shape, waits)
            return
        found.tried.append(search)
        found.limit.add(gang, statement.slots)
        found.reservations.placed(gang, statement.operations)

    # -- before the search ------------------------------------------------------------------------------------------

    def _held_up(self, session: Session, gang: GangView, found: _Found) -> bool:
        """Return True if an obstacle, strict order or the slot limit prevents a search; also report the reason."""
        why = obstacle(session, gang)
        if why is None and (head := found.reservations.behind(gang)):
            words = reasons.queues.behind(queue=gang.queue, head=session.called(head, gang))
            why = decisions.Unschedulable(gang, reasons.queues.STRICT_ORDER, words)
        if why is not None:
            session.decide(why)
            return True
        if found.limit.admit(gang):
            return False
        self._wait_for_others(session, gang, min(found.limited.get(gang.uid, session.now), session.now))
        return True

    def _wait_for_others(self, session: Session, gang: GangView, since: float) -> None:
        """Let a gang wait because of the limit on placed slots; `since` is in seconds since the epoch."""
        self._limited[gang.uid] = since
        if session.now - since >= LIMIT_REPORTED_AFTER_S:
            session.decide(decisions.Unschedulable(gang, reasons.pods.SLOT_LIMIT, reasons.pods.slot_limit(limit=LIMIT)))
        if session.now - since < HELD_BACK_S and gang.pending:
            session.enqueued.discard(gang.key)

    # -- the search -------------------------------------------------------------------------------------------------

    def _put_off(self, session: Session, gang: GangView, found: _Found) -> bool:
        """Return True if the search for a gang is postponed to a later cycle, and report the reason."""
        later = self._work.put_off(session, gang)
        if later is None:
            return False
        if later.reason in {NO_ROOM, LATER}:
            found.reservations.stay([gang])
        session.decide(later)
        return True

    def _search(self, search: SlotSearch, shape: Hashable, reservations: HeadReservations) -> SearchFailure | None:
        """Place a gang's whole minimum, or return why it does not fit.

        If `shape` is None, the gang is replacing lost members, and as many replacements as fit are placed.
        """
        session, gang = search.session, search.ask.gang
        if shape is None:
            _complete(search)
            return None
        if gang.spares_asked and self._with_spares(search, shape):
            return None
        failed = self._failures.get(shape)
        if failed is None:
            lacks = search.minimum()
            if lacks is None:
                return None
            search.statement.discard()
            why = no_room(lacks).also(reservations.in_the_way(gang))
            failed = SearchFailure(lacks, why, nodes_of(session, search.ask))
            self._failures.remember(session, shape, failed)
        return None if gang.options and self._on_spares(search, shape) else failed

    def _with_spares(self, search: SlotSearch, shape: Hashable) -> bool:
        """Place a gang's minimum together with its spare slots.

        Return False if the minimum and the spare slots do not fit together, or if the queue's limits do not allow both.
        """
        session = search.session
        ranks = self._spares.ranks(session, search.ask.gang)
        together = (shape, tuple(map(len, ranks.values())))
        if not ranks or self._failures.get(together):
            return False
        spares = Statement(session)
        with undone(spares):
            if not place_together(search, spares, ranks):
                self._failures.remember(session, together, SearchFailure(UNTOLD, NOTHING))
                return False
            search.spares = as_spare_runs(session, spares.commit())
        return True

    def _on_spares(self, search: SlotSearch, shape: Hashable) -> bool:
        """Place a gang's whole minimum, partly on spare slots of other gangs.

        Return False if the gang does not fit even with other gangs' spare slots.
        """
        gang = search.ask.gang
        tried = ("spares", shape)
        if not borrows(gang.options) or self._failures.get(tried):
            return False
        if not (room := lendable_spares(search.session, gang)):
            return False
        with room.free():
            failed = search.minimum()
            if failed is not None:
                search.statement.discard()
                self._failures.remember(search.session, tried, SearchFailure(failed, NOTHING))
        search.borrows = room.loans if failed is None else None
        return bool(search.borrows)


def _complete(search: SlotSearch) -> None:
    """Place as many missing members of a started gang as fit, up to its minimum.

    The gang's own spare slots may be used.
    """
    ask = search.ask
    own = own_spares(search.session, ask.gang)
    with own.free():
        search.more(ask.minimum)
    if own and search.statement.slots:
        search.spares = after_use(ask.gang, own)
    if search.lacking and not search.statement.slots:
        report_why_more_wait(search.session, ask, for_minimum=True)


def _decide(session: Session, _gang: GangView, *, search: SlotSearch, grown: bool) -> None:
    """Place a gang on the slots that its search found; report the reason if a gang should grow but got no slots."""
    if search.statement.slots:
        search.decide()
    elif grown:
        report_why_more_wait(session, search.ask, for_minimum=False)


def wants_nodes(session: Session, gang: GangView) -> bool:
    """Return True for an admitted gang with an open slot, unless its queue excludes it or it has just been evicted."""
    if gang.key in session.evicted:
        return False
    let_in = gang.key in session.enqueued or not (gang.pending or gang.group.status.phase == "Completed")
    barred = gang.key in session.snapshot.barred
    return let_in and not barred and not gang.active and (not gang.started or any(gang.open_slots.values()))


def _restores_members(gang: GangView) -> bool:
    """Return True for a started gang that may replace lost members even if its queue has reached its limit."""
    return gang.started and not gang.independent
