"""Who may take from whom: KAI-Scheduler's rules of reclaiming (reclaimable/), and one that cannot go round in circles.

A reclaim is looked at chunk by chunk: pods that go together. Each chunk is judged by what the queue that loses it has
*before* it is gone, so that a whole gang may take its queue below its share. At the end the queues are compared.

KAI compares the queue that gains with those that lose, at every level (`strict`). That does not rule out that queues
take from each other in turns. Else a reclaim must lower what all queues of a level make up together: first the parts of
what they deserve that they lack, sorted from the largest down, then their saturations (allocated by fair), sorted so.
Every reclaim lowers that, and only new gangs or other shares raise it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import inf

import numpy as np

from extender.planner.fairshare.allocations import allocatable
from extender.planner.fairshare.tree import QueueTree, Shares
from extender.planner.state.amounts import Amounts


@dataclass(frozen=True, slots=True)
class Loss:
    """A chunk: the row of its queue, and what it frees; nothing if it is only moved."""

    row: int
    amounts: Amounts


@dataclass(slots=True)
class ReclaimRules:
    """What queues have before anything is taken; the arrays are of shape (queues, resources)."""

    tree: QueueTree
    fair: Shares
    allocated: Amounts
    fixed: Amounts
    multiplier: float = 1.0
    """How much less saturated the queue that gains must stay than those that lose; 1 or more."""

    def may_start(self, row: int, amounts: Amounts, *, fixed: bool) -> bool:
        """Whether the queue would stay within its fair share, and what may not be displaced within what it deserves."""
        asked = amounts > 0
        then = self.allocated[row] + amounts
        quota = np.where(self.tree.quoted, self.tree.deserved[row], 0.0)
        if bool((then > np.maximum(self.fair[row], quota))[asked].any()):
            return False
        return not fixed or bool((self.fixed[row] + amounts <= self.tree.quota[row])[asked].all())

    def validate(self, row: int, amounts: Amounts, losses: Sequence[Loss], *, fixed: bool, strict: bool) -> bool:
        """Whether the queue in `row` may have these amounts if these chunks go; `strict` is KAI's comparison."""
        after = self.allocated.copy()
        may = allocatable(self.tree, self.fair)
        for loss in losses:
            if not loss.amounts.any():
                continue
            if not self._may_lose(row, amounts, loss, after, may):
                return False
            for each in self.tree.chains[loss.row]:
                after[each] -= loss.amounts
        for each in self.tree.chains[row]:
            after[each] += amounts
        asked, chain = amounts > 0, self.tree.chains[row][:-1]
        if fixed and any(bool((self.fixed[each] + amounts > self.tree.quota[each])[asked].any()) for each in chain):
            return False
        involved = np.flatnonzero((amounts > 0) | np.any([loss.amounts > 0 for loss in losses], axis=0))
        touched = {loss.row for loss in losses if loss.amounts.any()}
        if not touched:
            return True
        if strict:
            return self._compared(row, touched, after, involved)
        return self._lowered(row, touched, after, involved)

    def _may_lose(self, row: int, amounts: Amounts, loss: Loss, left: Amounts, may: Shares) -> bool:
        """Whether the queue below the common ancestor has more than its share, or the other less than it deserves."""
        gains, loses = self.tree.fork(row, loss.row)
        if gains == loses:
            return False
        taken = loss.amounts > 0
        guarantee, chain = self.tree.guarantee, self.tree.chains[loss.row][:-1]
        if any(bool((left[each] - loss.amounts < guarantee[each])[taken].any()) for each in chain):
            return False
        if bool((left[loses] > may[loses])[taken].any()):
            return True
        quota = self.tree.quota
        counts = self.tree.quoted & (amounts > 0)
        owed = bool(counts.any()) and bool((self.allocated[gains] + amounts <= quota[gains])[counts].all())
        return owed and bool((left[loses] > quota[loses])[taken].any())

    def _levels(self, row: int, touched: Iterable[int]) -> list[tuple[int, int]]:
        """The queue that gains and the one that loses, right below each common ancestor."""
        return sorted({self.tree.fork(row, other) for other in touched})

    def _compared(self, row: int, touched: Iterable[int], after: Amounts, involved: Amounts) -> bool:
        for gains, loses in self._levels(row, touched):
            for resource in involved:
                gained = _saturation(after[gains, resource], self.fair[gains, resource])
                lost = _saturation(after[loses, resource], self.fair[loses, resource])
                if gained > 1 and self.fair[loses, resource] > 0 and gained * self.multiplier >= lost:
                    return False
        return True

    def _lowered(self, row: int, touched: Iterable[int], after: Amounts, involved: Amounts) -> bool:
        """Whether the sorted saturations come out smaller at every level at which somebody loses."""
        for gains, _ in self._levels(row, touched):
            rows = self.tree.children[self.tree.parent[gains]]
            if self._potential(after, rows, involved) >= self._potential(self.allocated, rows, involved):
                return False
        return True

    def _potential(self, allocated: Amounts, rows: Sequence[int], involved: Amounts) -> tuple[list[float], list[float]]:
        lacks = [
            max((_lack(allocated[each, r], self.tree.deserved[each, r]) for r in involved), default=0.0)
            for each in rows
        ]
        saturations = [
            max((_saturation(allocated[each, r], self.fair[each, r]) for r in involved), default=0.0) for each in rows
        ]
        return sorted(lacks, reverse=True), sorted(saturations, reverse=True)


def _lack(allocated: float, deserved: float) -> float:
    """The part of what a queue deserves that it does not have."""
    return max(0.0, 1.0 - float(allocated) / float(deserved)) if deserved > 0 else 0.0


def _saturation(allocated: float, fair: float) -> float:
    if fair == inf or not allocated:
        return 0.0
    return float(allocated) / float(fair) if fair > 0 else inf
