"""The action that moves small gangs elsewhere, so that a gang fits that found only scattered free capacity.

Every moved pod gets a new slot in the same scenario, in a placement of its gang. A move is a restart, so few pods
are moved: at most `MOST_MOVED`, the default of KAI-Scheduler's flag.
"""

from collections import Counter
from collections.abc import Hashable, Sequence
from itertools import chain

import numpy as np

from extender.planner import reasons
from extender.planner.actions.asker import Asker
from extender.planner.actions.evicting import Evicting
from extender.planner.actions.search import SlotSearch, moved
from extender.planner.framework.operations import Operation, Scenario
from extender.planner.framework.session import Session
from extender.planner.framework.statement import Statement
from extender.planner.state.gangs import GangView
from extender.planner.victims.disturb import moves_agreed
from extender.planner.victims.moves import Unit, keep_untouched, solve_moves, stays, units_of, whole_node
from extender.planner.victims.order import by_cost
from extender.planner.victims.pieces import EvictableUnit
from extender.planner.victims.solver import Search
from muster.api.muster.reason import Reason

Slot = tuple[int, tuple[int, ...]]
"""Column of a node, and the shared GPUs there."""
MOST_MOVED = 16
"""Pods that are moved for one gang."""
MOST_CONSIDERED = 512
"""Maximum number of evictable units in one search; units that free most with the fewest pods come first."""


class Consolidate(Evicting):
    """Victims are preemptable gangs of any queue that fit elsewhere."""

    name = "consolidate"
    moves = True

    def worthwhile(self, _gang: GangView) -> bool:
        """Return True if any gang runs."""
        return bool(self.running)

    def allowed(self, session: Session, asker: Asker) -> bool:
        """Return True if the queue is not full and the total free capacity is sufficient."""
        free = np.maximum(session.snapshot.free, 0).sum(axis=1)
        wanted = sum(session.snapshot.row_of(need.cls) * need.pods for need in asker.needs)
        return not asker.queue_full and bool((free >= wanted).all())

    def pieces(self, session: Session, asker: Asker) -> list[EvictableUnit]:
        """Return evictable units: few pods first, then units on nodes that lack least."""
        found = [piece for piece in self.victims_of(session, asker, "move") if len(piece.pods) <= MOST_MOVED]
        largest = max(asker.needs, key=lambda need: int(session.snapshot.row_of(need.cls).max(initial=0)))
        row = session.snapshot.row_of(largest.cls)
        lacks = (np.maximum(row[:, None] - session.snapshot.free, 0) / np.maximum(row[:, None], 1)).max(axis=0)
        worst = {id(piece): float(lacks[piece.columns].max(initial=0.0)) for piece in found}
        nearest = sorted(by_cost(found, session.now), key=lambda piece: (len(piece.pods), worst[id(piece)]))
        return list(dict.fromkeys(chain.from_iterable(units_of(nearest[:MOST_CONSIDERED]))))

    def agreed(self, session: Session, scenario: Scenario) -> bool:
        """Return True for few enough pods, if all plugins agree."""
        return sum(len(chunk.pods) for chunk in scenario.chunks) <= MOST_MOVED and moves_agreed(session, scenario)

    def reason(self, gang: GangView, _found: Sequence[EvictableUnit]) -> Reason:
        """Return the reason for the owners of moved gangs."""
        return reasons.placements.moved(queue=gang.queue)

    def solve(self, search: Search, pieces: list[EvictableUnit]) -> list[EvictableUnit] | None:
        """Return the evictable units that move."""
        return solve_moves(search, pieces)

    def _placed(self, search: SlotSearch, pieces: Sequence[EvictableUnit]) -> Sequence[EvictableUnit] | None:
        """Place the gang without these units, and place units elsewhere that cannot stay."""
        if search.minimum() is not None:
            return None
        moving = _settle(search.session, search.statement, _apart(pieces))
        going = {id(piece) for unit in moving or () for piece in unit}
        return None if moving is None else [piece for piece in pieces if id(piece) in going]


def _settle(session: Session, statement: Statement, units: list[Unit]) -> list[Unit] | None:
    """Give new slots to the units that cannot stay, after the other placements or else before.

    Return the moved units.
    """
    moving = _not_staying(session, statement, units)
    before = statement.checkpoint()
    if _all_moved(session, statement, moving):
        return moving
    statement.rollback(before)
    first = set(map(id, moving))
    rest = [unit for unit in units if id(unit) not in first]
    for piece in chain.from_iterable(rest):
        statement.evict(piece.gang, piece.pods)
    if not rest or not _all_moved(session, statement, moving):
        return None
    also = _not_staying(session, statement, rest)
    return [*moving, *also] if _all_moved(session, statement, also) else None


def _not_staying(session: Session, statement: Statement, units: list[Unit]) -> list[Unit]:
    """Put back the units that can stay, the dearest first; return the others."""
    touched = keep_untouched(session, statement, units)
    return [unit for unit in reversed(touched) if not stays(session, statement, unit)]


def _all_moved(session: Session, statement: Statement, units: list[Unit]) -> bool:
    """Give all these units new slots, largest first; return False if they do not fit or one would not move."""
    for unit in sorted(units, key=lambda unit: -_size(session, unit)):
        before = statement.checkpoint()
        if not all(moved(session, statement, piece.gang, piece.pods) for piece in unit):
            return False
        if _slots_of(statement.operations_since(before)) == _slots_held(session, unit):
            return False  # it would only be restarted
    return True


def _apart(pieces: Sequence[EvictableUnit]) -> list[Unit]:
    """Group units that stay or move together: all units of a gang that is moved as a whole, else each unit alone."""
    whole = {piece.gang.key for piece in pieces if piece.rest}
    units: dict[Hashable, list[EvictableUnit]] = {}
    for piece in pieces:
        units.setdefault(piece.gang.key if piece.gang.key in whole else id(piece), []).append(piece)
    return [tuple(unit) for unit in units.values()]


def _size(session: Session, unit: Unit) -> float:
    """Return the largest fraction of a node that one of its pods takes; units that are hard to place come first."""
    whole = whole_node(session)
    return max(float((piece.rows / whole).max(initial=0.0)) for piece in unit)


def _slots_of(operations: Sequence[Operation]) -> Counter[Slot]:
    """Return the node and the shared GPUs of every member that has been placed."""
    return Counter(
        (operation.column, devices)
        for operation in operations
        for devices in operation.devices or [()] * operation.size
    )


def _slots_held(session: Session, unit: Unit) -> Counter[Slot]:
    """Return the node and the shared GPUs that each pod of the unit has now."""
    index = session.snapshot.index
    return Counter(
        (index[pod.node], pod.devices if pod.cls.gpu else ())
        for piece in unit
        for pod in piece.pods
        if pod.node in index
    )
