"""A log of tentative decisions: all-or-nothing by rollback.

The log's entries are (columns, amounts): undoing one adds the amounts back, so that any sequence that is rolled back
leaves bit-identical arrays. Only `commit` lets a decision out of the session. After KAI-Scheduler's Statement
(framework/statement.go), whose commit is not atomic; here it only hands decisions over, so it cannot fail half-way.
"""

from dataclasses import dataclass
from typing import Literal

from extender.framework.session import Session
from extender.state.gangs import GangView
from extender.state.nodes import Amounts
from extender.state.podclass import PodClass


@dataclass(slots=True)
class Operation:
    """One entry of the log; `row` is what one member takes, `count` members are on `column`."""

    kind: Literal["allocate", "pipeline", "evict"]
    gang: GangView
    pod_set: str
    ranks: list[int]
    column: int
    row: Amounts
    cls: PodClass

    @property
    def amount(self) -> Amounts:
        """What the operation takes from the node; negative where it gives."""
        taken = self.row * len(self.ranks)
        return -taken if self.kind == "evict" else taken


class Statement:
    """Tentative operations on the arrays of one session."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._log: list[Operation] = []

    def allocate(self, gang: GangView, pod_set: str, ranks: list[int], column: int, cls: PodClass) -> None:
        """Give the members with these ranks a place on the node in `column`, which must have room."""
        self._do(Operation("allocate", gang, pod_set, ranks, column, self._session.snapshot.row_of(cls), cls))

    def pipeline(self, gang: GangView, pod_set: str, ranks: list[int], column: int, cls: PodClass) -> None:
        """Claim room that is still being freed: as allocate, but nothing is bound in this cycle."""
        self._do(Operation("pipeline", gang, pod_set, ranks, column, self._session.snapshot.row_of(cls), cls))

    def evict(self, gang: GangView, pod_set: str, ranks: list[int], column: int, cls: PodClass) -> None:
        """Take these members off their node."""
        self._do(Operation("evict", gang, pod_set, ranks, column, self._session.snapshot.row_of(cls), cls))

    @property
    def operations(self) -> tuple[Operation, ...]:
        """What has been done and not undone, in order."""
        return tuple(self._log)

    def checkpoint(self) -> int:
        """A point to roll back to."""
        return len(self._log)

    def rollback(self, checkpoint: int) -> None:
        """Undo everything since the checkpoint, latest first."""
        while len(self._log) > checkpoint:
            operation = self._log.pop()
            self._session.snapshot.free[:, operation.column] += operation.amount
            self._session.call_all("deallocated", operation)

    def discard(self) -> None:
        """Undo everything."""
        self.rollback(0)

    def commit(self) -> list[Operation]:
        """Keep everything: the operations leave the session and the log is empty."""
        operations, self._log = self._log, []
        self._session.committed += operations
        return operations

    def _do(self, operation: Operation) -> None:
        self._session.snapshot.free[:, operation.column] -= operation.amount
        self._log.append(operation)
        self._session.call_all("allocated", operation)
