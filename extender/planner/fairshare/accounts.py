"""Makes the allocations of a snapshot, at the cost of what changed since the last one.

What a gang waits for is known from its view, which is another object once anything of the gang has changed.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from extender.planner.fairshare.allocations import Allocations
from extender.planner.fairshare.tree import QueueTree, Shares, tree_of
from extender.planner.framework.demand import amounts_of
from extender.planner.framework.snapshot import Snapshot
from extender.planner.state.amounts import MAX_SUM, Amounts, sum_along
from extender.planner.state.gangs import GangView
from muster.api.kubernetes.core import Node
from muster.api.volcano.scheduling import Queue

_LOST = frozenset({"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"})


@dataclass(slots=True)
class _Waiting:
    """What one gang waits for, as it was seen last."""

    view: GangView
    queue: str
    amounts: Shares
    """As floats, since sums over all gangs may leave 64 bits."""


class Accounts:
    """Keeps, from one snapshot to the next, the tree, the usable nodes, and what every queue waits for."""

    def __init__(self) -> None:
        self._tree: QueueTree | None = None
        self._specs: dict[str, object] = {}
        self._axis: Mapping[str, int] | None = None
        self._waiting: dict[str, _Waiting] = {}
        self._sums: dict[str, Shares] = {}
        self._usable: tuple[int, Amounts] | None = None
        """Generation of the nodes, and what those of them have together that pods can be placed on."""

    def allocations(self, snapshot: Snapshot) -> Allocations:
        """The queues of a snapshot, with what they use and wait for."""
        resources = snapshot.free.shape[0]
        if self._axis is None or self._axis != snapshot.axis or any(len(s) != resources for s in self._sums.values()):
            self._axis, self._tree, self._usable = snapshot.axis, None, None
            self._waiting, self._sums = {}, {}
        tree = self._tree_of(snapshot.queues, snapshot.axis, resources)
        tables = [np.zeros((len(tree.names), resources), dtype=np.int64) for _ in range(4)]
        used, allocated, fixed, request = tables
        for name, use in snapshot.queue_use.items():
            row = tree.row(name)
            allocated[row] += sum_along(snapshot.axis, resources, use.staying)
            used[row] += sum_along(snapshot.axis, resources, use.leaving)
        used += allocated
        self._follow(snapshot)
        for gang in snapshot.gangs:
            if not gang.preemptable and gang.key in snapshot.gang_use:
                fixed[tree.row(gang.queue)] += snapshot.used_by(gang)
        for name, waiting in self._sums.items():
            row = tree.row(name)
            request[row] = np.minimum(request[row] + np.clip(waiting, 0, MAX_SUM).astype(np.int64), MAX_SUM)
        request = np.minimum(request + allocated, MAX_SUM)
        of_others = (snapshot.allocatable - snapshot.free).sum(axis=1) - used.sum(axis=0)
        total = np.maximum(self._total(snapshot) - np.maximum(of_others, 0), 0)
        return Allocations(tree, total, used, allocated, fixed, request)

    def _tree_of(self, queues: Mapping[str, Queue], axis: Mapping[str, int], resources: int) -> QueueTree:
        specs = {name: (queue.metadata.creation_timestamp, queue.spec) for name, queue in queues.items()}
        if self._tree is None or specs != self._specs:
            self._tree, self._specs = tree_of(queues, axis, resources), dict(specs)
        return self._tree

    def _follow(self, snapshot: Snapshot) -> None:
        """Adds up anew what gangs wait for that changed."""
        before, self._waiting = self._waiting, {}
        for gang in snapshot.gangs:
            known = before.pop(gang.key, None)
            if known is None or known.view is not gang:
                if known is not None:
                    self._sums[known.queue] -= known.amounts
                known = _Waiting(gang, gang.queue, _waits_for(snapshot, gang))
                known_sum = self._sums.get(known.queue)
                self._sums[known.queue] = known.amounts + (0 if known_sum is None else known_sum)
            self._waiting[gang.key] = known
        for gone in before.values():
            self._sums[gone.queue] -= gone.amounts

    def _total(self, snapshot: Snapshot) -> Amounts:
        if self._usable is None or self._usable[0] != snapshot.generation:
            usable = np.fromiter((_usable(node) for node in snapshot.nodes), dtype=np.bool_, count=len(snapshot.nodes))
            self._usable = snapshot.generation, snapshot.allocatable[:, : len(usable)][:, usable].sum(axis=1)
        return self._usable[1]


def _usable(node: Node | None) -> bool:
    """Whether pods can be placed on it, as far as the node alone says for all of them."""
    return node is not None and not node.spec.unschedulable and not any(t.key in _LOST for t in node.spec.taints)


def _waits_for(snapshot: Snapshot, gang: GangView) -> Shares:
    """What its pods would take that have no place yet; placed slots are used already."""
    if gang.active or gang.group.status.phase == "Completed":
        return np.zeros(snapshot.free.shape[0], dtype=np.float64)
    slots = {name: len(ranks) for name, ranks in gang.open_slots().items()}
    return amounts_of(snapshot, gang, slots).astype(np.float64)
