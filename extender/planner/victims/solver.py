"""Search for the victims for one gang: they are selected by resources, then verified on a statement.

1. Find the smallest number of evictable units, counted from the first, that frees enough resources, and the necessary
   units among them (`capacity`).
2. In a trial, evict the units, call the queues' hooks, and place the gang with all predicates. Usually the trial
   succeeds.
3. If rules between pods or a full queue prevent the placement, try more of the ordered units, then leave out each
   unnecessary unit.
4. Plugins accept or reject the scenario. After a rejection, the search starts again without the rejected unit.

Failed trials are undone.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from extender.planner.ask import Ask
from extender.planner.framework.operations import Chunk, Scenario
from extender.planner.framework.session import Session
from extender.planner.framework.statement import Statement
from extender.planner.state.amounts import Amounts
from extender.planner.victims.capacity import Need, VictimCapacity
from extender.planner.victims.units import EvictableUnit

ROUNDS = 8
"""Maximum number of searches for one gang. Each search leaves out the units that plugins have already rejected."""
TRIALS = 32
"""Maximum number of trials to find unnecessary units, if resources alone do not determine them."""


@dataclass(frozen=True, slots=True)
class Search:
    """The inputs and the statement of a search for victims."""

    session: Session
    statement: Statement
    """The statement of the search: empty before the search, and containing the solution afterwards."""
    ask: Ask
    requested: Amounts
    """Requests of the gang's minimum before any trial, int64 of shape (resources,)."""
    needs: list[Need]
    place: Callable[[Sequence[EvictableUnit]], Sequence[EvictableUnit] | None]
    """Function that places the gang and moved units on the statement, after the given units have been evicted. The
    function returns the units that must be evicted, or None if the gang does not fit."""
    agreed: Callable[[Scenario], bool]
    """Function that returns True if the plugins accept a scenario."""
    moved: bool = False
    """True if the scenario also contains new slots for the units."""


def solve(search: Search, units: list[EvictableUnit]) -> list[EvictableUnit] | None:
    """Return the units that must be evicted, in the given order; empty if none must be, None if no eviction helps."""
    for _ in range(ROUNDS):
        kept = _fitting(search, units)
        if not kept:
            return kept
        minded = _minded(search, kept)
        if minded is None:
            return kept
        search.statement.discard()
        units = _without(units, kept, minded)
    return None


def _fitting(search: Search, units: list[EvictableUnit]) -> list[EvictableUnit] | None:
    room = VictimCapacity(search.session, search.needs, units)
    fewest = room.fewest()
    if fewest is None:
        return None
    likely = [units[position] for position in room.needed(fewest)]
    if trial(search, likely) is not None:
        return likely
    low, high = fewest, fewest
    while True:
        if high == len(units):
            return None
        low, high = high, min(max(2 * high, 1), len(units))
        if trial(search, units[:high]) is not None:
            break
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if trial(search, units[:middle]) is not None else (middle, high)
    return _fewer(search, units[:high])


def _fewer(search: Search, units: list[EvictableUnit]) -> list[EvictableUnit] | None:
    """Leave out unnecessary units by trials, in halves, the most expensive units first."""
    kept, blocks, left = list(units), [(0, len(units))], TRIALS
    while blocks and left:
        low, high = blocks.pop()
        block = units[low:high]
        rests = {unit.gang.key for unit in kept if unit.rest and unit not in block}
        bound = any(not unit.rest and unit.gang.key in rests for unit in block)
        without = [unit for unit in kept if unit not in block]
        left -= not bound
        if not bound and trial(search, without) is not None:
            kept = without
        elif high - low > 1:
            middle = (low + high) // 2
            blocks += [(low, middle), (middle, high)]
    return kept if trial(search, kept) is not None else None


def trial(search: Search, units: Sequence[EvictableUnit]) -> list[EvictableUnit] | None:
    """Try to place the gang as if these units were evicted; return the units to evict, or None if it does not fit."""
    search.statement.discard()
    for unit in units:
        search.statement.evict(unit.gang, unit.pods)
        if unit.spares is not None:
            run, cls = unit.spares
            search.statement.give_up(unit.gang, run.node, run.count, cls)
    if search.session.queue_refusal(search.ask, search.requested) is None:
        gone = search.place(units)
        if gone is not None:
            return list(gone)
    search.statement.discard()
    return None


def scenario_of(search: Search, units: Sequence[EvictableUnit]) -> Scenario:
    """Return the scenario of evicting these units; a trial has already evicted them."""
    snapshot = search.session.snapshot
    lost = search.session.claims.lost_with([(unit.gang.queue, unit.pods) for unit in units])
    chunks = tuple(
        Chunk(unit.gang, unit.pods, unit.charged(snapshot) + more, search.moved)
        for unit, more in zip(units, lost, strict=True)
    )
    return Scenario(search.ask.gang, search.requested, chunks)


def _minded(search: Search, kept: list[EvictableUnit]) -> EvictableUnit | None:
    """Return the first unit for which plugins reject the scenario; None if plugins accept the whole scenario."""
    scenario = scenario_of(search, kept)

    def agreed(number: int) -> bool:
        return search.agreed(replace(scenario, chunks=scenario.chunks[:number]))

    if agreed(len(kept)):
        return None
    refused = next((number for number in range(1, len(kept)) if not agreed(number)), len(kept))
    return kept[refused - 1]


def _without(units: list[EvictableUnit], kept: list[EvictableUnit], minded: EvictableUnit) -> list[EvictableUnit]:
    """Return the candidates without the rejected unit and later units of the same queue.

    If all candidates are of one queue, only later units of the same gang are left out.
    """
    before = {id(unit) for unit in kept[: kept.index(minded)]}
    queues = {unit.gang.queue for unit in units}
    if len(queues) > 1:
        return [unit for unit in units if unit.gang.queue != minded.gang.queue or id(unit) in before]
    return [unit for unit in units if unit.gang.key != minded.gang.key or id(unit) in before]
