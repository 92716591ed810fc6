"""A log of tentative allocations: all-or-nothing by rollback.

A gang is tried by giving its members places one after the other, and whether the last one finds a place is known only
at the end. Meanwhile everything that asks the session - room, predicates, scores - must see the members that have a
place already, or two would be given the same room. So a trial changes the session's own arrays, and the log says how to
undo it: entries are (column, amounts), amounts are integers, undoing an entry adds its amounts back, latest first. Any
sequence that is rolled back therefore leaves bit-identical arrays, and a trial costs what it touches, not a copy of the
cluster. Plugins that count by themselves (which pods are where) are told of each step, forwards and backwards.

`commit` hands the log over and forgets it, so that nothing can be undone afterwards; it does no more than that and
cannot fail half-way. After KAI-Scheduler's Statement (framework/statement.go), whose commit acts on the cluster and is
not atomic.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from extender.framework.session import Session
from extender.state.amounts import Amounts
from extender.state.gangs import GangView
from extender.state.podclass import PodClass


@dataclass(slots=True)
class Operation:
    """One entry of the log: the members with these ranks are on the node in `column`, and each takes `row`."""

    gang: GangView
    pod_set: str
    ranks: Sequence[int]
    column: int
    row: Amounts
    cls: PodClass

    @property
    def amount(self) -> Amounts:
        """What all its members take from the node, along the resource axis."""
        return self.row * len(self.ranks)


class Statement:
    """Tentative allocations on the arrays of one session."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._log: list[Operation] = []

    def allocate(self, gang: GangView, pod_set: str, ranks: Sequence[int], column: int, cls: PodClass) -> None:
        """Gives the members with these ranks a place on the node in `column`, which must have room."""
        operation = Operation(gang, pod_set, ranks, column, self._session.snapshot.row_of(cls), cls)
        self._session.snapshot.free[:, column] -= operation.amount
        self._log.append(operation)
        self._session.call_all("allocated", operation)

    @property
    def seats(self) -> int:
        """How many seats have been given a place."""
        return sum(len(operation.ranks) for operation in self._log)

    @property
    def operations(self) -> tuple[Operation, ...]:
        """What has been done and not undone, in order."""
        return tuple(self._log)

    def checkpoint(self) -> int:
        """A point to roll back to: a part of a trial can fail and be tried otherwise, without the rest of it."""
        return len(self._log)

    def rollback(self, checkpoint: int) -> None:
        """Undoes everything since the checkpoint, latest first."""
        while len(self._log) > checkpoint:
            operation = self._log.pop()
            self._session.snapshot.free[:, operation.column] += operation.amount
            self._session.call_all("deallocated", operation)

    def discard(self) -> None:
        """Undoes everything: the gang does not fit, and the session is as if it had never been tried."""
        self.rollback(0)

    def commit(self) -> list[Operation]:
        """Keeps everything for the rest of the cycle, and returns it; from here on nothing of it can be undone."""
        operations, self._log = self._log, []
        return operations
