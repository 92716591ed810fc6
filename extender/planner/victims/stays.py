"""Pieces that can stay where they are within a trial, though it began without them: only others have to move."""

from collections.abc import Sequence

import numpy as np

from extender.planner.framework.session import Session
from extender.planner.framework.statement import Statement
from extender.planner.victims.pieces import Piece


def stays(session: Session, statement: Statement, pieces: Sequence[Piece]) -> bool:
    """Put all these pieces back to where they were, if that is possible beside what the statement has placed.

    Nodes may refuse new pods by now, which does not concern those that run there; rules between pods do.
    """
    if not all(_suffered(session, piece) for piece in pieces):
        return False
    pods = [pod for piece in pieces for pod in piece.pods]
    statement.keep(pods)
    taken = {operation.column for operation in statement.operations}
    columns = np.array([column for piece in pieces for column in piece.columns.tolist() if column in taken], np.int64)
    free = session.snapshot.free[:, columns]
    if (
        not bool((free < 0).any())
        and not session.snapshot.devices.at(columns).overfull(free, session.snapshot.axis).any()
    ):
        return True
    for piece in pieces:
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
