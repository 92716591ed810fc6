"""Places a gang part by part: each within nodes that plugins propose for it, the next ones if that fails.

As KAI-Scheduler does with the tree of sub-groups (allocateSubGroupSet). A gang that asks for no topology is one part,
and where no plugin has an opinion all nodes are one set.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from extender.planner.framework.nodeset import NodeSet
from extender.planner.framework.session import Session
from extender.planner.framework.statement import Statement
from extender.planner.state.gangs import GangView
from extender.planner.topology.requests import Part

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
        for subset in self.session.node_sets(nodes, self.gang, part):
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
    for subset in session.node_sets(nodes, gang, part):
        inner = part.children or (tuple(part.units()) if part.slices else ())
        for child in inner:
            if placed := join(session, gang, child, subset, fill):
                return placed
        if not inner and (placed := fill(part, subset)):
            return placed
    return 0
