"""Numbers of pods per node and mark; a mark is a pod selector, an affinity or spread rule, or a host port."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from extender.planner.state.amounts import widened
from extender.planner.state.queries import Mark

Counts = NDArray[np.int32]


@dataclass(slots=True)
class _Tally:
    counts: Counts
    total: int = 0
    shared: bool = False


class PodCounts:
    """Number of pods with each mark per node, int32 of shape (nodes,); shared arrays are copied before a change."""

    def __init__(self) -> None:
        self._size = 0
        self._tallies: dict[Mark, _Tally] = {}

    def grow(self, size: int) -> None:
        """Grow all arrays to this number of nodes."""
        for tally in self._tallies.values():
            tally.counts = widened(tally.counts, size - self._size)
            tally.shared = False
        self._size = size

    def add(self, marks: Iterable[Mark], column: int, pods: int) -> None:
        """Add pods with these marks on the node in `column`; a negative number subtracts pods."""
        for mark in marks:
            tally = self._tallies.get(mark)
            if tally is None:
                tally = self._tallies[mark] = _Tally(np.zeros(self._size, dtype=np.int32))
            elif tally.shared:
                tally.counts, tally.shared = tally.counts.copy(), False
            tally.counts[column] += pods
            tally.total += pods
            if not tally.total:
                del self._tallies[mark]

    def share(self) -> dict[Mark, Counts]:
        """Return the current counts, which callers must not change; later changes are made to copies."""
        for tally in self._tallies.values():
            tally.shared = True
        return {mark: tally.counts for mark, tally in self._tallies.items()}
