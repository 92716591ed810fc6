"""Spare slots: capacity that a gang holds on additional nodes of its domain, for members that it may lose later.

On each additional node, the gang holds as many spare slots as members would fit on the empty node. Spare slots are
planned together with the gang's minimum, like members with additional ranks. Spare slots are therefore in the gang's
domain and follow all rules of its pods. If spare slots do not fit, or the queue's limits do not allow them, the gang
starts without spare slots and gets them later, when capacity is free.

Spare slots are entries of the ledger (`planner.state.spareentries`), and no other gang is placed on them. A lost
member's replacement may use any free capacity and the gang's spare slots; a used spare slot is replaced later.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import numpy as np

from extender.planner.actions.reserve.heads import HeadReservations
from extender.planner.actions.search import SlotSearch
from extender.planner.ask import Ask, Ranks
from extender.planner.framework import decisions
from extender.planner.framework.operations import Operation
from extender.planner.framework.session import Session
from extender.planner.framework.statement import Statement, counted_free, undone
from extender.planner.state.amounts import Amounts
from extender.planner.state.gangs import GangView
from extender.planner.state.podset import PodSetView
from extender.planner.state.spareentries import lent, runs, spare_runs_of
from extender.planner.victims.disturb import borrows
from extender.planner.victims.units import spares_left, unused_spares
from muster.api.limits import SPARES
from muster.api.muster.placement import BorrowedSpares, NodeSpares

SEARCH_INTERVAL_S = 5.0
"""Minimum time between a failed search for spare slots and the next search for the same gang."""
SEARCHES = 8
"""Maximum number of searches for spare slots of running gangs in one cycle."""


@dataclass(slots=True)
class Spares:
    """State of the planning of spare slots that is kept from cycle to cycle."""

    _searched: dict[str, float] = field(default_factory=dict)
    """Maps the UID of a gang to the time of its last failed search for spare slots, in seconds since the epoch."""
    _per_node: dict[bytes, int] = field(default_factory=dict)
    """Maps a pod class to the maximum number of such pods on an empty node."""
    _version: int | None = None

    def ranks(self, session: Session, gang: GangView) -> dict[str, range]:
        """Return the ranks of spare slots, keyed by pod set; they follow the members' ranks. Most gangs have none.

        A gang has at most as many spare slots as members, so that a gang of one pod cannot keep a rack unused. Members
        are counted by pods and not by the highest rank, because users can label a pod with any rank.
        """
        asked = Counter(gang.spares_asked)
        if not asked or gang.independent:
            return {}
        if self._version != session.snapshot.generation:
            self._per_node.clear()
            self._version = session.snapshot.generation
        largest = max(gang.pod_sets, key=_members, default=None)
        found: dict[str, range] = {}
        for pod_set in gang.pod_sets:
            nodes = asked[pod_set.name] + (asked[""] if pod_set is largest else 0)
            if nodes and _countable(pod_set):
                wanted = min(nodes * self._wanted_spares(session, pod_set), _members(pod_set))
                found[pod_set.name] = range(pod_set.replicas, pod_set.replicas + wanted)
        return found

    def _wanted_spares(self, session: Session, pod_set: PodSetView) -> int:
        """Return the number of spare slots per additional node: as many as members fit on an empty node."""
        cls = pod_set.cls
        if cls is None:
            return 0
        if cls.key not in self._per_node:
            room = session.room(cls, session.snapshot.allocatable)
            self._per_node[cls.key] = int(room.max(initial=0))
        return max(1, min(_members(pod_set), self._per_node[cls.key]))

    def refill(self, session: Session, reservations: HeadReservations) -> None:
        """Decide KeepSpares for running gangs that have more or fewer spare slots than desired."""
        away = {place.gang.key for place in session.decided(decisions.Place)} | session.evicted
        due = [gang for gang in session.snapshot.gangs if _is_due(gang) and gang.key not in away]
        self._searched = {gang.uid: self._searched[gang.uid] for gang in due if gang.uid in self._searched}
        searches = 0
        for gang in due:
            if searches >= SEARCHES:
                return
            searches += bool(session.attempt(gang, lambda session, gang: self._refill(session, gang, reservations)))

    def _refill(self, session: Session, gang: GangView, reservations: HeadReservations) -> bool:
        """Decide KeepSpares for one gang; return True if spare slots were searched for.

        While a gang lacks members of its minimum, its spare slots are held for these members.
        """
        if gang.taken < gang.floor.min_member:
            return False
        wanted = {name: len(ranks) for name, ranks in self.ranks(session, gang).items()}
        before = gang.spares
        kept = _still_there(session, gang, wanted)
        lacking = Counter(wanted)
        for each in kept:
            lacking[each.pod_set] -= each.count
        last = self._searched.get(gang.uid)
        search = any(lacking.values()) and (last is None or session.now >= last + SEARCH_INTERVAL_S)
        if search:
            kept = joined([*kept, *_found(session, gang, lacking, reservations)])
            self._searched[gang.uid] = session.now
        if kept != before:
            missing = sum(wanted.values()) - sum(each.count for each in kept)
            session.decide(decisions.KeepSpares(gang, kept, max(missing, 0)))
        return search


def place_together(search: SlotSearch, spares: Statement, ranks: Ranks) -> bool:
    """Place the minimum on the search's statement and the spare slots on `spares`; on failure, undo both."""
    session, statement = search.session, search.statement
    amounts = session.amounts(search.ask) + _amounts(session, search.ask, ranks)
    if session.queue_refusal(search.ask, amounts) is not None:
        return False
    if search.minimum(ranks) is not None:
        statement.discard()
        return False
    operations = statement.operations
    statement.discard()
    statement.repeat(_parts(operations, lambda pod_set, rank: rank not in ranks.get(pod_set, ())))
    spares.repeat(_parts(operations, lambda pod_set, rank: rank in ranks.get(pod_set, ())))
    return True


def _parts(operations: Sequence[Operation], wanted: Callable[[str, int], bool]) -> Iterator[Operation]:
    """Yield the operations with only the ranks that `wanted` accepts; operations without such ranks are omitted."""
    for operation in operations:
        ranks = [rank for rank in operation.ranks if wanted(operation.pod_set, rank)]
        if ranks:
            yield replace(operation, ranks=ranks)


def as_spare_runs(session: Session, operations: Sequence[Operation]) -> list[NodeSpares]:
    """Return the slots of these operations as spare slots, as listed in a Placement."""
    name = session.snapshot.name
    return joined([NodeSpares(each.pod_set, name(each.column), len(each.ranks)) for each in operations])


def joined(seats: Sequence[NodeSpares]) -> list[NodeSpares]:
    """Return the spare slots grouped by pod set and node, on at most as many nodes as a Placement may list."""
    found: dict[tuple[str, str], int] = {}
    for each in seats:
        found[each.pod_set, each.node] = found.get((each.pod_set, each.node), 0) + each.count
    return [NodeSpares(pod_set, node, count) for (pod_set, node), count in found.items()][: SPARES.value]


class SpareSlots:
    """Spare slots that a search may use like free capacity, and the spare slots that remain after the search."""

    def __init__(self, session: Session, gangs: Iterable[GangView]) -> None:
        self._session = session
        self._spares: list[tuple[GangView, NodeSpares, int, Amounts]] = []
        self.left: list[NodeSpares] = []
        """The spare slots that the search has not taken."""
        self.loans: list[BorrowedSpares] = []
        """The spare slots that were borrowed, with the gangs that lend them."""
        for gang in gangs:
            for run, cls, column in unused_spares(session, gang):
                self._spares.append((gang, run, column, session.snapshot.row_of(cls)))

    def __bool__(self) -> bool:
        """True if there is at least one spare slot."""
        return bool(self._spares)

    @contextmanager
    def free(self) -> Iterator[None]:
        """Within a `with` block, count the spare slots as free capacity."""
        free = self._session.snapshot.free
        for _, run, column, row in self._spares:
            free[:, column] += row * run.count
        try:
            yield
        finally:
            for gang, run, column, row in self._spares:
                count = min(run.count, _fits(free[:, column], row))
                free[:, column] -= row * count
                if count:
                    self.left.append(NodeSpares(run.pod_set, run.node, count))
                if count < run.count:
                    self.loans.append(BorrowedSpares(gang.uid, run.pod_set, run.node, run.count - count))
            self._session.away.update(lent(self.loans))


def after_use(gang: GangView, room: SpareSlots) -> list[NodeSpares]:
    """Return the gang's spare slots that its own members have not taken."""
    return spares_left(gang.spares, (loan for loan in room.loans if loan.lender == gang.uid))


def without(gang: GangView, nodes: Collection[str], room: SpareSlots) -> list[NodeSpares] | None:
    """Return the gang's spare slots that are neither used nor lent on these nodes; None if the gang has none."""
    if not gang.spares:
        return None
    unused = {(each.pod_set, each.node) for each in room.left}
    return [each for each in after_use(gang, room) if each.node not in nodes or (each.pod_set, each.node) in unused]


def borrowers_of(session: Session, gang: GangView) -> list[GangView]:
    """Return the gangs without an active placement that borrow this gang's spare slots, smallest first."""
    found = [each for each in session.snapshot.gangs if not each.active and borrows(each, gang)]
    return sorted(found, key=lambda each: each.taken)


def own_spares(session: Session, gang: GangView) -> SpareSlots:
    """Return the gang's own spare slots that are not lent."""
    return SpareSlots(session, [gang])


def lendable_spares(session: Session, gang: GangView) -> SpareSlots:
    """Return the spare slots that a borrowing gang may use until their owner needs them.

    A gang that cannot be evicted gets no spare slots of other gangs.
    """
    leaves = session.snapshot.guards.can_be_taken_back(gang)
    return SpareSlots(session, (each for each in session.snapshot.gangs if each is not gang) if leaves else ())


@contextmanager
def spares_returned(session: Session, gang: GangView) -> Iterator[None]:
    """Within a `with` block, count lent spare slots as used, because they return to their owners."""
    taken: list[tuple[int, Amounts]] = []
    for lender in session.snapshot.gangs:
        for run, cls in spare_runs_of(lender) if lender is not gang else ():
            column = session.snapshot.index.get(run.node)
            count = min(run.count, session.away[lender.uid, run.pod_set, run.node])
            if column is not None and count:
                taken.append((column, -session.snapshot.row_of(cls) * count))
    with counted_free(session, taken):
        yield


def _fits(free: Amounts, row: Amounts) -> int:
    """Return the number of members with these requests that fit into the free capacity."""
    wanted = np.flatnonzero(row)
    return max(0, int((free[wanted] // row[wanted]).min())) if len(wanted) else 0


def _is_due(gang: GangView) -> bool:
    """Return True for a running gang that holds spare slots or should hold some."""
    return not gang.active and gang.placement is not None and runs(gang) and bool(gang.spares or gang.spares_asked)


def _members(pod_set: PodSetView) -> int:
    """Return the number of unfinished pods; for a pod set with a template, its replicas minus the finished pods."""
    if pod_set.template:
        return pod_set.replicas - (len(pod_set.taken) - pod_set.alive)
    return pod_set.alive + len(pod_set.waiting)


def _countable(pod_set: PodSetView) -> bool:
    """Return True for pods that request only countable resources, without GPU fractions and claims of each pod."""
    return pod_set.cls is not None and pod_set.cls.gpu is None and not pod_set.cls.needs and not pod_set.mixed


def _still_there(session: Session, gang: GangView, wanted: Mapping[str, int]) -> list[NodeSpares]:
    """Return the gang's spare slots that are still usable, up to a maximum number per pod set."""
    left, kept = Counter(wanted), list[NodeSpares]()
    avoided = session.avoided.get(gang.key, ())
    for run, cls in spare_runs_of(gang):
        column = session.snapshot.index.get(run.node)
        if column is None or run.node in avoided or session.node_codes(cls)[column]:
            continue
        row = session.snapshot.row_of(cls)
        if bool((session.snapshot.free[np.flatnonzero(row), column] < 0).any()):
            continue
        count = min(run.count, left[run.pod_set])
        if count:
            left[run.pod_set] -= count
            kept.append(NodeSpares(run.pod_set, run.node, count))
    return kept


def _found(session: Session, gang: GangView, lacking: Counter[str], reservations: HeadReservations) -> list[NodeSpares]:
    """Find replacements for missing spare slots near the gang's members, and take their capacity in the session."""
    statement = Statement(session)
    search = SlotSearch(session, statement, session.ask(gang))
    with undone(statement), reservations.room_for(gang, growth=True):
        for pod_set in gang.pod_sets:
            ranks = range(pod_set.replicas, pod_set.replicas + lacking[pod_set.name])
            while ranks and session.queue_refusal(search.ask, _amounts(session, search.ask, {pod_set.name: ranks})):
                ranks = ranks[:-1]
            if ranks:
                search.beside(pod_set, ranks)
    return as_spare_runs(session, statement.commit())


def _amounts(session: Session, ask: Ask, ranks: Ranks) -> Amounts:
    """Return the resources that spare slots with these ranks hold, int64 of shape (resources,)."""
    return session.amounts(ask, {each.name: each.classes_of(ranks.get(each.name, ())) for each in ask.gang.pod_sets})
