"""Chooses nodes for pods of one set, in rank order, on a Statement."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from extender.planner.framework.answers import EVERYWHERE, NodeSet
from extender.planner.framework.session import Session
from extender.planner.framework.statement import Statement
from extender.planner.state.amounts import Amounts
from extender.planner.state.gangs import GangView
from extender.planner.state.podclass import PodClass
from extender.planner.state.podset import PodSetView
from extender.planner.topology.parts import Part

ATTEMPTS = 64
"""How many beginnings are tried for pods that depend on each other."""
Mask = NDArray[np.bool_]


def fill(
    session: Session,
    statement: Statement,
    gang: GangView,
    pod_set: PodSetView,
    ranks: Sequence[int],
    nodes: NodeSet = EVERYWHERE,
) -> int:
    """Puts these ranks on nodes, best nodes first and neighbouring ranks beside each other; returns how many."""
    filling = _Filling(session, statement, gang, pod_set, nodes)
    placed = 0
    for cls, part in _alike(pod_set, ranks):
        if session.hooks.pre_predicate.call(gang, cls):
            break
        alone = session.snapshot.one_by_one(cls)
        count = filling.one_by_one(cls, part) if alone else filling.at_once(cls, part)
        placed += count
        if count < len(part):
            break
    return placed


def usable_room(session: Session, gang: GangView, cls: PodClass, nodes: NodeSet = EVERYWHERE) -> Amounts:
    """Pods of this class that fit on each node, 0 where a predicate says no; int64 of shape (nodes,)."""
    return nodes.limit(np.where(session.codes(cls, gang) == 0, session.room(cls), 0))


def ranked(session: Session, cls: PodClass, room: Amounts, nodes: NodeSet = EVERYWHERE) -> Amounts:
    """Columns with room: by score, then beside each other; in the order of the node set, if that has one."""
    order = nodes.order(session.snapshot.order)
    columns = order[room[order] > 0]
    if nodes.ranked:
        return columns
    session.hooks.node_pre_order.call(cls, columns)
    scores = session.scores(cls)
    return columns[np.argsort(-scores[columns], kind="stable")] if isinstance(scores, np.ndarray) else columns


def _alike(pod_set: PodSetView, ranks: Sequence[int]) -> Sequence[tuple[PodClass, Sequence[int]]]:
    """Runs of ranks whose pods are of one class; they end at the first rank whose pods are unknown."""
    if not pod_set.mixed:
        return [(pod_set.cls, ranks)] if pod_set.cls and ranks else []
    runs: list[tuple[PodClass, list[int]]] = []
    for rank in ranks:
        cls = pod_set.class_of(rank)
        if cls is None:
            break
        if runs and runs[-1][0] is cls:
            runs[-1][1].append(rank)
        else:
            runs.append((cls, [rank]))
    return runs


@dataclass(frozen=True, slots=True)
class _Filling:
    """Pods of one set of one gang."""

    session: Session
    statement: Statement
    gang: GangView
    pod_set: PodSetView
    nodes: NodeSet

    def at_once(self, cls: PodClass, ranks: Sequence[int]) -> int:
        """Pods that do not mind each other: as many as fit on the best nodes, in the order of the nodes' names."""
        room = np.minimum(usable_room(self.session, self.gang, cls, self.nodes), len(ranks))
        columns = ranked(self.session, cls, room, self.nodes)
        before = np.cumsum(room[columns]) - room[columns]
        columns = columns[before < len(ranks)]
        given = np.zeros_like(room)
        given[columns] = np.minimum(room[columns], len(ranks) - before[: len(columns)])
        columns = self._side_by_side(columns)
        placed, slots = 0, []
        for count in given[columns].tolist():
            slots.append(ranks[placed : placed + count])
            placed += count
        self.statement.allocate_all(self.gang, self.pod_set.name, slots, columns, cls)
        return placed

    def _side_by_side(self, chosen: Amounts) -> Amounts:
        """The chosen columns in the order in which ranks go along."""
        if self.nodes.along is not None:
            return chosen[np.argsort(self.nodes.along[chosen])]
        order = self.session.snapshot.order
        inside = np.zeros(len(self.session.snapshot.nodes), dtype=np.bool_)
        inside[chosen] = True
        return order[inside[order]]

    def one_by_one(self, cls: PodClass, ranks: Sequence[int]) -> int:
        """Pods that mind where the others of their kind are: asked again after each one.

        Where the first one goes decides where the others can go (affinity: only into its domain), so that several
        beginnings are tried, each out of reach of those before; the one that places most is kept.
        """
        columns = ranked(self.session, cls, usable_room(self.session, self.gang, cls, self.nodes), self.nodes)
        best, beginning = 0, -1
        start = self.statement.checkpoint()
        for _ in range(ATTEMPTS):
            if not len(columns):
                break
            placed, reach = self._from(cls, ranks, int(columns[0]), whole=True)
            if placed == len(ranks):
                return placed
            if placed > best:
                best, beginning = placed, int(columns[0])
            self.statement.rollback(start)
            columns = columns[~reach[columns]]
        return self._from(cls, ranks[:best], beginning, whole=False)[0] if best else 0

    def _from(self, cls: PodClass, ranks: Sequence[int], column: int, *, whole: bool) -> tuple[int, Mask]:
        """Places the first pod on the node in `column`, the others where they can follow; how many, and their reach.

        `whole` stops as soon as it is certain that not all can follow; the number is then what could at most.
        """
        session = self.session
        room = self.nodes.limit(session.room(cls))
        best_first = ranked(session, cls, room, self.nodes)
        self._allocate(cls, ranks[:1], column)
        room[column] -= 1
        codes = session.codes(cls, self.gang)
        reach: Mask = codes == 0
        most = int(np.minimum(room[reach], len(ranks)).sum()) + 1
        reach[column] = True
        if whole and most < len(ranks) and not cls.neighbours.spreads:
            return most, reach  # all but spreading only becomes stricter with every pod
        for placed, rank in enumerate(ranks[1:], start=1):
            possible = (codes[best_first] == 0) & (room[best_first] > 0)
            first = int(possible.argmax()) if len(possible) else 0
            if not len(possible) or not possible[first]:
                return placed, reach
            self._allocate(cls, [rank], int(best_first[first]))
            room[best_first[first]] -= 1
            codes = session.codes(cls, self.gang)
        return len(ranks), reach

    def _allocate(self, cls: PodClass, ranks: Sequence[int], column: int) -> None:
        self.statement.allocate(self.gang, self.pod_set.name, ranks, column, cls)


FAILURES = 64
"""Sets that may turn out wrong for one gang: what amounts promise holds nearly always."""
RETRACED = 16
"""So many parts that stand beside each other are placed anew when one behind them fails; of more each is final."""
FillSlots = Callable[[Mapping[str, Sequence[int]], NodeSet], bool]
"""Places all these slots, by pod set, within a node set; if it cannot, whatever it did may be rolled back."""


@dataclass(slots=True)
class PartSearch:
    """The search for one gang's minimum."""

    session: Session
    statement: Statement
    gang: GangView
    fill: FillSlots
    failures: int = FAILURES

    def place(self, part: Part, nodes: NodeSet) -> bool:
        """Whether the part has found nodes; they stand in the statement then, and nothing does otherwise."""
        return self._place_all([(part, nodes)])

    def _place_all(self, todo: list[tuple[Part, NodeSet]]) -> bool:
        if not todo:
            return True
        (part, nodes), *rest = todo
        for subset in self.session.hooks.subset_nodes.call(nodes, self.gang, part):
            before = self.statement.checkpoint()
            if len(part.children) > RETRACED:
                found = all(self._place_all([(child, subset)]) for child in part.children) and self._place_all(rest)
            elif part.children:
                found = self._place_all([*((child, subset) for child in part.children), *rest])
            else:
                found = self._leaf(part, subset) and self._place_all(rest)
            if found:
                return True
            self.statement.rollback(before)
            self.failures -= 1
            if self.failures <= 0:
                return False
        return False

    def _leaf(self, part: Part, nodes: NodeSet) -> bool:
        if not part.slices:
            return self.fill(part.slots, nodes)
        if nodes.sliced:
            before = self.statement.checkpoint()
            if self.fill(part.slots, nodes):
                return True
            self.statement.rollback(before)
        return all(self._place_all([(unit, nodes)]) for unit in part.units())


def join(session: Session, gang: GangView, part: Part, nodes: NodeSet, fill: Callable[[Part, NodeSet], int]) -> int:
    """Places pods that are welcome singly, with those of their part that are there; how many.

    `fill` places what fits of a part without parts. It ends with the first set of nodes that takes any: who has come
    decides where the next ones belong.
    """
    for subset in session.hooks.subset_nodes.call(nodes, gang, part):
        inner = part.children or (tuple(part.units()) if part.slices else ())
        for child in inner:
            if placed := join(session, gang, child, subset, fill):
                return placed
        if not inner and (placed := fill(part, subset)):
            return placed
    return 0
