"""Finds the victims for one gang: amounts first, then the proof on a statement with everything that is asked of nodes.

1. The shortest beginning of the candidates that is enough by amounts, and what is needed of it (`room`).
2. A trial: the pieces leave, the queues are asked, the gang is placed with all predicates. Mostly that is all.
3. Else pods mind each other, or a queue is full: longer beginnings are tried, then what is not needed is left out.
4. Plugins judge the scenario. One that they refuse is searched again without the piece that they minded.

Whatever fails is undone, so that the session is as before.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from extender.planner.framework.operations import Chunk, Scenario
from extender.planner.framework.session import Session
from extender.planner.framework.statement import Statement
from extender.planner.state.amounts import Amounts
from extender.planner.state.gangs import GangView
from extender.planner.victims.pieces import Piece
from extender.planner.victims.room import Need, Room

ROUNDS = 8
"""How often a search begins anew without what plugins minded."""
TRIALS = 32
"""Trials that a search may spend on leaving pieces out, where amounts alone do not tell."""


@dataclass(frozen=True, slots=True)
class Search:
    """What is looked for."""

    session: Session
    statement: Statement
    """Empty; what was found stands in it afterwards."""
    gang: GangView
    requested: Amounts
    """What the gang's open slots ask for, int64 of shape (resources,)."""
    needs: list[Need]
    place: Callable[[Sequence[Piece]], bool]
    """Places the gang (and whatever else must have a place) on the statement, from which those pieces have left."""
    agreed: Callable[[Scenario], bool]
    """What plugins say of a scenario."""
    moved: bool = False
    """The pieces have a new place within the scenario."""


def solve(search: Search, pieces: list[Piece]) -> list[Piece] | None:
    """The pieces that must go, in their order; empty if none has to, None if nothing helps."""
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


def scenario_of(search: Search, pieces: Sequence[Piece]) -> Scenario:
    """The scenario in which these pieces go."""
    chunks = tuple(Chunk(piece.gang, piece.pods, piece.amounts, search.moved) for piece in pieces)
    return Scenario(search.gang, search.requested, chunks)


def _fitting(search: Search, pieces: list[Piece]) -> list[Piece] | None:
    room = Room(search.session, search.needs, pieces)
    fewest = room.fewest()
    if fewest is None:
        return None
    likely = [pieces[position] for position in room.needed(fewest)]
    if _trial(search, likely):
        return likely
    low, high = fewest, fewest
    while True:
        if high == len(pieces):
            return None
        low, high = high, min(max(2 * high, 1), len(pieces))
        if _trial(search, pieces[:high]):
            break
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if _trial(search, pieces[:middle]) else (middle, high)
    return _fewer(search, pieces[:high])


def _fewer(search: Search, pieces: list[Piece]) -> list[Piece] | None:
    """Leaves out what turns out not to be needed, by trials: the dearest first, and by halves."""
    kept, blocks, left = list(pieces), [(0, len(pieces))], TRIALS
    while blocks and left:
        low, high = blocks.pop()
        block = pieces[low:high]
        rests = {piece.gang.key for piece in kept if piece.rest and piece not in block}
        bound = any(not piece.rest and piece.gang.key in rests for piece in block)
        without = [piece for piece in kept if piece not in block]
        left -= not bound
        if not bound and _trial(search, without):
            kept = without
        elif high - low > 1:
            middle = (low + high) // 2
            blocks += [(low, middle), (middle, high)]
    return kept if _trial(search, kept) else None


def _trial(search: Search, pieces: Sequence[Piece]) -> bool:
    """Whether the gang fits without these pieces; if so, that stands in the statement."""
    search.statement.discard()
    for piece in pieces:
        search.statement.evict(piece.gang, piece.pods)
    if search.session.queue_refusal(search.gang, search.requested) is None and search.place(pieces):
        return True
    search.statement.discard()
    return False


def _minded(search: Search, kept: list[Piece]) -> Piece | None:
    """The first piece with which plugins refuse the scenario; None if they agree to the whole of it."""
    if search.agreed(scenario_of(search, kept)):
        return None
    for number in range(1, len(kept)):
        if not search.agreed(scenario_of(search, kept[:number])):
            return kept[number - 1]
    return kept[-1]


def _without(pieces: list[Piece], kept: list[Piece], minded: Piece) -> list[Piece]:
    """The candidates without the piece that was minded and what may not go without it.

    If it is of another queue than the pieces before it, that queue has given what it may; else it is its gang that is
    protected.
    """
    before = {id(piece) for piece in kept[: kept.index(minded)]}
    queues = {piece.gang.queue for piece in pieces}
    if len(queues) > 1:
        return [piece for piece in pieces if piece.gang.queue != minded.gang.queue or id(piece) in before]
    return [piece for piece in pieces if piece.gang.key != minded.gang.key or id(piece) in before]
