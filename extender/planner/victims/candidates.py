"""Pieces that a search may choose from: those whose going would help, as far as disruption budgets let them go."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from extender.planner.framework.session import Session
from extender.planner.state.gangs import GangView
from extender.planner.victims.budgets import Budgets
from extender.planner.victims.pieces import Piece, pieces_of
from extender.planner.victims.room import Need


@dataclass(slots=True)
class Catalogue:
    """Pieces of gangs, kept from cycle to cycle until the gang's view or the axes of the arrays are made anew."""

    _known: dict[str, tuple[GangView, list[Piece]]] = field(default_factory=dict)
    _axes: tuple[object, ...] = ()

    def of(self, session: Session, gang: GangView) -> list[Piece]:
        """What of the gang can go."""
        snapshot = session.snapshot
        axes = snapshot.axis, snapshot.index, snapshot.free.shape[0]
        if (
            len(self._axes) != len(axes)
            or any(known is not now for known, now in zip(self._axes[:2], axes[:2], strict=True))
            or self._axes[2] != axes[2]
        ):
            self._known.clear()
            self._axes = axes
        known = self._known.get(gang.key)
        if known is None or known[0] is not gang:
            known = self._known[gang.key] = gang, pieces_of(snapshot, gang)
        return known[1]

    def forget_others(self, gangs: Iterable[GangView]) -> None:
        """Forgets gangs that are gone."""
        keys = {gang.key for gang in gangs}
        if len(self._known) > 2 * len(keys):
            self._known = {key: known for key, known in self._known.items() if key in keys}


def helpful(pieces: list[Piece], needs: list[Need]) -> list[Piece]:
    """Of one gang's pieces those that free something where the asker could be; with its rest, all of it."""
    useful = [any(bool(need.usable[piece.columns].any()) for need in needs) for piece in pieces]
    if pieces and pieces[-1].rest and useful[-1]:
        return pieces
    return [piece for piece, helps in zip(pieces, useful, strict=True) if helps and not piece.rest]


def permitted(pieces: list[Piece], budgets: Budgets) -> list[Piece]:
    """The pieces, in order, that budgets let go one after the other.

    Of a gang's pods above its minimum others go where one may not. The rest goes only with all of them.
    """
    if not budgets:
        return pieces
    kept, held = [], set()
    for piece in pieces:
        if not (piece.rest and piece.gang.key in held) and budgets.take(piece.pods):
            kept.append(piece)
        else:
            held.add(piece.gang.key)
    return kept
