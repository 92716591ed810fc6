"""A log of tentative allocations and evictions, which can be rolled back entirely.

A trial changes the session's own arrays, so that free capacity, predicates and scores take tentative members into
account. The log of a statement contains all data that is needed to undo the changes. All amounts are integers, so a
rollback restores the arrays exactly. The cost of a trial depends only on the number of its changes. Plugins that count
pods by node are notified of each step of a trial and of its rollback. During a trial, the capacity of its victims
counts as free; no pod is evicted before the trial is committed.

The class `Statement` follows KAI-Scheduler's Statement (framework/statement.go), but its `commit` only returns the log.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

import numpy as np

from extender.planner.framework.operations import Eviction, Operation
from extender.planner.framework.session import Session
from extender.planner.state.amounts import Amounts
from extender.planner.state.gangs import GangView
from extender.planner.state.podclass import PodClass
from extender.planner.state.pods import PodRecord
from muster.resources.gpus import GpuShare


class Statement:
    """Tentative allocations and evictions on the arrays of one session."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._log: list[Operation | Eviction] = []
        self._slots = 0

    def allocate(self, gang: GangView, pod_set: str, ranks: Sequence[int], column: int, cls: PodClass) -> None:
        """Give the members with these ranks slots on the node in `column`, which must have enough free capacity."""
        snapshot = self._session.snapshot
        row, devices = snapshot.row_of(cls), tuple[tuple[int, ...], ...]()
        if cls.gpu is not None:
            row, devices = snapshot.row_on(cls, column), self._share(cls, cls.gpu, column, len(ranks))
        operation = Operation(gang, pod_set, ranks, column, row, cls, devices)
        snapshot.free[:, column] -= operation.amount
        self._note(operation)

    def allocate_all(
        self, gang: GangView, pod_set: str, slots: Sequence[Sequence[int]], columns: Amounts, cls: PodClass
    ) -> None:
        """Give members slots on several nodes.

        `columns` lists each node once, and `slots` contains the ranks for each node.
        """
        if cls.gpu is not None:  # GPUs are chosen for each pod separately
            for ranks, column in zip(slots, columns.tolist(), strict=True):
                self.allocate(gang, pod_set, ranks, column, cls)
            return
        row = self._session.snapshot.row_of(cls)
        counts = np.array([len(ranks) for ranks in slots], dtype=np.int64)
        self._session.snapshot.free[:, columns] -= row[:, None] * counts
        for ranks, column in zip(slots, columns.tolist(), strict=True):
            self._note(Operation(gang, pod_set, ranks, column, row, cls))

    def repeat(self, operations: Iterable[Operation]) -> None:
        """Repeat the allocations of another statement on the same nodes and GPUs, even without free capacity."""
        for operation in operations:
            self._take(operation)
            self._note(operation)

    def _note(self, operation: Operation) -> None:
        self._slots += operation.size
        self._log.append(operation)
        self._count_operation(operation, 1)
        self._session.hooks.allocated.call(operation)

    def _take(self, entry: Operation | Eviction, sign: int = 1) -> None:
        """Take the resources and GPU fractions of an entry's pods from the node; with sign -1, return them."""
        snapshot, share = self._session.snapshot, entry.cls.gpu
        snapshot.free[:, entry.column] -= sign * entry.amount
        if share is not None:
            for devices in entry.devices:
                snapshot.devices.add_share(share, entry.column, devices, sign)

    def _share(self, cls: PodClass, share: GpuShare, column: int, pods: int) -> tuple[tuple[int, ...], ...]:
        """Choose the shared GPUs for this many pods, one pod after another."""
        snapshot, chosen = self._session.snapshot, list[tuple[int, ...]]()
        row = snapshot.row_on(cls, column)
        for number in range(pods):
            snapshot.free[:, column] -= number * row
            try:
                chosen.append(self._session.choose_devices(cls, share, column))
            finally:
                snapshot.free[:, column] += number * row
            snapshot.devices.add_share(share, column, chosen[-1])
        return tuple(chosen)

    def evict(self, gang: GangView, pods: Iterable[PodRecord]) -> None:
        """Count the resources of these pods of a gang as free in this session; skip pods on unknown nodes."""
        alike: dict[tuple[str, int, bool], list[PodRecord]] = {}
        for pod in pods:
            alike.setdefault((pod.node, id(pod.cls), pod.terminating), []).append(pod)
        snapshot = self._session.snapshot
        for (node, _, _), same in alike.items():
            column = snapshot.index.get(node)
            if column is None:
                continue
            cls = same[0].cls
            self._log_eviction(Eviction(gang, tuple(same), column, snapshot.row_on(cls, column), cls))

    def give_up(self, gang: GangView, node: str, count: int, cls: PodClass) -> None:
        """Count a gang's spare slots on a known node as free in this session.

        If the statement is committed, the gang loses these spare slots.
        """
        snapshot = self._session.snapshot
        column = snapshot.index[node]
        self._log_eviction(Eviction(gang, (), column, snapshot.row_of(cls), cls, count))

    def _log_eviction(self, eviction: Eviction) -> None:
        self._take(eviction, -1)
        self._log.append(eviction)
        self._count_operation(eviction, -1)
        self._session.hooks.evicted.call(eviction)

    @property
    def slots(self) -> int:
        """Number of slots that the statement has placed."""
        return self._slots

    @property
    def operations(self) -> tuple[Operation, ...]:
        """The allocations of the statement, in order."""
        return self.operations_since(0)

    def operations_since(self, checkpoint: int) -> tuple[Operation, ...]:
        """Return the allocations since the checkpoint, in order."""
        return tuple(entry for entry in self._log[checkpoint:] if isinstance(entry, Operation))

    @property
    def evictions(self) -> tuple[Eviction, ...]:
        """The evictions of the statement, in order."""
        return tuple(entry for entry in self._log if isinstance(entry, Eviction))

    def checkpoint(self) -> int:
        """Return a checkpoint for `rollback`."""
        return len(self._log)

    def rollback(self, checkpoint: int) -> None:
        """Undo all changes since the checkpoint, the latest change first."""
        while len(self._log) > checkpoint:
            self._undo(self._log.pop())

    def _undo(self, entry: Operation | Eviction) -> None:
        if isinstance(entry, Eviction):
            self._take(entry)
            self._count_operation(entry, 1)
            self._session.hooks.unevicted.call(entry)
        else:
            self._take(entry, -1)
            self._slots -= entry.size
            self._count_operation(entry, -1)
            self._session.hooks.deallocated.call(entry)

    def _count_operation(self, entry: Operation | Eviction, sign: int) -> None:
        """Count an operation's users of claims directly, without a hook.

        Few pods name claims, and a hook for claims would slow down every step of a trial.
        """
        if entry.cls.needs.named:
            self._session.claims.count(entry, sign)

    def keep(self, pods: Iterable[PodRecord]) -> None:
        """Undo the evictions of these pods, each of which has its own log entry. Earlier checkpoints become invalid."""
        uids = {pod.uid for pod in pods}
        back = [entry for entry in self.evictions if entry.pods and entry.pods[0].uid in uids]
        gone = set(map(id, back))
        self._log = [entry for entry in self._log if id(entry) not in gone]
        for entry in reversed(back):
            self._undo(entry)

    def discard(self) -> None:
        """Undo all changes of the statement."""
        self.rollback(0)

    def commit(self) -> list[Operation]:
        """Make all changes permanent for the rest of the cycle, and return the allocations."""
        operations, self._log, self._slots = list(self.operations), [], 0
        return operations

    def commit_victims(self) -> list[Operation]:
        """Make all changes permanent, but count the capacity of evicted pods as used, because the pods still exist.

        Plugins no longer count the evicted pods.
        """
        for eviction in self.evictions:
            if eviction.pods:  # evictions without pods concern spare slots, which are now free
                self._take(eviction)
                self._session.claims.use(eviction.cls, eviction.size)
        return self.commit()


@contextmanager
def undone(statement: Statement) -> Iterator[None]:
    """Undo the statement if the `with` block raises an exception."""
    try:
        yield
    except Exception:
        statement.discard()
        raise


@contextmanager
def counted_free(session: Session, amounts: Sequence[tuple[int, Amounts]]) -> Iterator[None]:
    """Within the `with` block, count these amounts as free on their nodes; negative amounts count as used."""
    free = session.snapshot.free
    for column, row in amounts:
        free[:, column] += row
    try:
        yield
    finally:
        for column, row in amounts:
            free[:, column] -= row
