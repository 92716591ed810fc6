"""What preempt, reclaim and consolidate have in common: whom they ask for, how often, and what they decide.

They look at gangs that allocate could not place for lack of room. A few of each queue are tried per cycle, in the
session's order; a gang for which nothing helped is not tried again before something has changed, and nor is its like.

What is found is decided as a whole: a placement for the gang, whose members wait gated until the room is there, and the
evictions for it. The placement is written first, so that the room is the gang's, whoever carries it out in the end.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from extender.planner import reasons
from extender.planner.actions.allocate import shape_of, wants_nodes
from extender.planner.actions.makeroom import budgets_of, expected_to_go, leaving_pods
from extender.planner.actions.search import chosen_ranks, place_minimum, runs_of_operations
from extender.planner.framework import decisions
from extender.planner.framework.demand import amounts_of, minimum_wanted
from extender.planner.framework.operations import Scenario
from extender.planner.framework.session import Session
from extender.planner.framework.statement import Statement
from extender.planner.reasons.room import NO_ROOM
from extender.planner.state.gangs import GangPhase, GangView
from extender.planner.victims.pieces import Budgets, Catalogue, Piece, permitted
from extender.planner.victims.room import Need, domains_of, helpful, needs_of
from extender.planner.victims.solver import Search, solve
from muster.api.kubernetes.meta import parse_time

ATTEMPTS_PER_QUEUE = 2
ATTEMPTS = 8
"""Searches in one cycle, of one queue and in all: a search may take some tens of milliseconds."""
MOST_VICTIMS = 5_000
"""Pods that are evicted for one gang; they stand in its placement, which must fit into etcd."""
FULL_QUEUE = frozenset({reasons.queues.OVER_CAPABILITY, reasons.queues.GUARANTEED, reasons.queues.OVER_DESERVED})
"""Reasons of gangs whose queue is full."""

_RUNNING = frozenset({GangPhase.WHOLE, GangPhase.STRANDED})


@dataclass(slots=True)
class Asker:
    """A gang that needs room."""

    gang: GangView
    needs: list[Need]
    queue_full: bool
    """It is the queue that has no room: what goes must be of the queue, wherever it is."""


class Evicting:
    """Base of the three actions."""

    name = ""
    moves = False
    """Victims must have a new place."""

    def __init__(self) -> None:
        self._catalogue = Catalogue()
        self.running: list[GangView] = []
        """Gangs that have nodes and are not being placed, in this cycle."""
        self._hopeless: set[Hashable] = set()
        self._seen: Hashable = None

    def execute(self, session: Session) -> None:
        """Decides Place and MakeRoom for gangs that get room by it."""
        waiting = [why for why in session.decided(decisions.Unschedulable) if why.reason in {NO_ROOM, *FULL_QUEUE}]
        if not waiting:
            return
        self._forget(session)
        self.running = [gang for gang in session.snapshot.gangs if gang.phase in _RUNNING]
        queues: Counter[str] = Counter()
        for why in waiting:  # in the order in which they were tried
            gang = why.gang
            if queues[gang.queue] >= ATTEMPTS_PER_QUEUE or not self.worthwhile(session, gang):
                continue
            if not self._may_ask(session, gang) or (shape := self.shape(session, gang)) in self._hopeless:
                continue
            queues[gang.queue] += 1
            if not session.attempt(gang, partial(self._try, full=why.reason in FULL_QUEUE)):
                self._hopeless.add(shape)
            if queues.total() >= ATTEMPTS:
                return

    # -- what the actions differ in ---------------------------------------------------------------------------------

    def shape(self, session: Session, gang: GangView) -> Hashable:
        """Equal for gangs for which the same would help."""
        return gang.queue, gang.priority, shape_of(session, gang)

    def worthwhile(self, session: Session, gang: GangView) -> bool:
        """Whether there can be anybody to displace; cheap, as it is asked of every gang that waits."""
        raise NotImplementedError

    def allowed(self, session: Session, asker: Asker) -> bool:
        """Whether the gang may ask for room in this way at all."""
        raise NotImplementedError

    def pieces(self, session: Session, asker: Asker) -> list[Piece]:
        """Whom it may displace, in the order in which they are taken."""
        raise NotImplementedError

    def agreed(self, session: Session, scenario: Scenario) -> bool:
        """Whether plugins agree."""
        raise NotImplementedError

    def reason(self, gang: GangView) -> str:
        """Why victims have to go, for their owners."""
        raise NotImplementedError

    # -- one gang ---------------------------------------------------------------------------------------------------

    def victims_of(self, session: Session, asker: Asker, allowed: Callable[[GangView], bool]) -> list[Piece]:
        """The pieces of all gangs that are allowed, as far as they would help the asker."""
        found: list[Piece] = []
        leaving = leaving_pods(session)
        for gang in self.running:
            if gang is asker.gang or not allowed(gang):
                continue
            pieces = self._catalogue.of(session, gang)
            if leaving and any(pod.uid in leaving for piece in pieces for pod in piece.pods):
                continue
            found += pieces if asker.queue_full else helpful(pieces, asker.needs)
        return found

    def _may_ask(self, session: Session, gang: GangView) -> bool:
        """Nobody is evicted for a gang whose class says never, or for which it was in vain a moment ago."""
        if not gang.preempts or gang.active:
            return False
        before = gang.placement.status.no_evictions_before if gang.placement else ""
        if before and (parse_time(before) or 0.0) > session.now:
            return False
        let_in = wants_nodes(session, gang) or gang.group.status.phase in {"", "Pending"}
        return let_in and session.hooks.job_ready.call(gang)

    def _try(self, session: Session, gang: GangView, *, full: bool) -> bool:
        wanted = minimum_wanted(gang)
        if not any(wanted.values()):
            return False
        needs = needs_of(session, gang, chosen_ranks(session, gang, wanted))
        if not needs:
            return False
        with _room_of_leaving(session), _reservations_kept(session, gang):
            asker = Asker(gang, needs, queue_full=full)
            if not self.allowed(session, asker):
                return False
            pieces = permitted(self.pieces(session, asker), budgets_of(session))
            for inside in domains_of(session, gang, needs, pieces):
                within = asker
                if inside is not None:
                    own = [replace(need, usable=need.usable & inside) for need in needs]
                    within = Asker(gang, own, queue_full=full)
                    pieces = permitted(self.pieces(session, within), budgets_of(session))
                found = self._search(session, within, wanted, pieces)
                if found is None:
                    continue
                for piece in found:
                    session.snapshot.leaving.update((pod.uid, pod) for pod in piece.pods)
                return True
        return False

    def _search(
        self, session: Session, asker: Asker, wanted: Mapping[str, int], pieces: list[Piece]
    ) -> list[Piece] | None:
        """Who goes, with all of that decided; None if nothing helps."""
        gang, statement = asker.gang, Statement(session)
        search = Search(
            session,
            statement,
            gang,
            amounts_of(session.snapshot, gang, wanted),
            asker.needs,
            place=lambda pieces: self._placed(session, statement, gang, pieces),
            agreed=lambda scenario: self.agreed(session, scenario),
            moved=self.moves,
        )
        try:
            found = solve(search, pieces)
        except BaseException:
            statement.discard()
            raise
        if not found or sum(len(piece.pods) for piece in found) > MOST_VICTIMS:
            statement.discard()
            return None if found is None or found else []
        self._decide(session, statement, gang, found)
        return found

    def _placed(self, session: Session, statement: Statement, gang: GangView, _pieces: Sequence[Piece]) -> bool:
        return place_minimum(session, statement, gang) is None

    def _decide(self, session: Session, statement: Statement, gang: GangView, found: list[Piece]) -> None:
        evictions, operations = statement.evictions, statement.commit()
        for eviction in evictions:  # they are still there; but plugins go on without them
            session.snapshot.free[:, eviction.column] -= eviction.amount
        if gang.key not in session.enqueued and gang.group.status.phase in {"", "Pending"}:
            session.enqueued.add(gang.key)
            session.decide(decisions.Enqueue(gang))
        for kind in (decisions.Unschedulable, decisions.Reserve, decisions.Unreserve):
            session.withdraw(gang, kind)
        victims = tuple((piece.gang, pod) for piece in found for pod in piece.pods)
        reason = self.reason(gang)
        for moved in {piece.gang.key: piece.gang for piece in found}.values() if self.moves else ():
            own = [operation for operation in operations if operation.gang is moved]
            runs = runs_of_operations(session, moved, own, gated=True)
            gone = tuple((moved, pod) for victim, pod in victims if victim is moved)
            session.decide(decisions.Place(moved, runs, moved.next_epoch(), len(gone), gone, reason))
        mine = [operation for operation in operations if operation.gang is gang]
        slots, epoch = sum(len(operation.ranks) for operation in mine), gang.next_epoch()
        runs = runs_of_operations(session, gang, mine, gated=True)
        session.decide(decisions.Place(gang, runs, epoch, slots, victims, reason))
        budgets = Budgets(session.snapshot)
        budgeted = frozenset(pod.uid for _, pod in victims if budgets.counted(pod)) if budgets else frozenset()
        session.decide(decisions.MakeRoom(gang, epoch, victims, reason, budgeted))
        for piece in found:
            if piece.rest and not self.moves:
                session.decide(decisions.Unschedulable(piece.gang, reasons.evictions.EVICTED, reason))

    def _forget(self, session: Session) -> None:
        """What did not help may help again once anything that decides has changed; and every few seconds."""
        snapshot = session.snapshot
        budgets = tuple((budget.metadata.uid, budget.metadata.resource_version) for budget in snapshot.budgets)
        queues = tuple((name, queue.metadata.resource_version) for name, queue in snapshot.queues.items())
        now = snapshot.version, hash(budgets), hash(queues), int(session.now // 10)
        if now != self._seen:
            self._hopeless.clear()
            self._seen = now
        self._catalogue.forget_others(snapshot.gangs)


@contextmanager
def _reservations_kept(session: Session, gang: GangView) -> Iterator[None]:
    """Leaves alone what is reserved for gangs at the head of their queues, but for one that is such a head itself."""
    head = gang.placement is not None and gang.placement.status.phase == "Reserved"
    before, session.reserved = session.reserved, None if head else session.reserved_in_all
    try:
        yield
    finally:
        session.reserved = before


@contextmanager
def _room_of_leaving(session: Session) -> Iterator[None]:
    """Counts the room of pods that are being deleted as free: nobody is to go for what comes by itself."""
    snapshot = session.snapshot
    columns, rows = [], []
    for pod in snapshot.leaving.values():
        column = snapshot.index.get(pod.node)
        if column is not None and expected_to_go(pod.gone_by, session.now):
            columns.append(column)
            rows.append(snapshot.row_of(pod.cls))
    if columns:
        np.add.at(snapshot.free.T, columns, np.array(rows))
    try:
        yield
    finally:
        if columns:
            np.subtract.at(snapshot.free.T, columns, np.array(rows))
