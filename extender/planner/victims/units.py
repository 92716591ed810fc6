"""Evictable units of gangs: pods above the minimum, one by one or by sub-group, then all remaining pods together.

PodDisruptionBudgets are applied as in the Eviction API, so pods with several budgets are never evicted.

Spare slots that a running gang gives up for another gang are evictable units without pods, because giving up spare
slots evicts no pod. Lent spare slots are not evictable units, because a borrower is evicted only for the lender. A gang
that is evicted as a whole also loses its spare slots, so the spare slots come before the gang's last unit.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

import numpy as np

from extender.planner.framework import decisions
from extender.planner.framework.session import Session
from extender.planner.framework.snapshot import Snapshot
from extender.planner.state.amounts import Amounts, Mask
from extender.planner.state.gangs import GangView
from extender.planner.state.guards import own_allowance
from extender.planner.state.podclass import PodClass
from extender.planner.state.pods import PodRecord
from extender.planner.state.spareentries import SpareRunOfClass, spare_runs_of
from extender.planner.topology.requests import Units
from muster.api.muster.placement import BorrowedSpares, NodeSpares


class DisruptionBudgets:
    """The evictions that PodDisruptionBudgets still allow in one session."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._guards = snapshot.guards
        self._left = Counter({each.metadata.key: each.allowed for each in snapshot.disruption_budgets})

    def __bool__(self) -> bool:
        return bool(self._guards)

    def counted(self, pod: PodRecord) -> bool:
        """Return True if a PodDisruptionBudget applies to this pod."""
        return bool(self._of(pod))

    def count_evictions(self, pods: Iterable[PodRecord]) -> bool:
        """Count these evictions and return True if budgets allow all; otherwise, count nothing and return False."""
        wanted: Counter[str] = Counter()
        for pod in pods:
            keys = self._of(pod)
            if len(keys) > 1:
                return False
            wanted.update(keys)
        if any(count > self._left[key] for key, count in wanted.items()):
            return False
        self._left.subtract(wanted)
        return True

    def count(self, pods: Iterable[PodRecord]) -> None:
        """Count evictions that have been decided, even if a budget does not allow these evictions."""
        for pod in pods:
            self._left.subtract(self._of(pod))

    def _of(self, pod: PodRecord) -> list[str]:
        return [budget.metadata.key for budget in self._guards.of(pod.namespace, pod.labels)]


@dataclass(frozen=True, slots=True, eq=False)
class EvictableUnit:
    """Pods of one gang that are evicted together or not at all, or spare slots that the gang gives up."""

    gang: GangView
    pods: tuple[PodRecord, ...]
    rest: bool
    """True for the last unit of a gang, which is evicted only together with or after the gang's pods above the
    minimum."""
    columns: Amounts
    """Columns of the pods' nodes, int64; pods on unknown nodes are left out."""
    rows: Amounts
    """Resources that each pod frees, int64 of shape (columns, resources)."""
    spares: SpareRunOfClass | None = None
    """Spare slots on one node that the gang gives up; None if the evictable unit consists of pods."""

    @property
    def amounts(self) -> Amounts:
        """Sum of the pods' resources, int64 of shape (resources,)."""
        total: Amounts = self.rows.sum(axis=0)
        return total

    def charged(self, snapshot: Snapshot) -> Amounts:
        """Return the resources that the queue is charged for the pods, int64 of shape (resources,)."""
        total: Amounts = np.minimum(self.rows, snapshot.chargeable[:, self.columns].T).sum(axis=0)
        return total


def units_of(
    snapshot: Snapshot, gang: GangView, within: Units, useful: frozenset[str] = frozenset(), *, anyway: bool = False
) -> list[EvictableUnit]:
    """Return a gang's evictable units, the unit of all remaining pods last; empty during an active placement.

    If the gang can do without any of its members, members on the nodes in `useful` come first. Each independent pod is
    a separate unit. With `anyway`, the gang's annotations and its own budget are ignored.
    """
    if gang.active or not (gang.preemptable or anyway):
        return []
    alive = [pod for pod in gang.pods if pod.alive and pod.slot is not None]
    if not alive or any(pod.system for pod in alive):
        return []
    extras = _extras(gang, within, alive, useful)
    gone = {pod.uid for unit in extras for pod in unit}
    units = [_unit(snapshot, gang, unit, rest=False) for unit in extras]
    if rest := [pod for pod in alive if pod.uid not in gone]:
        units.append(_unit(snapshot, gang, rest, rest=True))
    return units if anyway else _within_budget(gang, len(alive), units)


def _extras(gang: GangView, within: Units, alive: list[PodRecord], useful: frozenset[str]) -> list[list[PodRecord]]:
    """Return the units above the gang's minimum: units on useful nodes, then last ranks of the last pod set."""
    if gang.indivisible or not (gang.independent or gang.has_extras):
        return []
    counts = gang.taken_by_set
    by_slot = {(pod.slot.pod_set, pod.slot.rank): pod for pod in alive if pod.slot is not None}
    units: list[tuple[str, list[PodRecord]]] = []
    for pod_set in reversed(gang.pod_sets):
        for ranks in reversed(within.units_of_ranks(pod_set, sorted(pod_set.taken))):
            pods = [by_slot[pod_set.name, rank] for rank in ranks if (pod_set.name, rank) in by_slot]
            units.append((pod_set.name, pods))
    if useful:
        units.sort(key=lambda unit: useful.isdisjoint(pod.node for pod in unit[1]))
    found, needed = list[list[PodRecord]](), set[str]()
    for name, pods in units:
        if name in needed:
            continue
        counts[name] -= len(pods)
        if pods and (gang.independent or gang.viable(counts)):
            found.append(pods)
        else:
            counts[name] += len(pods)
            needed.add(name)  # as are all other units of the pod set
    return found


def _within_budget(gang: GangView, alive: int, units: list[EvictableUnit]) -> list[EvictableUnit]:
    """Return as many of the first units as the gang's own budget (annotations jdb-*) allows to evict."""
    most = own_allowance(gang, alive)
    if most is None:
        return units
    pods = accumulate(len(unit.pods) for unit in units)
    return [unit for unit, total in zip(units, pods, strict=True) if total <= most]


def _unit(snapshot: Snapshot, gang: GangView, pods: list[PodRecord], *, rest: bool) -> EvictableUnit:
    index = snapshot.index
    known = [(column, snapshot.row_on(pod.cls, column)) for pod in pods if (column := index.get(pod.node)) is not None]
    columns = np.fromiter((column for column, _ in known), dtype=np.int64, count=len(known))
    rows = np.array([row for _, row in known], dtype=np.int64).reshape(len(known), snapshot.free.shape[0])
    return EvictableUnit(gang, tuple(pods), rest, columns, rows)


def _is_on(snapshot: Snapshot, pod: PodRecord, nodes: Mask) -> bool:
    column = snapshot.index.get(pod.node)
    return column is not None and bool(nodes[column])


@dataclass(slots=True)
class Catalogue:
    """Evictable units of gangs, cached from cycle to cycle until the gang's view or the resource axis is replaced."""

    _known: dict[str, tuple[GangView, object, object, list[EvictableUnit]]] = field(default_factory=dict)

    def units_of_gang(
        self, session: Session, gang: GangView, useful: Mask | None = None, *, anyway: bool = False
    ) -> list[EvictableUnit]:
        """Return a gang's units; if the gang can do without any members, units on `useful` nodes come first."""
        if anyway:
            return units_of(session.snapshot, gang, session.ask(gang).units, anyway=True)
        units = self._usual(session, gang)
        tied = gang.framework or session.ask(gang).units.united
        if useful is None or tied or not units or units[-1] is units[0]:
            return units
        if not (units[-1].rest and useful[units[-1].columns].any()):
            return units
        snapshot = session.snapshot
        names = frozenset(pod.node for unit in units for pod in unit.pods if _is_on(snapshot, pod, useful))
        return units_of(snapshot, gang, session.ask(gang).units, names)

    def _usual(self, session: Session, gang: GangView) -> list[EvictableUnit]:
        axis, index = session.snapshot.axis, session.snapshot.index
        known = self._known.get(gang.key)
        if known is None or known[0] is not gang or known[1] is not axis or known[2] is not index:
            units = units_of(session.snapshot, gang, session.ask(gang).units)
            known = self._known[gang.key] = gang, axis, index, units
        return known[3]

    def forget_others(self, gangs: Sequence[GangView]) -> None:
        """Drop the units of gangs that are gone."""
        if len(self._known) > 2 * len(gangs):
            keys = {gang.key for gang in gangs}
            self._known = {key: known for key, known in self._known.items() if key in keys}


def permitted(units: list[EvictableUnit], budgets: DisruptionBudgets) -> list[EvictableUnit]:
    """Return the units that disruption budgets allow to evict one after another, in order.

    The last unit of a gang is permitted only if all other units of the gang are permitted.
    """
    if not budgets:
        return units
    kept, held = [], set()
    for unit in units:
        if not (unit.rest and unit.gang.key in held) and budgets.count_evictions(unit.pods):
            kept.append(unit)
        else:
            held.add(unit.gang.key)
    return kept


def spare_units(session: Session, gang: GangView) -> list[EvictableUnit]:
    """Return one unit for each node with spare slots that a gang can give up; empty during an active placement."""
    if gang.active or not gang.preemptable:
        return []
    found = []
    for run, cls, column in unused_spares(session, gang):
        rows = np.repeat(session.snapshot.row_of(cls)[None, :], run.count, axis=0)
        columns = np.full(run.count, column)
        found.append(EvictableUnit(gang, (), rest=False, columns=columns, rows=rows, spares=(run, cls)))
    return found


def unused_spares(session: Session, gang: GangView) -> Iterator[tuple[NodeSpares, PodClass, int]]:
    """Yield the unused spare slots of a gang on each known node, with the pod class and the node's column."""
    for run, cls in spare_runs_of(gang):
        column = session.snapshot.index.get(run.node)
        count = run.count - session.away[gang.uid, run.pod_set, run.node]
        if column is not None and count > 0:
            yield NodeSpares(run.pod_set, run.node, count), cls, column


def decide_given(session: Session, units: Sequence[EvictableUnit]) -> None:
    """Add a KeepSpares decision, with the remaining spare slots, for each gang that gives up spare slots."""
    given: dict[str, tuple[GangView, list[NodeSpares]]] = {}
    for unit in units:
        if unit.spares is not None:
            run = unit.spares[0]
            given.setdefault(unit.gang.key, (unit.gang, []))[1].append(run)
            session.away[unit.gang.uid, run.pod_set, run.node] += run.count
    for gang, gone in given.values():
        before = next((each for each in session.decided(decisions.KeepSpares) if each.gang is gang), None)
        kept = before.spares if before else gang.spares
        session.withdraw(gang, decisions.KeepSpares)
        missing = (before.missing if before else 0) + sum(each.count for each in gone)
        session.decide(decisions.KeepSpares(gang, spares_left(kept, gone), missing))


def spares_left(kept: Iterable[NodeSpares], gone: Iterable[NodeSpares | BorrowedSpares]) -> list[NodeSpares]:
    """Return a gang's spare slots, except spare slots that it gives up or has lent."""
    less = {(each.pod_set, each.node): each.count for each in gone}
    left = (NodeSpares(each.pod_set, each.node, each.count - less.get((each.pod_set, each.node), 0)) for each in kept)
    return [each for each in left if each.count > 0]
