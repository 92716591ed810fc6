"""Search for moves that let a gang fit: few evictable units (pieces) that get other slots in the same scenario.

Candidates are tested from the cheapest on, each with all predicates on a statement:

1. Single pieces that free enough capacity.
2. Pieces of one node that free enough for a pod only together, and combinations of such lots on several nodes.
3. Pieces that free enough capacity, and a further piece whose node they can move to.
4. Prefixes of the whole order; each member that can stay does so.

The freed capacity is counted exactly, GPU by GPU, as a piece may move between two GPUs of one node.

A trial first evicts all of its pieces; then those that can stay are put back, and only the others have to move. A node
that now refuses new pods does not matter to a piece that stays there, but rules between pods do.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, combinations, islice

import numpy as np

from extender.planner.framework.session import Session
from extender.planner.framework.statement import Statement
from extender.planner.state.amounts import Amounts
from extender.planner.victims.pieces import EvictableUnit
from extender.planner.victims.solver import Search, scenario_of, trial

TRIALS = 32
"""Maximum number of candidates before candidates with a further piece (3)."""
CHAINS = 16
"""Maximum number of candidates with a further piece before prefixes of the whole order (4)."""
CONSIDERED = 128
"""Maximum number of units whose freed capacity is counted, and of combinations of units on one node."""
TOGETHER = 3
"""Maximum number of units of one node in a combination."""
Unit = tuple[EvictableUnit, ...]
"""Pieces that move together: a single one above its gang's minimum, or all pieces of a gang."""


@dataclass(frozen=True, slots=True)
class Lot:
    """Units that are moved together, and the number of lacking pods that fit as a result."""

    units: tuple[Unit, ...]
    gain: int

    @property
    def pieces(self) -> list[EvictableUnit]:
        """The pieces of all units, without duplicates."""
        return list(dict.fromkeys(chain.from_iterable(self.units)))

    @property
    def pods(self) -> int:
        """The number of pods that may have to move."""
        return sum(len(piece.pods) for piece in self.pieces)

    @property
    def nodes(self) -> set[int]:
        """The columns of the nodes that the pieces leave."""
        return set(chain.from_iterable(piece.columns.tolist() for piece in self.pieces))

    def size(self, whole: Amounts) -> float:
        """Return the sum of its pods' amounts as shares of the largest node (`whole`, int64 of shape (resources,))."""
        return sum(float((piece.amounts / whole).max(initial=0.0)) for piece in self.pieces)


def solve_moves(search: Search, pieces: list[EvictableUnit]) -> list[EvictableUnit] | None:
    """Return the pieces that have to move; empty if none, or None if no moves help."""
    tried: set[frozenset[int]] = set()
    lacks = _lacks(search)
    lots, total = _lots(search, pieces, lacks), sum(lacks)
    candidates = chain(
        islice(_candidates(search, pieces, lots, total), TRIALS),
        islice(_chains(search, lots, total), CHAINS),
        _beginnings(pieces),
    )
    for chosen in candidates:
        key = frozenset(map(id, chosen))
        if key in tried:
            continue
        tried.add(key)
        gone = trial(search, chosen)
        if gone is None:
            continue
        if not gone or search.agreed(scenario_of(search, gone)):
            return gone
        search.statement.discard()
    return None


def units_of(pieces: Sequence[EvictableUnit]) -> list[Unit]:
    """Return the units: a gang's rest moves only with its pods above the minimum."""
    extras: dict[str, list[EvictableUnit]] = {}
    for piece in pieces:
        if not piece.rest:
            extras.setdefault(piece.gang.key, []).append(piece)
    return [(*extras.get(piece.gang.key, ()), piece) if piece.rest else (piece,) for piece in pieces]


def _beginnings(pieces: list[EvictableUnit]) -> Iterator[list[EvictableUnit]]:
    number = 1
    while number < len(pieces):
        yield pieces[:number]
        number *= 2
    yield pieces


def _lots(search: Search, pieces: list[EvictableUnit], lacks: list[int]) -> list[Lot]:
    """Return single units and useful combinations on one node, the lots with the fewest pods first."""
    units = sorted(units_of(pieces)[:CONSIDERED], key=lambda unit: sum(len(piece.pods) for piece in unit))
    singles = [Lot((unit,), _gain(search, lacks, [unit])) for unit in units]
    return sorted([*singles, *_together(search, lacks, singles)], key=lambda lot: lot.pods)


def _candidates(
    search: Search, pieces: list[EvictableUnit], lots: list[Lot], total: int
) -> Iterator[list[EvictableUnit]]:
    """Yield sets of pieces that free enough capacity, sets with the fewest pods first."""
    if not total:  # probably rules between pods are in the way, so any piece may be
        yield []
        yield from map(list, units_of(pieces))
        return
    yield from (lot.pieces for lot in lots if lot.gain >= total)
    by_price = [lot for lot in lots if lot.gain > 0]
    by_price.sort(
        key=lambda lot: (lot.pods / lot.gain, lot.size(whole_node(search.session)))
    )  # small pods fit elsewhere most easily
    for start in range(len(by_price)):
        yield _enough(by_price[start:], total)


def _chains(search: Search, lots: list[Lot], total: int) -> Iterator[list[EvictableUnit]]:
    """Yield pieces that free enough capacity, plus a unit whose move lets the largest of their pods fit."""
    free, most = search.session.usable(), whole_node(search.session)
    singles = sorted((lot for lot in lots if len(lot.units) == 1), key=lambda lot: (lot.pods, lot.size(most)))
    for lot in [each for each in lots if each.gain >= total > 0]:
        rows = np.concatenate([piece.rows for piece in lot.pieces])
        row = rows[int((rows / most).max(axis=1).argmax())]
        for other in singles:
            if lot.nodes.isdisjoint(other.nodes) and any(
                bool((free[:, column] + piece.rows[piece.columns == column].sum(axis=0) >= row).all())
                for piece in other.pieces
                for column in set(piece.columns.tolist())
            ):
                yield [*lot.pieces, *other.pieces]


def whole_node(session: Session) -> Amounts:
    """Return the largest amount per resource of any node, at least 1, int64 of shape (resources,)."""
    most: Amounts = np.maximum(session.snapshot.allocatable.max(axis=1, initial=0), 1)
    return most


def _enough(lots: Iterable[Lot], total: int) -> list[EvictableUnit]:
    """Return the pieces of the first lots that together free capacity for `total` pods, on distinct nodes."""
    chosen: dict[EvictableUnit, None] = {}
    nodes: set[int] = set()
    for lot in lots:
        if total <= 0:
            break
        if nodes.isdisjoint(lot.nodes):
            chosen.update(dict.fromkeys(lot.pieces))
            nodes |= lot.nodes
            total -= lot.gain
    return list(chosen)


def _together(search: Search, lacks: Sequence[int], singles: Sequence[Lot]) -> list[Lot]:
    """Return combinations of units on one node that free more capacity than the best of their units alone."""
    on_node: dict[int, list[Lot]] = {}
    for lot in singles:
        for column in lot.nodes:
            on_node.setdefault(column, []).append(lot)
    groups = (
        group
        for size in range(2, TOGETHER + 1)
        for lots in on_node.values()
        for group in combinations(lots[: 2 * TOGETHER], size)
    )
    found = []
    for group in islice(groups, CONSIDERED):
        units = tuple(dict.fromkeys(chain.from_iterable(lot.units for lot in group)))
        gain = _gain(search, lacks, units)
        if gain > max(lot.gain for lot in group):
            found.append(Lot(units, gain))
    return found


def _lacks(search: Search) -> list[int]:
    """Return, for each need, the number of pods that do not fit now."""
    everywhere = np.arange(search.session.snapshot.free.shape[1])
    return [max(0, need.pods - held) for need, held in zip(search.needs, _held(search, everywhere), strict=True)]


def _gain(search: Search, lacks: Sequence[int], units: Iterable[Unit]) -> int:
    """Return the number of lacking pods that fit on the nodes of these units once the units are gone."""
    pieces = list(dict.fromkeys(chain.from_iterable(units)))
    columns = np.unique(np.concatenate([piece.columns for piece in pieces]))
    before = _held(search, columns)
    for piece in pieces:
        search.statement.evict(piece.gang, piece.pods)
    after = _held(search, columns)
    search.statement.discard()
    return sum(min(lack, max(0, then - now)) for lack, now, then in zip(lacks, before, after, strict=True))


def _held(search: Search, columns: Amounts) -> list[int]:
    """Return, for each need, the number of pods that fit on these nodes."""
    held = []
    for need in search.needs:
        room = np.where(need.usable[columns], search.session.room(need.cls, columns=columns), 0)
        held.append(int(np.minimum(room, need.pods).sum()))
    return held


def keep_untouched(session: Session, statement: Statement, units: Sequence[Unit]) -> list[Unit]:
    """Put back the units on whose nodes the statement has placed nothing; return the others."""
    taken = {operation.column for operation in statement.operations}
    kept: list[Unit] = []
    others: list[Unit] = []
    for unit in units:
        free = all(taken.isdisjoint(piece.columns.tolist()) and _suffered(session, piece) for piece in unit)
        (kept if free else others).append(unit)
    statement.keep(pod for piece in chain.from_iterable(kept) for pod in piece.pods)
    return others


def stays(session: Session, statement: Statement, unit: Unit) -> bool:
    """Put a unit back on its nodes if it fits together with the statement's placements; return True if it does."""
    if not all(_suffered(session, piece) for piece in unit):
        return False
    statement.keep(pod for piece in unit for pod in piece.pods)
    taken = {operation.column for operation in statement.operations}
    columns = np.array([column for piece in unit for column in piece.columns.tolist() if column in taken], np.int64)
    snapshot = session.snapshot
    devices, free = snapshot.devices.at(columns), snapshot.free[:, columns]
    if not (session.usable()[:, columns] < 0).any() and not devices.overfull(free, snapshot.axis).any():
        return True
    for piece in unit:
        statement.evict(piece.gang, piece.pods)
    return False


def _suffered(session: Session, piece: EvictableUnit) -> bool:
    """Return True if no rule between pods forbids the piece on its own nodes."""
    index = session.snapshot.index
    for cls in {pod.cls for pod in piece.pods}:
        codes = session.hooks.neighbour_predicate.call(cls)
        columns = [index[pod.node] for pod in piece.pods if pod.cls is cls and pod.node in index]
        if codes is not None and bool((codes[columns] != 0).any()):
            return False
    return True
