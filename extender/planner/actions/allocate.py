"""Gives gangs their nodes: the whole minimum under one Statement or nothing, then what else fits.

Pods above the minimum are added one by one (or by sub-group) after all gangs have been tried: a moment after the gang
has started, since others may come along with it. Queues, the gangs of a queue and the pod sets of a gang are weighed
again after each of them, so that they share the rest. A gang that waits keeps no room from them but what is reserved
for it. Independent pods are tried as gangs of one, and come together where there is room.

There is no backtracking over other gangs. While nothing is freed, room only shrinks, so that of gangs with the same
shape only the first is tried, in this cycle and in later ones.
"""

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from functools import partial
from math import ceil

from extender.planner import reasons
from extender.planner.actions.obstacles import LIMIT, SlotLimit, obstacle
from extender.planner.actions.reserve.book import Book
from extender.planner.actions.reserve.looks import Looks
from extender.planner.actions.search import (
    lacking,
    lost,
    place_minimum,
    place_more,
    runs_of_operations,
)
from extender.planner.actions.spares import Spares, after_use, as_seats, lendable_room, own_room, place_together
from extender.planner.framework import decisions
from extender.planner.framework.demand import (
    amounts_with_claims,
    chosen_ranks,
    minimum_amounts,
    minimum_wanted,
    shortage,
)
from extender.planner.framework.session import Session
from extender.planner.framework.statement import Statement, undone
from extender.planner.reasons.grammar import also
from extender.planner.reasons.room import NO_ROOM, UNTOLD, Shortage
from extender.planner.state.gangs import GangView
from extender.planner.state.podset import PodSetView
from extender.planner.topology.requests import request_of
from muster.api.kubernetes.meta import parse_time
from muster.api.muster.placement import Loan, SpareSeats
from muster.resources.spares import borrows

LIMIT_TOLD_AFTER_S = 5.0
"""Time that a gang waits for placed slots of others before its status says so; mostly it is its turn by then."""
HELD_BACK_S = 30.0
"""Time that a gang which only waits for placed slots of others is not let in: its pods would be born gated, which costs
a write for each, and mostly they can soon be born on their nodes."""
STEPS = 256
"""Steps of growth in one cycle, about: each searches a node and weighs queues."""

Trial = tuple[GangView, Statement]
"""A gang, and its slots of this cycle."""


@dataclass(slots=True)
class _Found:
    """The results of one cycle so far."""

    limit: SlotLimit
    book: Book
    limited: dict[str, float]
    """UID of a gang → since when it only waited for the limit, before this cycle."""
    tried: list[Trial] = field(default_factory=list)
    spares: dict[str, list[SpareSeats]] = field(default_factory=dict)
    """Key of a tried gang → its spares from now on; none of a gang that keeps what it has."""
    borrows: dict[str, list[Loan]] = field(default_factory=dict)
    """Key of a tried gang → the spares of others on which it runs."""


class Allocate:
    """Tries every gang that was let in and has open slots, in the session's order."""

    name = "allocate"

    def __init__(self) -> None:
        self._failures: dict[Hashable, tuple[Shortage, str]] = {}
        """Shape of a gang that did not fit → its shortage, and the message with the reservations in its way."""
        self._looked: Looks = {}
        """Searches for reservations that found nothing."""
        self._version = -1
        self._limited: dict[str, float] = {}
        """UID of a gang that only waits for the limit of slots → since when, in seconds since the epoch."""
        self._placed_since: dict[str, float] = {}
        """UID of a gang → since when it has placed slots."""
        self._spares = Spares()

    def execute(self, session: Session) -> None:
        """Decide Place for the gangs that fit, Unschedulable with the reason for those that do not."""
        if self._version != session.snapshot.version:
            self._failures.clear()
            self._version = session.snapshot.version
        gangs = [gang for gang in session.snapshot.gangs if session.attempt(gang, wants_nodes)]
        self._looked = {gang.uid: self._looked[gang.uid] for gang in gangs if gang.uid in self._looked}
        placed = [gang.uid for gang in session.snapshot.gangs if gang.key in session.snapshot.placed]
        self._placed_since = {uid: self._placed_since.get(uid, session.now) for uid in placed}
        limit = SlotLimit(session.snapshot, self._placed_since, session.now)
        found = _Found(limit, Book(session, gangs, self._looked), self._limited)
        self._limited = {}
        for gang in session.turns(gangs):
            if gang.key not in session.failures:
                session.attempt(gang, lambda session, gang: self._look(session, gang, found))
        _grow(session, found)
        self._spares.refill(session, found.book)
        found.book.close()

    def _look(self, session: Session, gang: GangView, found: _Found) -> None:
        """Give one gang its minimum, unless there is an obstacle."""
        why = obstacle(session, gang)
        if why is not None:
            session.decide(why)
            return
        if head := found.book.behind(gang):
            words = reasons.queues.behind(queue=gang.queue, head=session.called(head, gang))
            session.decide(decisions.Unschedulable(gang, reasons.queues.STRICT_ORDER, words))
            return
        if not found.limit.admit(gang):
            self._wait_for_others(session, gang, found.limited.get(gang.uid, session.now))
            return
        full = None if _goes_on(gang) else session.queue_refusal(gang, minimum_amounts(session, gang))
        if full is not None:  # no nodes are reserved for a gang that waits for its queue
            session.decide(decisions.Unschedulable(gang, full.reason, full.message))
            return
        session.hooks.pre_job_allocation.call(gang)
        statement = Statement(session)
        with undone(statement), found.book.room_for(gang) as restrictions:
            failed = self._start(session, statement, gang, restrictions, found)
        if failed is not None:
            lacks, words = failed
            session.decide(decisions.Unschedulable(gang, NO_ROOM, also(words, found.book.waits(gang)), lacks))
            return
        found.tried.append((gang, statement))
        found.limit.add(gang, statement.slots)
        found.book.placed(gang, statement.operations)

    def _wait_for_others(self, session: Session, gang: GangView, since: float) -> None:
        """Let a gang wait for the limit of slots, `since` this time in seconds since the epoch."""
        self._limited[gang.uid] = since
        if session.now - since >= LIMIT_TOLD_AFTER_S:
            session.decide(decisions.Unschedulable(gang, reasons.pods.SLOT_LIMIT, reasons.pods.slot_limit(limit=LIMIT)))
        if session.now - since < HELD_BACK_S and gang.group.status.phase in {"", "Pending"}:
            session.enqueued.discard(gang.key)

    def _start(
        self,
        session: Session,
        statement: Statement,
        gang: GangView,
        restrictions: bytes,
        found: _Found,
    ) -> tuple[Shortage, str] | None:
        """Give one gang its whole minimum, or what fits of one that has started; else return shortage and message."""
        if _goes_on(gang):
            own = own_room(session, gang)
            with own.free():
                place_more(session, statement, gang, minimum_wanted(gang))
            if own and statement.slots:
                found.spares[gang.key] = after_use(gang, own)
            if lacking(gang, statement) and not statement.slots:
                _say_why_lost_wait(session, gang)
            return None
        book, shape = found.book, (shape_of(session, gang), restrictions)
        if gang.spares_asked and self._with_spares(session, statement, gang, shape, found):
            return None
        if shape not in self._failures:
            failed = place_minimum(session, statement, gang)
            if failed is None:
                return None
            statement.discard()
            self._failures[shape] = failed, also(failed.message, book.in_the_way(gang))
        if gang.said and (lent := self._on_spares(session, statement, gang, shape)):
            found.borrows[gang.key] = lent
            return None
        return self._failures[shape]

    def _with_spares(
        self, session: Session, statement: Statement, gang: GangView, shape: Hashable, found: _Found
    ) -> bool:
        """Give a gang its minimum together with its spares; False if they do not fit, or its queue is too full."""
        ranks = self._spares.ranks(session, gang)
        together = (shape, tuple(map(len, ranks.values())))
        if not ranks or together in self._failures:
            return False
        spares = Statement(session)
        with undone(spares):
            if not place_together(session, statement, spares, gang, ranks):
                self._failures[together] = UNTOLD, ""
                return False
            found.spares[gang.key] = as_seats(session, spares.commit())
        return True

    def _on_spares(self, session: Session, statement: Statement, gang: GangView, shape: Hashable) -> list[Loan]:
        """Give a gang that finds no room its whole minimum with the help of spares of others; return the loans."""
        tried = ("spares", shape)
        if not borrows(gang.said) or tried in self._failures or not (room := lendable_room(session, gang)):
            return []
        with room.free():
            failed = place_minimum(session, statement, gang)
            if failed is not None:
                statement.discard()
                self._failures[tried] = failed, ""
        return room.loans if failed is None else []


@dataclass(slots=True)
class _Growing:
    """A gang that may get more than its minimum."""

    gang: GangView
    statement: Statement
    given: Counter[str] = field(default_factory=Counter)
    """Pod set → slots above the minimum that this cycle gave it."""

    @property
    def surplus(self) -> int:
        """Members above the minimum, those of this cycle included."""
        return self.gang.taken + self.statement.slots - self.gang.floor.min_member


def _grow(session: Session, found: _Found) -> None:
    """Give gangs more than their minimum, and decide Place."""
    growing = {
        gang.key: _Growing(gang, statement)
        for gang, statement in found.tried
        if growth_is_due(session, gang) and _open(gang, statement) and not lacking(gang, statement)
    }
    if growing:
        more = set(growing)
        gangs, step = [each.gang for each in growing.values()], _step(list(growing.values()))
        for gang in session.turns(gangs, lambda gang: gang.key in more, lambda gang: growing[gang.key].surplus):
            add = partial(_add, grown=growing[gang.key], most=step, limit=found.limit, book=found.book)
            if not session.attempt(gang, add):
                more.discard(gang.key)
    for gang, statement in found.tried:
        if gang.key not in session.failures:
            place = partial(_place, statement=statement, grown=gang.key in growing, found=found)
            session.attempt(gang, place)


def _step(growing: Sequence[_Growing]) -> int:
    """Return the number of pods in a step: all at once where nobody has a part in them."""
    waiting = sum(_open(each.gang, each.statement) for each in growing)
    alone = len(growing) == 1 and sum(map(bool, growing[0].gang.open_slots().values())) == 1
    return waiting if alone else ceil(waiting / STEPS)


def _place(session: Session, gang: GangView, *, statement: Statement, grown: bool, found: _Found) -> None:
    placed, operations = statement.slots, statement.commit()
    if placed:
        runs = runs_of_operations(session, gang, operations)
        kept, loans = found.spares.get(gang.key), found.borrows.get(gang.key)
        session.decide(decisions.Place(gang, runs, gang.next_epoch(), placed, spares=kept, borrows=loans))
    elif grown:
        _say_why_extras_wait(session, gang)


def shape_of(session: Session, gang: GangView) -> Hashable:
    """Return a value that is equal for gangs that fit or do not fit alike."""
    wanted = minimum_wanted(gang)
    if session.asks_by_gang or any(pod_set.mixed for pod_set in gang.pod_sets):
        return gang.key
    sets = tuple(
        (each.name, each.cls.key, wanted[each.name], min(session.claims.hold(each.cls), wanted[each.name]))
        if each.cls
        else (each.name, b"", wanted[each.name], 0)
        for each in gang.pod_sets
    )
    request = request_of(gang)
    return sets, frozenset(session.avoided.get(gang.key, ())), request and request.shape


def wants_nodes(session: Session, gang: GangView) -> bool:
    """Return True for an admitted gang with an open slot that is not just evicted, and may use its queue."""
    if gang.key in session.evicted:
        return False
    let_in = gang.key in session.enqueued or gang.group.status.phase not in {"", "Pending", "Completed"}
    barred = gang.key in session.snapshot.barred
    return let_in and not barred and not gang.active and (not gang.started or any(gang.open_slots().values()))


def _goes_on(gang: GangView) -> bool:
    """Return True for a gang that gets lost members back, whatever its queue has: else the others run in vain."""
    return gang.started and not gang.independent


def growth_is_due(session: Session, gang: GangView) -> bool:
    """Return True if the gang may have more than its minimum by now."""
    delay_s = session.inputs.growth_delay_s
    if gang.independent:
        return True
    if not gang.started:
        return delay_s <= 0
    since = parse_time(gang.placement.status.started_at) if gang.placement else None
    return since is None or session.now >= since + delay_s


def _say_why_extras_wait(session: Session, gang: GangView) -> None:
    """Say what keeps a gang from growing: room, or its queue."""
    slots = gang.open_slots()
    pod_set = next((each for each in gang.pod_sets if slots[each.name]), None)
    if pod_set is not None and not _queue_is_full(session, gang, pod_set, slots[pod_set.name][0]):
        lacks = shortage(session, gang, pod_set, len(slots[pod_set.name]), 0, kind="extra")
        session.decide(decisions.Unschedulable(gang, NO_ROOM, lacks.message, lacks))


def _say_why_lost_wait(session: Session, gang: GangView) -> None:
    """Say why a gang that started gets none of the members that its minimum lacks."""
    slots = chosen_ranks(session, gang, minimum_wanted(gang))
    pod_set = next((each for each in gang.pod_sets if slots[each.name]), None)
    if pod_set is not None and not _queue_is_full(session, gang, pod_set, slots[pod_set.name][0]):
        lacks = lost(session, gang, pod_set, slots)
        session.decide(decisions.Unschedulable(gang, NO_ROOM, lacks.message, lacks))


def _queue_is_full(session: Session, gang: GangView, pod_set: PodSetView, rank: int) -> bool:
    """Return True, and say so, if the gang's queues have no room for this pod of the set."""
    cls = pod_set.class_of(rank)
    one = {pod_set.name: {cls: 1}} if cls else {}
    full = session.queue_refusal(gang, amounts_with_claims(session, gang, one)) if one else None
    if full is not None:
        session.decide(decisions.Unschedulable(gang, full.reason, full.message))
    return full is not None


def _add(session: Session, gang: GangView, *, grown: _Growing, most: int, limit: SlotLimit, book: Book) -> bool:
    """Give one gang so many more pods of the first pod set that has room; False if it can get no more."""
    if not limit.admit(gang):
        return False
    statement = grown.statement
    before = statement.slots
    with undone(statement), book.room_for(gang, growth=True):
        for pod_set in session.ordered_pod_sets(gang, grown.given):
            place_more(session, statement, gang, {each.name: most if each is pod_set else 0 for each in gang.pod_sets})
            if statement.slots > before:
                grown.given[pod_set.name] += statement.slots - before
                break
    limit.add(gang, statement.slots - before)
    return statement.slots > before and _open(gang, statement) > 0


def _open(gang: GangView, statement: Statement) -> int:
    return sum(len(ranks) for ranks in gang.open_slots().values()) - statement.slots
