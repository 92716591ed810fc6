"""Pieces that can stay where they are within a trial, though it began without them: only others have to move.

Nodes may refuse new pods by now, which does not concern those that run there; rules between pods do.
"""

from collections.abc import Sequence
from itertools import chain

import numpy as np

from extender.planner.framework.session import Session
from extender.planner.framework.statement import Statement
from extender.planner.victims.pieces import Piece

Unit = tuple[Piece, ...]
"""Pieces that move together: one above its gang's minimum, or all of a gang."""


def keep_untouched(session: Session, statement: Statement, units: Sequence[Unit]) -> list[Unit]:
    """Put back at once the units on whose nodes the statement has placed nothing; return the others."""
    taken = {operation.column for operation in statement.operations}
    kept: list[Unit] = []
    others: list[Unit] = []
    for unit in units:
        free = all(taken.isdisjoint(piece.columns.tolist()) and _suffered(session, piece) for piece in unit)
        (kept if free else others).append(unit)
    statement.keep(pod for piece in chain.from_iterable(kept) for pod in piece.pods)
    return others


def stays(session: Session, statement: Statement, unit: Unit) -> bool:
    """Put a unit back to where it was, if that is possible beside what the statement has placed."""
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


def _suffered(session: Session, piece: Piece) -> bool:
    """Return True if no pod that is there now has a rule against the piece, nor the piece against it."""
    index = session.snapshot.index
    for cls in {pod.cls for pod in piece.pods}:
        codes = session.hooks.neighbour_predicate.call(cls)
        columns = [index[pod.node] for pod in piece.pods if pod.cls is cls and pod.node in index]
        if codes is not None and bool((codes[columns] != 0).any()):
            return False
    return True
