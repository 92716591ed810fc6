"""Makes room by moving: small gangs go elsewhere so that one fits that found only scattered room.

A scenario is good only if every pod that goes has a new place in it; that place is written down for its gang, as the
room is for the one who asked. A move is a restart, so that few pods are moved: at most `MOST_MOVED`, as in
KAI-Scheduler, whose flag for it has the same number.
"""

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from extender.planner import reasons
from extender.planner.actions.evicting import Asker, Evicting
from extender.planner.actions.fill import PartSearch, fill
from extender.planner.actions.search import place_minimum, there
from extender.planner.framework.answers import EVERYWHERE, NodeSet
from extender.planner.framework.operations import Scenario
from extender.planner.framework.session import Session
from extender.planner.framework.statement import Statement
from extender.planner.state.gangs import GangView
from extender.planner.state.podset import PodSetView
from extender.planner.topology.requests import part_of
from extender.planner.victims.order import by_size
from extender.planner.victims.pieces import Piece

MOST_MOVED = 16
"""Pods that are moved for one gang."""
MOST_CONSIDERED = 512
"""Pieces that a search looks at: those that free most for the fewest pods."""


class Consolidate(Evicting):
    """Victims are gangs of any queue that may be displaced, and that fit elsewhere."""

    name = "consolidate"
    moves = True
    most_moved = MOST_MOVED

    def worthwhile(self, _session: Session, _gang: GangView) -> bool:
        """Whether anything runs."""
        return bool(self.running)

    def allowed(self, session: Session, asker: Asker) -> bool:
        """A full queue has no more room when pods are moved; and in all there must be enough."""
        free = np.maximum(session.snapshot.free, 0).sum(axis=1)
        wanted = sum(session.snapshot.row_of(need.cls) * need.pods for need in asker.needs)
        return not asker.queue_full and bool((free >= wanted).all())

    def pieces(self, session: Session, asker: Asker) -> list[Piece]:
        """Few pods on nodes that nearly have room come first."""
        found = [
            piece
            for piece in self.victims_of(session, asker, lambda victim: victim.started)
            if len(piece.pods) <= self.most_moved
        ]
        largest = max(asker.needs, key=lambda need: int(session.snapshot.row_of(need.cls).max(initial=0)))
        row = session.snapshot.row_of(largest.cls)
        lacks = (np.maximum(row[:, None] - session.snapshot.free, 0) / np.maximum(row[:, None], 1)).max(axis=0)
        worst = {id(piece): float(lacks[piece.columns].max(initial=0.0)) for piece in found}
        nearest = sorted(by_size(found), key=lambda piece: (len(piece.pods), worst[id(piece)]))
        return _extras_first(nearest[:MOST_CONSIDERED])

    def agreed(self, _session: Session, scenario: Scenario) -> bool:
        """Few enough pods; that all of them have a place is part of the search."""
        return sum(len(chunk.pods) for chunk in scenario.chunks) <= self.most_moved

    def reason(self, gang: GangView) -> str:
        """For the owners of those that move."""
        return reasons.evictions.moved(gang=gang.key)

    def _placed(self, session: Session, statement: Statement, gang: GangView, pieces: Sequence[Piece]) -> bool:
        if place_minimum(session, statement, gang) is not None:
            return False
        for piece in pieces:
            before = statement.checkpoint()
            if not _moved(session, statement, piece):
                return False
            columns = Counter(
                operation.column for operation in statement.operations_since(before) for _ in operation.ranks
            )
            if columns == Counter(piece.columns.tolist()):
                return False  # it would only be restarted where it is
        return True


def _moved(session: Session, statement: Statement, piece: Piece) -> bool:
    """Whether all pods of the piece have found a place; that stands in the statement.

    They are placed as what they are: a template says less than the pod that admission made of it.
    """
    alike: dict[str, PodSetView] = {}
    for pod in piece.pods:
        if pod.slot is not None:
            name = pod.slot.pod_set
            alike.setdefault(name, PodSetView(name, pod.cls, 0, 0, mixed=True)).waiting[pod.slot.rank] = pod
    slots = {name: sorted(pod_set.waiting) for name, pod_set in alike.items()}

    def fill_slots(wanted: Mapping[str, Sequence[int]], nodes: NodeSet) -> bool:
        return all(
            fill(session, statement, piece.gang, alike[name], ranks, nodes) == len(ranks)
            for name, ranks in wanted.items()
        )

    part = part_of(piece.gang, slots, there(session, statement, piece.gang))
    return PartSearch(session, statement, piece.gang, fill_slots).place(part, EVERYWHERE)


def _extras_first(pieces: list[Piece]) -> list[Piece]:
    """What is above a gang's minimum comes before the rest of it, without which it would be alone."""
    ordered: list[Piece] = []
    extras: dict[str, list[Piece]] = {}
    for piece in pieces:
        if not piece.rest:
            extras.setdefault(piece.gang.key, []).append(piece)
    for piece in pieces:
        if piece.rest:
            ordered += extras.pop(piece.gang.key, [])
            ordered.append(piece)
        elif piece in extras.get(piece.gang.key, ()):
            extras[piece.gang.key].remove(piece)
            ordered.append(piece)
    return ordered
