"""Rules by which a queue may reclaim resources from other queues.

The rules follow KAI-Scheduler (reclaimable/), and add a comparison that prevents endless cycles. A reclaim is checked
for each chunk (pods that are evicted together). The check uses the losing queue's allocation *before* the eviction of
the chunk. The eviction of a whole gang may therefore take the losing queue below its share. After these checks, the
allocations that the queues would have after the reclaim are compared.

KAI-Scheduler compares the gaining queue with the losing queues at every level of the tree (`strict`). With
KAI-Scheduler's comparison, two queues can reclaim from each other endlessly. Therefore, by default, a reclaim is
accepted in only one of two cases:

* The gaining queue ends with at most what it deserves, at each level: the resources are `owed` to the queue. Evicting a
  whole gang may take the losing queue below what it deserves.
* The potential of each level decreases. The potential is a list of numbers; two potentials are compared number by
  number from the start. The missing fractions of deserved resources come first, then the saturations (allocation
  divided by fair share). Both parts of the list are sorted, the largest number first.

Queues that reclaim in only these two cases never reclaim from each other endlessly. The losing queue has more than its
share or, if the resources are owed to the gaining queue, more than it deserves. Let A be the total amount by which
queues exceed their shares, and D the total amount by which queues exceed what they deserve. As long as shares and gangs
stay the same, no reclaim increases A, and each reclaim of resources that are not owed decreases A. Between two reclaims
that decrease A, each reclaim of owed resources decreases D. Only new gangs or changed shares increase A or D.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import inf

import numpy as np

from extender.planner.fairshare.tree import QueueTree, Shares
from extender.planner.state.amounts import Amounts


@dataclass(frozen=True, slots=True)
class Loss:
    """A queue's loss by one eviction: the queue's row, and the freed resources, or 0 if the pods are only moved."""

    row: int
    amounts: Amounts


@dataclass(slots=True)
class ReclaimRules:
    """The rules for reclaim, and the state of queues before a reclaim in arrays of shape (queues, resources)."""

    tree: QueueTree
    fair: Shares
    allocated: Amounts
    fixed: Amounts
    multiplier: float = 1.0
    """Factor by which the gaining queue must stay less saturated than the losing queues; at least 1."""

    @property
    def allocatable(self) -> Shares:
        """Resources for which each queue has precedence: its fair share or, if larger, its quota, within its limit."""
        return np.minimum(self.tree.limit, np.maximum(self.tree.deserved, self.fair))

    def may_start(self, row: int, amounts: Amounts, *, fixed: bool) -> bool:
        """Return True if the queue stays within its fair share, and its non-preemptable gangs within its quota."""
        asked = amounts > 0
        then = self.allocated[row] + amounts
        quota = np.where(self.tree.quoted, self.tree.deserved[row], 0.0)
        if bool((then > np.maximum(self.fair[row], quota))[asked].any()):
            return False
        return not fixed or bool((self.fixed[row] + amounts <= self.tree.quota[row])[asked].all())

    def validate(self, row: int, amounts: Amounts, losses: Sequence[Loss], *, fixed: bool, strict: bool) -> bool:
        """Return True if the queue in `row` may gain these resources from the given losses of other queues.

        `strict` selects KAI-Scheduler's comparison of the gaining queue with the losing queues.
        """
        after = self.allocated.copy()
        may = self.allocatable
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
        owed = all(self.owed(gains, amounts) for gains, _ in self._levels(row, touched))
        return owed or self._lowered(row, touched, after, involved)

    def owed(self, row: int, amounts: Amounts) -> bool:
        """Return True if the queue would still have at most what it deserves with these additional resources."""
        counts = self.tree.quoted & (amounts > 0)
        return bool(counts.any()) and bool((self.allocated[row] + amounts <= self.tree.quota[row])[counts].all())

    def above(self, row: int, amounts: Amounts) -> list[int]:
        """Return the queues that use more than they may keep if the queue in `row` reclaims these resources."""
        may, asked, found = self.allocatable, amounts > 0, list[int]()
        for other in range(1, len(self.tree.names)):
            gains, loses = self.tree.fork(row, other)
            most = np.minimum(may, self.tree.quota)[loses] if self.owed(gains, amounts) else may[loses]
            if gains != loses and bool((self.allocated[loses] > most)[asked].any()):
                found.append(other)
        return found

    def _may_lose(self, row: int, amounts: Amounts, loss: Loss, left: Amounts, may: Shares) -> bool:
        """Return True if the losing queue may lose resources to the gaining queue.

        The losing queue must keep its guarantee. The losing queue must also exceed its share or, if the resources are
        owed to the gaining queue, its quota.
        """
        gains, loses = self.tree.fork(row, loss.row)
        if gains == loses:
            return False
        taken = loss.amounts > 0
        guarantee, chain = self.tree.guarantee, self.tree.chains[loss.row][:-1]
        if any(bool((left[each] - loss.amounts < guarantee[each])[taken].any()) for each in chain):
            return False
        if bool((left[loses] > may[loses])[taken].any()):
            return True
        return self.owed(gains, amounts) and bool((left[loses] > self.tree.quota[loses])[taken].any())

    def _levels(self, row: int, touched: Iterable[int]) -> list[tuple[int, int]]:
        """Return pairs of a gaining and a losing queue, both directly below a common ancestor."""
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
        """Return True if the potential falls at every level at which a queue loses."""
        for gains, _ in self._levels(row, touched):
            rows = self.tree.children[self.tree.parent[gains]]
            if self._potential(after, rows, involved) >= self._potential(self.allocated, rows, involved):
                return False
        return True

    def _potential(self, allocated: Amounts, rows: Sequence[int], involved: Amounts) -> tuple[list[float], list[float]]:
        def worst(measure: Callable[[float, float], float], due: Shares) -> list[float]:
            by_queue = [
                max((measure(allocated[each, r], due[each, r]) for r in involved), default=0.0) for each in rows
            ]
            return sorted(by_queue, reverse=True)

        return worst(_lack, self.tree.deserved), worst(_saturation, self.fair)


def _lack(allocated: float, deserved: float) -> float:
    return max(0.0, 1.0 - float(allocated) / float(deserved)) if deserved > 0 else 0.0


def _saturation(allocated: float, fair: float) -> float:
    if fair == inf or not allocated:
        return 0.0
    return float(allocated) / float(fair) if fair > 0 else inf
