"""Choice of nodes for the pods of one pod set in rank order, and for a whole gang part by part.

Each part of a gang is placed on the first suitable node set that plugins propose, like KAI-Scheduler's tree of
sub-groups (allocateSubGroupSet). A gang without a topology request is a single part. If no plugin proposes node sets, a
single node set contains all nodes.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby

import numpy as np

from extender.planner.actions.otherways import Others, OtherWays
from extender.planner.framework.answers import EVERYWHERE, NodeSet
from extender.planner.framework.session import Session
from extender.planner.framework.statement import Statement
from extender.planner.state.amounts import Amounts, Mask
from extender.planner.state.gangs import GangView
from extender.planner.state.podclass import PodClass
from extender.planner.state.podset import PodSetView
from extender.planner.topology.parts import SlotGroup
from muster.resources.topology import NOTHING

ATTEMPTS = 64
"""Maximum number of nodes tested for the first pod of a gang with affinity or spreading among its pods."""
FAILURES = 64
"""Maximum number of node sets on which a gang may fail; resource totals usually predict failures."""
RETRACED = 16
"""Maximum number of sibling parts that are placed again when a later part fails. If a part has more siblings, the
placement of each sibling is final."""
_Todo = tuple[SlotGroup, NodeSet]
"""A part of a gang without a placement yet, and the nodes on which the part may be placed."""
FillSlots = Callable[[Mapping[str, Sequence[int]], NodeSet], bool]
"""Function that places all given slots within a node set; after its failure, the caller must roll back."""


def fill(
    session: Session,
    statement: Statement,
    gang: GangView,
    pod_set: PodSetView,
    ranks: Sequence[int],
    nodes: NodeSet = EVERYWHERE,
) -> int:
    """Place pods with these ranks on the best nodes, neighbouring ranks together; return the number of placed pods."""
    filling = _Filling(session, statement, gang, pod_set, nodes)
    placed = 0
    for cls, part in alike_runs(pod_set, ranks):
        if session.hooks.pre_predicate.call(gang, cls):
            break
        alone = session.snapshot.one_by_one(cls) or session.counts_nodes_of(gang, cls)
        taken = part[: session.claims.hold(cls)] if cls.needs.named else part
        count = filling.one_by_one(cls, taken) if alone else filling.at_once(cls, taken)
        placed += count
        if count < len(part):
            break
    return placed


def alike_runs(pod_set: PodSetView, ranks: Sequence[int]) -> Sequence[tuple[PodClass, Sequence[int]]]:
    """Return runs of consecutive ranks whose pods have the same class, up to the first rank with an unknown pod."""
    if not pod_set.mixed:
        return [(pod_set.cls, ranks)] if pod_set.cls and ranks else []
    runs = []
    for cls, alike in groupby(ranks, key=pod_set.class_of):
        if cls is None:
            break
        runs.append((cls, list(alike)))
    return runs


@dataclass(frozen=True, slots=True)
class _Filling:
    """Placement of the pods of one pod set of a gang."""

    session: Session
    statement: Statement
    gang: GangView
    pod_set: PodSetView
    nodes: NodeSet

    def at_once(self, cls: PodClass, ranks: Sequence[int]) -> int:
        """Place pods that do not depend on each other: select the best nodes, then fill them in order of node names."""
        room = np.minimum(self._room(cls), len(ranks))
        columns = usual_order(self.session, cls, self.nodes, room)
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
        """Return the chosen nodes, as columns, in the order in which consecutive ranks are placed on them."""
        if self.nodes.along is not None:
            return chosen[np.argsort(self.nodes.along[chosen])]
        order = self.session.snapshot.order
        inside = np.zeros(len(self.session.snapshot.nodes), dtype=np.bool_)
        inside[chosen] = True
        return order[inside[order]]

    def one_by_one(self, cls: PodClass, ranks: Sequence[int]) -> int:
        """Place pods with affinity or spreading rules about each other; check all predicates again after each pod.

        The node of the first pod determines which nodes the other pods may use. With affinity, for example, the other
        pods may use only nodes of its domain. Therefore several nodes are tried for the first pod, and the node with
        which most pods can be placed is used.
        """
        columns = usual_order(self.session, cls, self.nodes, self._room(cls))
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
        """Place the first pod on the node `column`, and as many of the other pods as possible on allowed nodes.

        Return the number of placed pods, and a mask of the nodes that the other pods may use once the first pod is
        placed. With `whole`, stop as soon as some pods certainly do not fit, and return an upper bound of the number.
        """
        session, allocate = self.session, partial(self.statement.allocate, self.gang, self.pod_set.name, cls=cls)
        room = self.nodes.limit(session.room(cls), cls)
        best_first = usual_order(session, cls, self.nodes, room)
        allocate(ranks[:1], column)
        room[column] -= 1
        codes = session.codes(cls, self.gang)
        reach: Mask = codes == 0
        most = int(np.minimum(room[reach], len(ranks)).sum()) + 1
        reach[column] = True
        if whole and most < len(ranks) and not cls.neighbours.spreads:
            return most, reach  # all rules except spreading only become stricter with every pod
        for placed, rank in enumerate(ranks[1:], start=1):
            possible = (codes[best_first] == 0) & (room[best_first] > 0)
            first = int(possible.argmax()) if len(possible) else 0
            if not len(possible) or not possible[first]:
                return placed, reach
            allocate([rank], int(best_first[first]))
            room[best_first[first]] -= 1
            codes = session.codes(cls, self.gang)
        return len(ranks), reach

    def _room(self, cls: PodClass) -> Amounts:
        return self.nodes.limit(np.where(self.session.codes(cls, self.gang) == 0, self.session.room(cls), 0), cls)


def usual_order(session: Session, cls: PodClass, nodes: NodeSet, room: Amounts | None = None) -> Amounts:
    """Return the columns of nodes with free capacity, in the node set's own order or, without one, by score."""
    columns = nodes.order(session.snapshot.order)
    columns = columns if room is None else columns[room[columns] > 0]
    if nodes.ranked:
        return columns
    session.hooks.node_pre_order.call(cls, columns)
    scores = session.scores(cls)
    return columns[np.argsort(-scores[columns], kind="stable")] if isinstance(scores, np.ndarray) else columns


@dataclass(slots=True)
class PartSearch:
    """Search for the nodes of one gang's minimum."""

    session: Session
    statement: Statement
    gang: GangView
    fill: FillSlots
    failures: int = FAILURES

    def place(self, part: SlotGroup) -> bool:
        """Place the whole part on the statement; if it does not fit, place nothing and return False."""
        return self._place_all([(part, EVERYWHERE)])

    def _place_all(self, todo: Sequence[_Todo]) -> bool:
        if not todo:
            return True
        (part, nodes), *rest = todo

        def placed(subset: NodeSet) -> bool:
            if len(part.children) > RETRACED:
                return all(self._place_all([(child, subset)]) for child in part.children) and self._place_all(rest)
            if part.children:
                children = sorted(part.children, key=lambda child: child.wanted > 1)  # a single pod can use any node
                return self._place_all([*((child, subset) for child in children), *rest])
            return self._leaf(part, subset, rest)

        return self._first_of(self.session.hooks.subset_nodes.call(nodes, self.gang, part), placed)

    def _first_of(self, node_sets: Iterable[NodeSet], placed: Callable[[NodeSet], bool]) -> bool:
        """Place a part of the gang on the first node set that can hold it; return False after too many failures."""
        for nodes in node_sets:
            before = self.statement.checkpoint()
            if placed(nodes):
                return True
            self.statement.rollback(before)
            self.failures -= 1
            if self.failures <= 0:
                break
        return False

    def _leaf(self, part: SlotGroup, nodes: NodeSet, rest: Sequence[_Todo]) -> bool:
        """Place a part without children, then the remaining parts.

        If the remaining parts do not fit, place this part in ways that leave more capacity for the remaining parts.
        """
        before = self.statement.checkpoint()
        if self._usual(part, nodes) and self._place_all(rest):
            return True
        self.statement.rollback(before)
        pieces = [] if part.slices else _parts(self.gang, part)
        if not pieces or (len(pieces) == 1 and not rest):
            return False
        orders = (pieces, pieces[::-1]) if len(pieces) > 1 else (pieces,)
        return any(self._otherwise(each, nodes, rest) for each in orders)

    def _usual(self, part: SlotGroup, nodes: NodeSet) -> bool:
        if not part.slices:
            return self.fill(part.slots, nodes)
        if nodes.sliced:
            before = self.statement.checkpoint()
            if self.fill(part.slots, nodes):
                return True
            self.statement.rollback(before)
        return all(self._place_all([(unit, nodes)]) for unit in part.units())

    def _otherwise(self, pieces: Sequence[SlotGroup], nodes: NodeSet, rest: Sequence[_Todo]) -> bool:
        """Try alternative nodes for the first group of pods until the later groups and the remaining parts fit, too."""
        first, todo = pieces[0], [*((piece, nodes) for piece in pieces[1:]), *rest]
        ((name, ranks),) = first.slots.items()
        pod_set = next(each for each in self.gang.pod_sets if each.name == name)
        cls = pod_set.class_of(ranks[0])
        others = _others(self.gang, todo)
        nodes = replace(nodes, most=None)  # drops preferred limits; required slices have no alternatives
        if cls is None or others is None:
            return False
        usual = usual_order(self.session, cls, nodes)
        ways = OtherWays(self.session, self.gang, cls, len(ranks), nodes, others)
        return self._first_of(
            ways.all(usual, again=len(pieces) > 1), lambda way: self.fill(first.slots, way) and self._place_all(todo)
        )


def _parts(gang: GangView, part: SlotGroup) -> list[SlotGroup]:
    """Split a part without children into groups of one pod class, single pods first; return [] for too many groups."""
    found = []
    for pod_set in gang.pod_sets:
        for _, ranks in alike_runs(pod_set, part.slots.get(pod_set.name, ())):
            found.append(replace(part, slots={pod_set.name: ranks}, near=NOTHING, unit=False))
    known = sum(piece.wanted for piece in found) == part.wanted and len(found) <= RETRACED
    return sorted(found, key=lambda piece: piece.wanted > 1) if known else []


def _others(gang: GangView, todo: Sequence[_Todo]) -> list[Others] | None:
    """Return the pods that are not placed yet, grouped by class and node set; None if some pods are unknown."""
    found: dict[tuple[bytes, int], Others] = {}
    for part, nodes in todo:
        for pod_set in gang.pod_sets:
            ranks = part.slots.get(pod_set.name, ())
            alike = alike_runs(pod_set, ranks)
            if sum(len(each) for _, each in alike) < len(ranks):
                return None
            for cls, each in alike:
                known = found.get((cls.key, id(nodes)))
                found[cls.key, id(nodes)] = Others(cls, len(each) + (known.count if known else 0), nodes)
    return list(found.values())


def join(
    session: Session, gang: GangView, part: SlotGroup, nodes: NodeSet, fill: Callable[[SlotGroup, NodeSet], int]
) -> int:
    """Place optional pods next to the members of their part; return the number of placed pods.

    For each part without children, the function `fill` places as many pods as fit. The search ends at the first node
    set on which a pod fits. The members on this node set determine the order of node sets in the next search.
    """
    for subset in session.hooks.subset_nodes.call(nodes, gang, part):
        inner = part.children or (tuple(part.units()) if part.slices else ())
        for child in inner:
            if placed := join(session, gang, child, subset, fill):
                return placed
        if not inner and (placed := fill(part, subset)):
            return placed
    return 0
