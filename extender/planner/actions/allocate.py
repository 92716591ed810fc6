"""Gives gangs their nodes: the whole minimum under one Statement or nothing, then what else fits.

Members under the minimum are of no use, and those above it are welcome; hence the two steps. The minimum is tried pod
set by pod set and taken back as a whole at the first one that fails. What else fits is added one by one (or sub-group
by sub-group) when every gang has been tried: a moment after the gang has started, since others may come along with it,
and only on nodes on which no gang waits to start.

The search is a short one: pod sets in two orders, nodes by score, no going back over what other gangs got. A gang that
would fit only in a third order waits, which costs time and breaks nothing; an exhaustive search would cost every gang
behind it more. What makes a cycle cheap is not to try at all: while nothing is freed, room only shrinks, so that of
gangs with the same shape only the first is tried, in this cycle and in those after it.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from functools import partial
from math import ceil

from extender.planner import reasons
from extender.planner.actions.obstacles import LIMIT, SlotLimit, obstacle
from extender.planner.actions.reserve.book import Book, Looks
from extender.planner.actions.search import lacking, open_above, place_minimum, place_more, runs_of_operations
from extender.planner.framework import decisions
from extender.planner.framework.demand import minimum_amounts, minimum_wanted, shortage
from extender.planner.framework.session import Session
from extender.planner.framework.statement import Statement, undone
from extender.planner.reasons.grammar import also
from extender.planner.reasons.room import NO_ROOM, Shortage
from extender.planner.state.gangs import GangView
from extender.planner.topology.requests import request_of
from muster.api.kubernetes.meta import parse_time

LIMIT_TOLD_AFTER_S = 5.0
"""How long a gang waits for placed slots of others before its status says so; mostly it is its turn by then."""
HELD_BACK_S = 30.0
"""How long a gang that only waits for placed slots of others is not let in: its pods would be born gated, which costs a
write for each, and mostly they can soon be born on their nodes."""

Trial = tuple[GangView, Statement]
"""A gang, and what it gets in this cycle."""


@dataclass(slots=True)
class _Found:
    """What one cycle has found so far."""

    limit: SlotLimit
    book: Book
    """What is reserved for whom."""
    limited: dict[str, float]
    """UID of a gang → since when it only waited for the limit, before this cycle."""
    tried: list[Trial] = field(default_factory=list)
    waiting: list[GangView] = field(default_factory=list)
    """Gangs that have not got what they need to start."""


class Allocate:
    """Tries every gang that was let in and has open slots, in the session's order."""

    name = "allocate"

    def __init__(self) -> None:
        self._failures: dict[Hashable, tuple[Shortage, str]] = {}
        """Shape of a gang that did not fit → why, also in words, with the reservations that were in its way. Within a
        cycle room only shrinks, so its like need not be tried."""
        self._looked: Looks = {}
        """Searches for reservations that found nothing."""
        self._version = -1
        self._limited: dict[str, float] = {}
        """UID of a gang that only waits until fewer slots are placed → since when, in seconds since the epoch."""
        self._placed_since: dict[str, float] = {}
        """UID of a gang → since when it has placed slots."""

    def execute(self, session: Session) -> None:
        """Decides Place for the gangs that fit, Unschedulable with the reason for those that do not."""
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
        found.book.close()

    def _look(self, session: Session, gang: GangView, found: _Found) -> None:
        """Gives one gang its minimum, unless something keeps it from being tried."""
        why = obstacle(session, gang)
        if why is not None:
            session.decide(why)
            return
        if head := found.book.behind(gang):
            words = reasons.queues.behind(queue=gang.queue, head=head.key)
            session.decide(decisions.Unschedulable(gang, reasons.queues.STRICT_ORDER, words))
            return
        if not found.limit.admit(gang):
            found.waiting.append(gang)
            self._wait_for_others(session, gang, found.limited.get(gang.uid, session.now))
            return
        full = None if gang.started else session.queue_refusal(gang, minimum_amounts(session.snapshot, gang))
        if full is not None:  # it waits for its queue and not for nodes, so that none are reserved for it
            session.decide(decisions.Unschedulable(gang, full.reason, full.message))
            return
        session.hooks.pre_job_allocation.call(gang)
        statement = Statement(session)
        with undone(statement), found.book.room_for(gang) as restrictions:
            failed = self._start(session, statement, gang, restrictions, found.book)
        fits = failed is None
        if failed is not None:
            session.decide(_waits(gang, *failed, found.book.waits(gang)))
        if not fits or (gang.started and lacking(gang, statement)):
            found.waiting.append(gang)
        if fits:
            found.tried.append((gang, statement))
            found.limit.add(gang, statement.slots)
            found.book.placed(gang, statement.operations)

    def _wait_for_others(self, session: Session, gang: GangView, since: float) -> None:
        """The gang would be tried if fewer slots were placed; `since` when that is so, in seconds."""
        self._limited[gang.uid] = since
        if session.now - since >= LIMIT_TOLD_AFTER_S:
            session.decide(decisions.Unschedulable(gang, reasons.pods.SLOT_LIMIT, reasons.pods.slot_limit(limit=LIMIT)))
        if session.now - since < HELD_BACK_S and gang.group.status.phase in {"", "Pending"}:
            session.enqueued.discard(gang.key)

    def _start(
        self, session: Session, statement: Statement, gang: GangView, restrictions: bytes, book: Book
    ) -> tuple[Shortage, str] | None:
        """Gives one gang its minimum: the whole of it, or of one that has started what fits.

        None unless it must wait; then what it lacks, and that in words.
        """
        if gang.started:
            place_more(session, statement, gang, minimum_wanted(gang))
            return None
        shape = (shape_of(session, gang), restrictions)
        if shape not in self._failures:
            failed = place_minimum(session, statement, gang)
            if failed is None:
                return None
            statement.discard()
            self._failures[shape] = failed, also(failed.message, book.in_the_way(gang))
        return self._failures[shape]


def _grow(session: Session, found: _Found) -> None:
    """Lets gangs have more than their minimum, of what nobody needs to start; and decides Place."""
    growing = [
        (gang, statement)
        for gang, statement in found.tried
        if growth_is_due(session, gang) and open_above(gang, statement)
    ]
    if growing:
        session.reserve_from_growth(cls for gang in found.waiting for cls in gang.classes if cls is not None)
        grow(session, growing, found.limit, found.book)
    keys = {gang.key for gang, _ in growing}
    for gang, statement in found.tried:
        if gang.key not in session.failures:
            session.attempt(gang, partial(_place, statement=statement, grown=gang.key in keys))
    session.reserve_from_growth(())  # who looks at this session afterwards asks about those that wait


def _place(session: Session, gang: GangView, *, statement: Statement, grown: bool) -> None:
    placed, operations = statement.slots, statement.commit()
    if placed:
        session.decide(decisions.Place(gang, runs_of_operations(session, gang, operations), gang.next_epoch(), placed))
    elif grown or lacking(gang, statement):
        _say_why_extras_wait(session, gang)


def shape_of(session: Session, gang: GangView) -> Hashable:
    """Equal for gangs that fit or do not fit alike."""
    wanted = minimum_wanted(gang)
    if session.asks_by_gang or any(pod_set.mixed for pod_set in gang.pod_sets):
        return gang.key
    sets = tuple(
        (pod_set.name, pod_set.cls.key if pod_set.cls else b"", wanted[pod_set.name]) for pod_set in gang.pod_sets
    )
    request = request_of(gang)
    return sets, frozenset(session.avoided.get(gang.key, ())), request and request.shape


def wants_nodes(session: Session, gang: GangView) -> bool:
    """Whether this action tries the gang: it was let in, and some slot is neither taken nor placed."""
    let_in = gang.key in session.enqueued or gang.group.status.phase not in {"", "Pending", "Completed"}
    return let_in and not gang.active and (not gang.started or any(gang.open_slots().values()))


def growth_is_due(session: Session, gang: GangView) -> bool:
    """Whether it may have more than its minimum by now: a moment after its start, as others may come along with it."""
    delay_s = session.inputs.growth_delay_s
    if not gang.started:
        return delay_s <= 0
    since = parse_time(gang.placement.status.started_at) if gang.placement else None
    return since is None or session.now >= since + delay_s


def _waits(gang: GangView, lacks: Shortage, words: str, more: str = "") -> decisions.Unschedulable:
    return decisions.Unschedulable(gang, NO_ROOM, also(words, more), lacks)


def _say_why_extras_wait(session: Session, gang: GangView) -> None:
    for pod_set in gang.pod_sets:
        ranks = gang.open_slots()[pod_set.name]
        if ranks:
            row = session.snapshot.row_of(pod_set.cls) if pod_set.cls else None
            full = session.queue_refusal(gang, row) if row is not None else None
            if full is not None:
                session.decide(decisions.Unschedulable(gang, full.reason, full.message))
                return
            lacks = shortage(session, gang, pod_set, len(ranks), 0, kind="extra")
            session.decide(_waits(gang, lacks, lacks.message))
            return


STEPS = 256
"""Steps in one cycle, about: each looks for a node, and weighs queues."""


def grow(session: Session, trials: Sequence[tuple[GangView, Statement]], limit: SlotLimit, book: Book) -> None:
    """Adds to each gang's statement what it gets besides, as long as there is room for any of them."""
    statements = {gang.key: statement for gang, statement in trials}
    waiting = sum(_open(gang, statement) for gang, statement in trials)
    alone = len({gang.queue for gang, _ in trials}) == 1
    step = waiting if alone else ceil(waiting / STEPS)
    more = set(statements)
    for gang in session.turns([gang for gang, _ in trials], lambda gang: gang.key in more):
        add = partial(_add, statement=statements[gang.key], most=step, limit=limit, book=book)
        if not session.attempt(gang, add):
            more.discard(gang.key)


def _add(session: Session, gang: GangView, *, statement: Statement, most: int, limit: SlotLimit, book: Book) -> bool:
    """Gives one gang so many more pods of the first pod set that has room; False if that was all it can get."""
    if not limit.admit(gang):
        return False
    before = statement.slots
    with undone(statement), book.room_for(gang, growth=True):
        for pod_set in session.ordered_pod_sets(gang):
            place_more(session, statement, gang, {each.name: most if each is pod_set else 0 for each in gang.pod_sets})
            if statement.slots > before:
                break
    limit.add(gang, statement.slots - before)
    return statement.slots > before and _open(gang, statement) > 0


def _open(gang: GangView, statement: Statement) -> int:
    return sum(len(ranks) for ranks in gang.open_slots().values()) - statement.slots
