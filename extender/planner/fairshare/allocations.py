"""What every queue of a tree uses and waits for, each with all that is below it; changed as a cycle places and evicts.

`allocated` is what counts for shares: pods that are being deleted are not in it any more, while `used`, which counts
for limits, has them until they are gone. `committed` is what cannot be given to anybody else: used or guaranteed.
"""

from dataclasses import dataclass, field

import numpy as np

from extender.planner.fairshare.tree import QueueTree, Shares
from extender.planner.state.amounts import MAX_SUM, Amounts


@dataclass(slots=True)
class Allocations:
    """Arrays of shape (queues, resources), int64."""

    tree: QueueTree
    total: Amounts
    """What there is for all queues, shape (resources,)."""
    used: Amounts
    allocated: Amounts
    fixed: Amounts
    """The part of `allocated` that gangs use which may not be displaced."""
    request: Amounts
    """What is allocated and waited for."""
    committed: Amounts = field(init=False)
    versions: list[int] = field(init=False)
    """Grows for a queue whenever what it uses changes."""

    def __post_init__(self) -> None:
        for table in (self.used, self.allocated, self.fixed, self.request):
            _sum_up(self.tree, table)
        self.versions = [0] * len(self.tree.names)
        self.committed = np.zeros_like(self.used)
        direct = self.used.copy()
        for row in range(len(self.tree.names) - 1, -1, -1):
            above = self.tree.parent[row]
            self.committed[row] = np.maximum(self.committed[row] + direct[row], self.tree.guarantee[row])
            if above >= 0:
                self.committed[above] += self.committed[row]
                direct[above] -= self.used[row]

    @classmethod
    def empty(cls, tree: QueueTree, total: Amounts) -> "Allocations":
        """Nobody uses anything."""
        zeros = [np.zeros((len(tree.names), len(total)), dtype=np.int64) for _ in range(4)]
        return cls(tree, total, *zeros)

    def place(self, row: int, amounts: Amounts, sign: int = 1, *, fixed: bool = False) -> None:
        """A queue gets these amounts (with sign -1: gives them back), and so do all above it."""
        for each in self.tree.chains[row]:
            self.used[each] += sign * amounts
            self.allocated[each] += sign * amounts
            if fixed:
                self.fixed[each] += sign * amounts
            self.versions[each] += 1
        if self.tree.guaranteed:
            for each in self.tree.chains[row]:
                self.committed[each] = np.maximum(self._inside(each), self.tree.guarantee[each])
        else:
            self.committed[list(self.tree.chains[row])] += sign * amounts

    def growth(self, row: int, amounts: Amounts) -> list[tuple[int, Amounts]]:
        """By how much what is committed would grow at each queue from `row` upwards, if it got these amounts."""
        result = []
        delta = amounts
        for each in self.tree.chains[row]:
            inside = self._inside(each)
            delta = np.maximum(inside + delta, self.tree.guarantee[each]) - self.committed[each]
            result.append((each, delta))
            if not delta.any():
                break
        return result

    def _inside(self, row: int) -> Amounts:
        """What is committed to those below a queue, and what its own pods use."""
        children = list(self.tree.children[row])
        if not children:
            own: Amounts = self.used[row].copy()
            return own
        own = self.used[row] - self.used[children].sum(axis=0)
        inside: Amounts = own + self.committed[children].sum(axis=0)
        return inside


def _sum_up(tree: QueueTree, table: Amounts) -> None:
    """Adds to every queue what those below it have."""
    for row in range(len(tree.names) - 1, 0, -1):
        above = tree.parent[row]
        table[above] = np.minimum(table[above] + table[row], MAX_SUM)


def allocatable(tree: QueueTree, fair: Shares) -> Shares:
    """What a queue may have before others come first: its fair share or quota, within its limit."""
    share: Shares = np.minimum(tree.limit, np.maximum(tree.deserved, fair))
    return share
