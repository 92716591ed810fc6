"""Pieces of gangs that can be evicted: pods above the minimum one by one (or by sub-group), and the whole rest.

PodDisruptionBudgets count as in the Eviction API: pods of several budgets are refused.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from extender.planner.framework.session import Session
from extender.planner.framework.snapshot import Snapshot
from extender.planner.state.amounts import Amounts
from extender.planner.state.gangs import GangView
from extender.planner.state.pods import PodRecord
from extender.planner.state.queries import requirements
from extender.planner.state.spareseats import Seat
from extender.planner.topology.requests import Units
from muster.api.kubernetes.quota import PodDisruptionBudget
from muster.api.limits import whole_number
from muster.api.names import JDB_MAX_UNAVAILABLE, JDB_MIN_AVAILABLE
from muster.resources.labels import Requirements


class DisruptionBudgets:
    """The evictions that the PodDisruptionBudgets of one session still allow."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._by_namespace: dict[str, list[tuple[Requirements, PodDisruptionBudget]]] = {}
        self._left: Counter[str] = Counter()
        for budget in snapshot.disruption_budgets:
            if budget.spec.selector is not None:
                wanted = requirements(budget.spec.selector)
                self._by_namespace.setdefault(budget.metadata.namespace, []).append((wanted, budget))
                self._left[budget.metadata.key] = budget.allowed

    def __bool__(self) -> bool:
        return bool(self._by_namespace)

    def counted(self, pod: PodRecord) -> bool:
        """Return True if a budget counts this pod."""
        return bool(self._of(pod))

    def take(self, pods: Iterable[PodRecord]) -> bool:
        """Count these evictions; False, and nothing is counted, if one of them is not allowed."""
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
        """Count evictions that have been decided, allowed or not."""
        for pod in pods:
            self._left.subtract(self._of(pod))

    def _of(self, pod: PodRecord) -> list[str]:
        of_namespace = self._by_namespace.get(pod.namespace, ())
        return [
            budget.metadata.key
            for wanted, budget in of_namespace
            if all(requirement.holds(pod.labels) for requirement in wanted)
        ]


@dataclass(frozen=True, slots=True, eq=False)
class Piece:
    """Pods of one gang that are evicted together or not at all, or seats that it gives up."""

    gang: GangView
    pods: tuple[PodRecord, ...]
    rest: bool
    """It is the gang without its pods above the minimum, which must be evicted as well."""
    columns: Amounts
    """Node of each pod that is on a known one, int64."""
    rows: Amounts
    """Amounts of each of these pods, int64 of the same length by resources."""
    seats: Seat | None = None
    """In place of pods: spares on one node that the gang gives up (`extender.planner.victims.seats`)."""

    @property
    def amounts(self) -> Amounts:
        """Sum of the amounts, int64 of shape (resources,)."""
        total: Amounts = self.rows.sum(axis=0)
        return total


def pieces_of(snapshot: Snapshot, gang: GangView, within: Units) -> list[Piece]:
    """Return the pieces of a gang, pods above the minimum first and the rest last; none during an active placement."""
    if gang.active or not gang.preemptable:
        return []
    alive = [pod for pod in gang.pods if pod.alive and pod.slot is not None]
    if not alive or any(pod.system for pod in alive):
        return []
    extras = _extras(gang, within, alive)
    gone = {pod.uid for unit in extras for pod in unit}
    rest = [pod for pod in alive if pod.uid not in gone]
    units = _within_budget(gang, len(alive), [*((unit, False) for unit in extras), *([(rest, True)] if rest else [])])
    return [_piece(snapshot, gang, unit, rest=rest) for unit, rest in units]


def _extras(gang: GangView, within: Units, alive: list[PodRecord]) -> list[list[PodRecord]]:
    """Return the units above the gang's minimum, the last ranks of the last pod set first."""
    counts = {pod_set.name: len(pod_set.taken) for pod_set in gang.pod_sets}
    if gang.indivisible or not gang.started or sum(counts.values()) <= gang.floor.min_member:
        return []
    by_slot = {(pod.slot.pod_set, pod.slot.rank): pod for pod in alive if pod.slot is not None}
    units: list[list[PodRecord]] = []
    for pod_set in reversed(gang.pod_sets):
        for ranks in reversed(within.of(pod_set, sorted(pod_set.taken))):
            pods = [by_slot[pod_set.name, rank] for rank in ranks if (pod_set.name, rank) in by_slot]
            counts[pod_set.name] -= len(pods)
            if not pods or not gang.viable(counts):
                counts[pod_set.name] += len(pods)
                break
            units.append(pods)
    return units


def _within_budget(
    gang: GangView, alive: int, units: list[tuple[list[PodRecord], bool]]
) -> list[tuple[list[PodRecord], bool]]:
    """Return as many of the units, from the first on, as the gang's own budget (annotations jdb-*) allows."""
    annotations = gang.group.metadata.annotations
    if JDB_MIN_AVAILABLE in annotations:
        most = alive - _number(annotations[JDB_MIN_AVAILABLE], gang, up=True)
    elif JDB_MAX_UNAVAILABLE in annotations:
        size = sum(pod_set.replicas for pod_set in gang.pod_sets)
        most = _number(annotations[JDB_MAX_UNAVAILABLE], gang, up=False) - max(0, size - gang.taken)
    else:
        return units
    kept = []
    for unit, rest in units:
        most -= len(unit)
        if most < 0:
            break
        kept.append((unit, rest))
    return kept


def _number(text: str, gang: GangView, *, up: bool) -> int:
    """Return a number of pods, or a percentage of the gang's; an unreadable one protects every pod."""
    size = sum(pod_set.replicas for pod_set in gang.pod_sets)
    number = whole_number(text.removesuffix("%"))
    if number is None:
        return size if up else 0
    if text.endswith("%"):
        return -(-size * number // 100) if up else size * number // 100
    return number


def _piece(snapshot: Snapshot, gang: GangView, pods: list[PodRecord], *, rest: bool) -> Piece:
    index = snapshot.index
    known = [(column, snapshot.row_on(pod.cls, column)) for pod in pods if (column := index.get(pod.node)) is not None]
    columns = np.fromiter((column for column, _ in known), dtype=np.int64, count=len(known))
    rows = np.array([row for _, row in known], dtype=np.int64).reshape(len(known), snapshot.free.shape[0])
    return Piece(gang, tuple(pods), rest, columns, rows)


@dataclass(slots=True)
class Catalogue:
    """Pieces of gangs, kept from cycle to cycle until the gang's view or the axes of the arrays are made anew."""

    _known: dict[str, tuple[GangView, object, object, list[Piece]]] = field(default_factory=dict)

    def of(self, session: Session, gang: GangView) -> list[Piece]:
        """Return the pieces of a gang."""
        axis, index = session.snapshot.axis, session.snapshot.index
        known = self._known.get(gang.key)
        if known is None or known[0] is not gang or known[1] is not axis or known[2] is not index:
            pieces = pieces_of(session.snapshot, gang, session.ask(gang).units)
            known = self._known[gang.key] = gang, axis, index, pieces
        return known[3]

    def forget_others(self, gangs: Iterable[GangView]) -> None:
        """Forget gangs that are gone."""
        keys = {gang.key for gang in gangs}
        if len(self._known) > 2 * len(keys):
            self._known = {key: known for key, known in self._known.items() if key in keys}


def permitted(pieces: list[Piece], budgets: DisruptionBudgets) -> list[Piece]:
    """Return the pieces, in order, that budgets allow one after the other; a gang's rest only with all its others."""
    if not budgets:
        return pieces
    kept, held = [], set()
    for piece in pieces:
        if not (piece.rest and piece.gang.key in held) and budgets.take(piece.pods):
            kept.append(piece)
        else:
            held.add(piece.gang.key)
    return kept
