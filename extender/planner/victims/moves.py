"""Search for moves that let a gang fit: a few evictable units of other gangs get new slots at the same time.

A candidate is a set of units to move. Candidates are tested on a statement with all predicates, from the cheapest to
the most expensive:

1. Single units that free enough capacity.
2. Units on one node that free enough capacity for a pod only together, and combinations of such units on several nodes.
3. Units that free enough capacity, plus another unit; the first units can move to the node of the other unit.
4. The first unit, the first two units, the first four units, and so on; units that can stay are not moved.

The freed capacity is counted exactly for each GPU, because a unit may move between two GPUs of one node.

A trial first evicts all units of the candidate. Evicted units that can stay are then put back, and only the remaining
units are moved. A unit may stay on a node that no longer accepts new pods, but rules between pods still apply.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, combinations, islice

import numpy as np

from extender.planner.framework.session import Session
from extender.planner.framework.statement import Statement
from extender.planner.state.amounts import Amounts
from extender.planner.victims.solver import Search, scenario_of, trial
from extender.planner.victims.units import EvictableUnit

TRIALS = 32
"""Maximum number of candidates of kinds 1 and 2 that the search for moves tests."""
CHAINS = 16
"""Maximum number of candidates of kind 3 that the search for moves tests."""
CONSIDERED = 128
"""Maximum number of single bundles whose freed capacity is counted, and maximum number of combinations of bundles."""
TOGETHER = 3
"""Maximum number of bundles of one node that are combined."""
Bundle = tuple[EvictableUnit, ...]
"""Units that move together: a single unit above its gang's minimum, or all units of a gang."""


@dataclass(frozen=True, slots=True)
class Lot:
    """Bundles that are moved together, and the number of missing pods that fit after the move."""

    bundles: tuple[Bundle, ...]
    gain: int

    @property
    def units(self) -> list[EvictableUnit]:
        """The units of all bundles in the lot, without duplicates."""
        return list(dict.fromkeys(chain.from_iterable(self.bundles)))

    @property
    def pods(self) -> int:
        """The number of pods that may have to move."""
        return sum(len(unit.pods) for unit in self.units)

    @property
    def nodes(self) -> set[int]:
        """The columns of the nodes on which the units are now."""
        return set(chain.from_iterable(unit.columns.tolist() for unit in self.units))

    def size(self, whole: Amounts) -> float:
        """Return the sum of the units' largest requests as fractions of `whole`, the largest quantities of any node."""
        return sum(float((unit.amounts / whole).max(initial=0.0)) for unit in self.units)


def solve_moves(search: Search, units: list[EvictableUnit]) -> list[EvictableUnit] | None:
    """Return the units that must move so that the gang fits; empty if no unit must move, None if moves do not help."""
    tried: set[frozenset[int]] = set()
    lacks = _lacks(search)
    lots, total = _lots(search, units, lacks), sum(lacks)
    candidates = chain(
        islice(_candidates(search, units, lots, total), TRIALS),
        islice(_chains(search, lots, total), CHAINS),
        _beginnings(units),
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


def bundles_of(units: Sequence[EvictableUnit]) -> list[Bundle]:
    """Return the units as bundles; the last unit of a gang is moved only together with its pods above the minimum."""
    extras: dict[str, list[EvictableUnit]] = {}
    for unit in units:
        if not unit.rest:
            extras.setdefault(unit.gang.key, []).append(unit)
    return [(*extras.get(unit.gang.key, ()), unit) if unit.rest else (unit,) for unit in units]


def _beginnings(units: list[EvictableUnit]) -> Iterator[list[EvictableUnit]]:
    number = 1
    while number < len(units):
        yield units[:number]
        number *= 2
    yield units


def _lots(search: Search, units: list[EvictableUnit], lacks: list[int]) -> list[Lot]:
    """Return single bundles and useful combinations of bundles on one node, the fewest pods first."""
    bundles = sorted(bundles_of(units)[:CONSIDERED], key=lambda bundle: sum(len(unit.pods) for unit in bundle))
    singles = [Lot((bundle,), _gain(search, lacks, [bundle])) for bundle in bundles]
    return sorted([*singles, *_together(search, lacks, singles)], key=lambda lot: lot.pods)


def _candidates(
    search: Search, units: list[EvictableUnit], lots: list[Lot], total: int
) -> Iterator[list[EvictableUnit]]:
    """Yield sets of units that free enough capacity, the sets with the fewest pods first."""
    if not total:  # probably rules between pods prevent the placement, so any unit may be the reason
        yield []
        yield from map(list, bundles_of(units))
        return
    yield from (lot.units for lot in lots if lot.gain >= total)
    by_price = [lot for lot in lots if lot.gain > 0]
    by_price.sort(
        key=lambda lot: (lot.pods / lot.gain, lot.size(whole_node(search.session)))
    )  # small pods fit on most other nodes
    for start in range(len(by_price)):
        yield _enough(by_price[start:], total)


def _chains(search: Search, lots: list[Lot], total: int) -> Iterator[list[EvictableUnit]]:
    """Yield units that free enough capacity, plus a bundle whose move makes space for these units' largest pod."""
    free, most = search.session.usable(), whole_node(search.session)
    singles = sorted((lot for lot in lots if len(lot.bundles) == 1), key=lambda lot: (lot.pods, lot.size(most)))
    for lot in [each for each in lots if each.gain >= total > 0]:
        rows = np.concatenate([unit.rows for unit in lot.units])
        row = rows[int((rows / most).max(axis=1).argmax())]
        for other in singles:
            if lot.nodes.isdisjoint(other.nodes) and any(
                bool((free[:, column] + unit.rows[unit.columns == column].sum(axis=0) >= row).all())
                for unit in other.units
                for column in set(unit.columns.tolist())
            ):
                yield [*lot.units, *other.units]


def whole_node(session: Session) -> Amounts:
    """Return the largest quantity of each resource on any node, but at least 1, int64 of shape (resources,)."""
    most: Amounts = np.maximum(session.snapshot.allocatable.max(axis=1, initial=0), 1)
    return most


def _enough(lots: Iterable[Lot], total: int) -> list[EvictableUnit]:
    """Return the units of the first lots on distinct nodes that together free capacity for `total` pods."""
    chosen: dict[EvictableUnit, None] = {}
    nodes: set[int] = set()
    for lot in lots:
        if total <= 0:
            break
        if nodes.isdisjoint(lot.nodes):
            chosen.update(dict.fromkeys(lot.units))
            nodes |= lot.nodes
            total -= lot.gain
    return list(chosen)


def _together(search: Search, lacks: Sequence[int], singles: Sequence[Lot]) -> list[Lot]:
    """Return combinations of bundles on one node that free more capacity than the best single bundle."""
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
        bundles = tuple(dict.fromkeys(chain.from_iterable(lot.bundles for lot in group)))
        gain = _gain(search, lacks, bundles)
        if gain > max(lot.gain for lot in group):
            found.append(Lot(bundles, gain))
    return found


def _lacks(search: Search) -> list[int]:
    """Return, for each pod class of the gang, the number of pods that do not fit now."""
    everywhere = np.arange(search.session.snapshot.free.shape[1])
    return [max(0, need.pods - held) for need, held in zip(search.needs, _held(search, everywhere), strict=True)]


def _gain(search: Search, lacks: Sequence[int], bundles: Iterable[Bundle]) -> int:
    units = list(dict.fromkeys(chain.from_iterable(bundles)))
    columns = np.unique(np.concatenate([unit.columns for unit in units]))
    before = _held(search, columns)
    for unit in units:
        search.statement.evict(unit.gang, unit.pods)
    after = _held(search, columns)
    search.statement.discard()
    return sum(min(lack, max(0, then - now)) for lack, now, then in zip(lacks, before, after, strict=True))


def _held(search: Search, columns: Amounts) -> list[int]:
    """Return, for each pod class of the gang, the number of pods that fit on these nodes."""
    held = []
    for need in search.needs:
        room = np.where(need.usable[columns], search.session.room(need.cls, columns=columns), 0)
        held.append(int(np.minimum(room, need.pods).sum()))
    return held


def keep_untouched(session: Session, statement: Statement, bundles: Sequence[Bundle]) -> list[Bundle]:
    """Put back the bundles on nodes where the statement has placed nothing; return the other bundles."""
    taken = {operation.column for operation in statement.operations}
    kept: list[Bundle] = []
    others: list[Bundle] = []
    for bundle in bundles:
        free = all(taken.isdisjoint(unit.columns.tolist()) and _suffered(session, unit) for unit in bundle)
        (kept if free else others).append(bundle)
    statement.keep(pod for unit in chain.from_iterable(kept) for pod in unit.pods)
    return others


def stays(session: Session, statement: Statement, bundle: Bundle) -> bool:
    """Put a bundle back on its nodes if it fits alongside the statement's placements; return True on success."""
    if not all(_suffered(session, unit) for unit in bundle):
        return False
    statement.keep(pod for unit in bundle for pod in unit.pods)
    taken = {operation.column for operation in statement.operations}
    columns = np.array([column for unit in bundle for column in unit.columns.tolist() if column in taken], np.int64)
    snapshot = session.snapshot
    devices, free = snapshot.devices.at(columns), snapshot.free[:, columns]
    if not (session.usable()[:, columns] < 0).any() and not devices.overfull(free, snapshot.axis).any():
        return True
    for unit in bundle:
        statement.evict(unit.gang, unit.pods)
    return False


def _suffered(session: Session, unit: EvictableUnit) -> bool:
    """Return True if the affinity and spreading rules between pods allow keeping the unit on its nodes."""
    index = session.snapshot.index
    for cls in {pod.cls for pod in unit.pods}:
        codes = session.hooks.neighbour_predicate.call(cls)
        columns = [index[pod.node] for pod in unit.pods if pod.cls is cls and pod.node in index]
        if codes is not None and bool((codes[columns] != 0).any()):
            return False
    return True
