"""Search for the victims of one gang: by amounts, then proved on a statement with all predicates.

1. The shortest prefix of evictable units that is enough by amounts, and the needed units in it (`room`).
2. A trial: evict the units, ask the queues, place the gang with all predicates. Usually this succeeds.
3. If rules between pods or a full queue are in the way: try longer prefixes, then leave out needless units.
4. Plugins judge the scenario. If they refuse it, the search starts again without the refused unit.

Failed trials are undone.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from extender.planner.ask import Ask
from extender.planner.framework.operations import Chunk, Scenario
from extender.planner.framework.session import Session
from extender.planner.framework.statement import Statement
from extender.planner.state.amounts import Amounts
from extender.planner.victims.pieces import EvictableUnit
from extender.planner.victims.room import Need, VictimCapacity

ROUNDS = 8
"""Maximum number of searches for one gang, each without the units that plugins have refused so far."""
TRIALS = 32
"""Maximum number of trials of a search for leaving out units, where amounts alone do not decide."""


@dataclass(frozen=True, slots=True)
class Search:
    """The inputs of a search."""

    session: Session
    statement: Statement
    """Empty at first; it holds the solution afterwards."""
    ask: Ask
    requested: Amounts
    """Amounts of the gang's minimum before any trial, int64 of shape (resources,)."""
    needs: list[Need]
    place: Callable[[Sequence[EvictableUnit]], Sequence[EvictableUnit] | None]
    """Function that places the gang (and moved units) on the statement without these units. It returns the units that
    have to go, None if the gang does not fit."""
    agreed: Callable[[Scenario], bool]
    """Function that asks plugins to judge a scenario."""
    moved: bool = False
    """True if the units get new slots within the scenario."""


def solve(search: Search, pieces: list[EvictableUnit]) -> list[EvictableUnit] | None:
    """Return the needed units, in their order; empty if none is needed, None if no eviction helps."""
    for _ in range(ROUNDS):
        kept = _fitting(search, pieces)
        if not kept:
            return kept
        minded = _minded(search, kept)
        if minded is None:
            return kept
        search.statement.discard()
        pieces = _without(pieces, kept, minded)
    return None


def _fitting(search: Search, pieces: list[EvictableUnit]) -> list[EvictableUnit] | None:
    room = VictimCapacity(search.session, search.needs, pieces)
    fewest = room.fewest()
    if fewest is None:
        return None
    likely = [pieces[position] for position in room.needed(fewest)]
    if trial(search, likely) is not None:
        return likely
    low, high = fewest, fewest
    while True:
        if high == len(pieces):
            return None
        low, high = high, min(max(2 * high, 1), len(pieces))
        if trial(search, pieces[:high]) is not None:
            break
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if trial(search, pieces[:middle]) is not None else (middle, high)
    return _fewer(search, pieces[:high])


def _fewer(search: Search, pieces: list[EvictableUnit]) -> list[EvictableUnit] | None:
    """Leave out needless units by trials, in halves, the most expensive first."""
    kept, blocks, left = list(pieces), [(0, len(pieces))], TRIALS
    while blocks and left:
        low, high = blocks.pop()
        block = pieces[low:high]
        rests = {piece.gang.key for piece in kept if piece.rest and piece not in block}
        bound = any(not piece.rest and piece.gang.key in rests for piece in block)
        without = [piece for piece in kept if piece not in block]
        left -= not bound
        if not bound and trial(search, without) is not None:
            kept = without
        elif high - low > 1:
            middle = (low + high) // 2
            blocks += [(low, middle), (middle, high)]
    return kept if trial(search, kept) is not None else None


def trial(search: Search, pieces: Sequence[EvictableUnit]) -> list[EvictableUnit] | None:
    """Try to place the gang without these units; return the units that must be evicted, None if it does not fit."""
    search.statement.discard()
    for piece in pieces:
        search.statement.evict(piece.gang, piece.pods)
        if piece.spares is not None:
            run, cls = piece.spares
            search.statement.give_up(piece.gang, run.node, run.count, cls)
    if search.session.queue_refusal(search.ask, search.requested) is None:
        gone = search.place(pieces)
        if gone is not None:
            return list(gone)
    search.statement.discard()
    return None


def scenario_of(search: Search, pieces: Sequence[EvictableUnit]) -> Scenario:
    """Return the scenario in which these units are evicted; a trial has evicted them."""
    snapshot = search.session.snapshot
    lost = search.session.claims.lost_with([(piece.gang.queue, piece.pods) for piece in pieces])
    chunks = tuple(
        Chunk(piece.gang, piece.pods, piece.charged(snapshot) + more, search.moved)
        for piece, more in zip(pieces, lost, strict=True)
    )
    return Scenario(search.ask.gang, search.requested, chunks)


def _minded(search: Search, kept: list[EvictableUnit]) -> EvictableUnit | None:
    """Return the first unit at which plugins refuse the scenario; None if they agree to all of it."""
    scenario = scenario_of(search, kept)

    def agreed(number: int) -> bool:
        return search.agreed(replace(scenario, chunks=scenario.chunks[:number]))

    if agreed(len(kept)):
        return None
    refused = next((number for number in range(1, len(kept)) if not agreed(number)), len(kept))
    return kept[refused - 1]


def _without(pieces: list[EvictableUnit], kept: list[EvictableUnit], minded: EvictableUnit) -> list[EvictableUnit]:
    """Return the candidates without the refused unit and later ones of its queue; with one queue, of its gang."""
    before = {id(piece) for piece in kept[: kept.index(minded)]}
    queues = {piece.gang.queue for piece in pieces}
    if len(queues) > 1:
        return [piece for piece in pieces if piece.gang.queue != minded.gang.queue or id(piece) in before]
    return [piece for piece in pieces if piece.gang.key != minded.gang.key or id(piece) in before]
