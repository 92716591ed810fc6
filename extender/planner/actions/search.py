"""Search for a gang's nodes on a statement: all members of the minimum together, then as many further pods as fit.

The input of a search is the gang's demand (`planner.ask`); its result is slots on the statement or a shortage. The
minimum is placed pod set by pod set, in up to two orders. If a pod set does not fit, all slots of the search are rolled
back. If the minimum may consist of any members, the search then places the members that fit.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import MappingProxyType

from extender.planner.actions.fill import PartSearch, alike_runs, fill, join
from extender.planner.actions.placing import orders_of, runs_of_operations, shares_of, there
from extender.planner.ask import Ask, Ranks
from extender.planner.framework.answers import EVERYWHERE, NodeSet
from extender.planner.framework.decisions import Place
from extender.planner.framework.session import Session
from extender.planner.framework.shortage import closed_nodes, near, shortage, together
from extender.planner.framework.statement import Statement, undone
from extender.planner.reasons.shortages import UNTOLD, Shortage
from extender.planner.state.gangs import GangView
from extender.planner.state.podclass import PodClass
from extender.planner.state.pods import PodRecord
from extender.planner.state.podset import PodSetView
from extender.planner.topology.parts import SlotGroup
from muster.api.muster.placement import BorrowedSpares, NodeSpares

NO_RANKS: Ranks = MappingProxyType({})


@dataclass(slots=True)
class SlotSearch:
    """Search for the slots of one gang, on a statement."""

    session: Session
    statement: Statement
    ask: Ask
    spares: list[NodeSpares] | None = field(default=None, init=False)
    """The gang's new spare slots; None if they are unchanged."""
    borrows: list[BorrowedSpares] | None = field(default=None, init=False)
    """Spare slots of other gangs that the gang borrows; None if they are unchanged."""
    grown: Counter[str] = field(default_factory=Counter, init=False)
    """Maps a pod set to the number of slots above the minimum that this cycle has added."""
    _lacks: Shortage | None = field(default=None, init=False)
    """The first shortage found while trying to place all slots."""

    @property
    def lacking(self) -> bool:
        """True if the gang is below its minimum, even with the statement's slots."""
        return self.statement.slots < self.ask.least

    @property
    def left(self) -> int:
        """Number of the gang's ranks that still need a node."""
        return sum(map(len, self.ask.open.values())) - self.statement.slots

    def decide(self) -> None:
        """Commit the statement, and decide Place with the statement's slots."""
        gang, slots = self.ask.gang, self.statement.slots
        runs = runs_of_operations(self.session, gang, self.statement.commit())
        self.session.decide(Place(gang, runs, gang.next_epoch(), slots, spares=self.spares, borrows=self.borrows))

    # -- the minimum, all members or none ---------------------------------------------------------------------------

    def minimum(self, more: Ranks = NO_RANKS) -> Shortage | None:
        """Place the gang's minimum; return None on success, else the shortage of the first pod set that does not fit.

        `more` maps a pod set to additional ranks that are placed together with the minimum, such as the ranks of spare
        slots. After a failure, the caller must discard the slots on the statement.
        """
        start = self.statement.checkpoint()
        lacks = self._first_members(more)
        if lacks is None or more or not self.ask.any_members:
            return lacks
        self.statement.rollback(start)
        return None if self.any_members() else lacks

    def any_members(self) -> bool:
        """Place any members that fit, in order or smallest first; return False if too few fit for the minimum."""
        start = self.statement.checkpoint()
        for smallest_first in (False, True):
            if self._any_members(smallest_first=smallest_first):
                return True
            self.statement.rollback(start)
        return False

    def _any_members(self, *, smallest_first: bool) -> bool:
        ask, before = self.ask, self.statement.slots
        self.more(ask.missing, smallest_first=smallest_first)
        if self.statement.slots - before < sum(ask.missing.values()):
            return False
        pod_sets = self.session.ordered_pod_sets(ask.gang)
        if smallest_first:
            share = shares_of(self.session)
            pod_sets.sort(key=lambda pod_set: share(pod_set.cls))
        for pod_set in pod_sets:
            left = ask.least - (self.statement.slots - before)
            wanted = {each.name: left if each is pod_set else 0 for each in ask.gang.pod_sets}
            self.more(wanted, smallest_first=smallest_first)
        return self.statement.slots - before >= ask.least

    def _first_members(self, more: Ranks) -> Shortage | None:
        """Place the first ranks that make up the minimum, and the ranks in `more`."""
        gang, slots, self._lacks = self.ask.gang, self.ask.chosen(self.session.hooks), None
        for name, ranks in more.items():
            slots[name] = [*slots.get(name, ()), *ranks]
        orders = orders_of(self.session, gang)

        def fill_slots(wanted: Ranks, nodes: NodeSet) -> bool:
            return self._fill_sets(orders, wanted, nodes)

        part = self.ask.part(slots, there(self.session, self.statement, self.ask))
        if PartSearch(self.session, self.statement, gang, fill_slots).place(part):
            return None
        if lacks := self._in_domains(orders, slots) or self._lacks:
            return lacks
        pod_set = next((each for each in gang.pod_sets if slots.get(each.name)), gang.pod_sets[0])
        return shortage(self.session, gang, pod_set, len(slots.get(pod_set.name, ())), 0)  # a plugin excludes all nodes

    def _fill_sets(self, orders: Sequence[list[PodSetView]], slots: Ranks, nodes: NodeSet) -> bool:
        """Place all these slots or none; remember the shortage of the first failure as the reason."""
        first: Shortage | None = None
        start = self.statement.checkpoint()
        for order in orders:
            lacks = self._fill_in_order(order, slots, nodes, reported=bool(self._lacks or first))
            if lacks is None:
                return True
            first = first or lacks
            self.statement.rollback(start)
        self._lacks = self._lacks or first
        return False

    def _fill_in_order(
        self, order: list[PodSetView], slots: Ranks, nodes: NodeSet, *, reported: bool
    ) -> Shortage | None:
        """Place the given pod sets one after another, until one does not fit.

        Return the shortage of the pod set that does not fit, or a placeholder if a shortage has already been
        `reported`.
        """
        session, gang = self.session, self.ask.gang
        for pod_set in order:
            ranks = slots.get(pod_set.name, ())
            before = self.statement.checkpoint()
            placed = fill(session, self.statement, gang, pod_set, ranks, nodes)
            if placed < len(ranks):
                cls = pod_set.class_of(ranks[placed])
                full = closed_nodes(session, gang, cls) if cls and placed and not reported else None
                self.statement.rollback(before)  # reasons are computed with the other pod sets in place
                if reported:
                    return UNTOLD
                left = [each for each in order if slots.get(each.name)]
                return together(session, gang, left, slots, pod_set, placed, cls=cls, full=full)
            nodes = nodes.less(self.statement.operations_since(before))
        return None

    def _in_domains(self, orders: Sequence[list[PodSetView]], slots: Ranks) -> Shortage | None:
        """Return a gang's shortage on all nodes together or, if the gang requires a domain, in the closest domain."""
        closest = self.session.hooks.closest_domain.call(self.ask.gang, slots)
        if closest is None:
            return None
        start, self._lacks = self.statement.checkpoint(), None
        self._fill_sets(orders, slots, EVERYWHERE)
        self.statement.rollback(start)
        return self._lacks or near(self.session, self.ask.gang, slots, closest.report)

    # -- more members, as many as fit ------------------------------------------------------------------------------

    def more(self, wanted: Mapping[str, int], *, smallest_first: bool = False) -> None:
        """Place as many open ranks as fit, up to a number per pod set; the ranks of one unit together or not at all."""
        session, ask, units = self.session, self.ask, self.ask.units
        share = shares_of(session) if smallest_first else None
        filled = {(each.pod_set, rank) for each in self.statement.operations for rank in each.ranks}
        for pod_set in session.ordered_pod_sets(ask.gang):
            ranks = [rank for rank in ask.open[pod_set.name] if (pod_set.name, rank) not in filled]
            if pod_set.name not in units.united:
                runs = self._runs(pod_set, ask.in_task_order(session.hooks, pod_set, ranks))
                if share is not None:
                    runs = sorted(runs, key=lambda run: share(run[0]))
                self._singly(pod_set, runs, wanted[pod_set.name])
                continue
            ranks = ask.first(session.hooks, pod_set, ranks, wanted[pod_set.name])
            allowed = self._queue_room(pod_set, ranks)
            for unit in units.complete(pod_set, list(ask.by_unit(session.hooks, pod_set, ranks))):
                allowed -= len(unit)
                if allowed < 0:
                    break
                self._unit(pod_set, unit)

    def _runs(self, pod_set: PodSetView, ranks: Sequence[int]) -> Sequence[tuple[PodClass | None, Sequence[int]]]:
        """Return runs of ranks; each run can be placed or skipped independently of the other runs."""
        if pod_set.mixed and not self.ask.gang.framework:
            return alike_runs(pod_set, ranks)
        return [(pod_set.cls, ranks)]

    def _singly(self, pod_set: PodSetView, runs: Sequence[tuple[PodClass | None, Sequence[int]]], most: int) -> None:
        """Place up to `most` ranks, run by run; skip runs of members that do not fit."""
        full: set[PodClass] = set()
        for cls, alike in runs:
            if most <= 0:
                break
            if cls is None or cls in full:
                continue
            wanted = alike[:most]
            before = self.statement.slots
            self.beside(pod_set, wanted[: self._queue_room(pod_set, wanted)])
            placed = self.statement.slots - before
            most -= placed
            if placed < len(wanted):
                full.add(cls)

    def beside(self, pod_set: PodSetView, ranks: Sequence[int]) -> None:
        """Place as many of these slots as fit, close to the gang's members that already have nodes."""

        def fill_part(part: SlotGroup, nodes: NodeSet) -> int:
            return fill(self.session, self.statement, self.ask.gang, pod_set, part.slots[pod_set.name], nodes)

        while ranks:
            before = self.statement.checkpoint()
            part = self.ask.part({pod_set.name: ranks}, there(self.session, self.statement, self.ask), least=1)
            if not join(self.session, self.ask.gang, part, EVERYWHERE, fill_part):
                return
            placed = {rank for operation in self.statement.operations_since(before) for rank in operation.ranks}
            ranks = [rank for rank in ranks if rank not in placed]

    def _unit(self, pod_set: PodSetView, unit: Sequence[int]) -> None:
        part = self.ask.part({pod_set.name: unit}, there(self.session, self.statement, self.ask))
        _all_placed(self.session, self.statement, self.ask.gang, part, {pod_set.name: pod_set})

    def _queue_room(self, pod_set: PodSetView, ranks: Sequence[int]) -> int:
        """Return how many of these ranks, in order, fit into the limits of the gang's queue and its parents."""
        if not ranks or pod_set.cls is None:
            return len(ranks)

        def refused(count: int) -> bool:
            members = {pod_set.name: pod_set.classes_of(ranks[:count])}
            return self.session.queue_refusal(self.ask, self.session.amounts(self.ask, members)) is not None

        most = len(ranks)
        return most if not refused(most) else bisect_left(range(1, most), 1, key=refused)


def moved(session: Session, statement: Statement, gang: GangView, pods: Sequence[PodRecord]) -> bool:
    """Give new slots to all these evicted or finished pods; return False if one of the pods does not fit.

    The new slots are near the members that stay, and have the requests of the pods instead of the template's requests.
    """
    alike: dict[str, PodSetView] = {}
    for pod in pods:
        if pod.slot is not None:
            name = pod.slot.pod_set
            alike.setdefault(name, PodSetView(name, pod.cls, 0, 0, mixed=True)).waiting[pod.slot.rank] = pod
    slots = {name: sorted(pod_set.waiting) for name, pod_set in alike.items()}
    ask = session.ask(gang)
    staying = there(session, statement, ask)
    for name, found in (staying or {}).items():
        for rank in slots.get(name, ()):
            found.pop(rank, None)
    return _all_placed(session, statement, gang, ask.part(slots, staying), alike)


def _all_placed(
    session: Session, statement: Statement, gang: GangView, part: SlotGroup, pod_sets: Mapping[str, PodSetView]
) -> bool:
    """Place all slots of a part with these pod sets; if they do not fit, place nothing and return False."""

    def fill_slots(wanted: Ranks, nodes: NodeSet) -> bool:
        return all(
            fill(session, statement, gang, pod_sets[name], ranks, nodes) == len(ranks) for name, ranks in wanted.items()
        )

    return PartSearch(session, statement, gang, fill_slots).place(part)


def place_whole(session: Session, gang: GangView) -> bool:
    """Decide Place for a gang, or return False if its minimum does not fit without other gangs' reserved capacity."""
    statement = Statement(session)
    search = SlotSearch(session, statement, session.ask(gang))
    with undone(statement), reservations_kept(session, gang):
        fits = search.ask.least > 0 and search.minimum() is None
    if fits:
        search.decide()
    else:
        statement.discard()
    return fits


@contextmanager
def reservations_kept(session: Session, gang: GangView) -> Iterator[None]:
    """Within a `with` block, exclude the capacity that is reserved for other gangs."""
    before, session.reserved = session.reserved, session.reserved_from(gang)
    try:
        yield
    finally:
        session.reserved = before
