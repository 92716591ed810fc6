"""Resources that each queue and its descendants use and wait for; the decisions of a cycle update them.

`allocated` is compared with shares, and excludes pods that are being deleted. `used` is compared with limits, and
includes pods that are being deleted until they are gone. `committed` is the larger of a queue's usage and guarantee;
other queues cannot get this amount.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from extender.planner.ask import amounts_of_claims, amounts_of_members, named_claims
from extender.planner.dynamic.needs import SharedClaim
from extender.planner.fairshare.tree import QueueTree, Shares, Sharing, above, count_once, sharing_of, tree_of
from extender.planner.framework.snapshot import Snapshot
from extender.planner.state.amounts import MAX_SUM, Amounts, sum_along, widened
from extender.planner.state.gangs import GangView
from muster.api.kubernetes.core import Node
from muster.api.muster.placement import own_victims
from muster.api.names import QUEUE_WEIGHTS


@dataclass(slots=True)
class Allocations:
    """The usage and requests of all queues, as int64 arrays of shape (queues, resources)."""

    tree: QueueTree
    total: Amounts
    """Total capacity of the nodes that are not cordoned, not ready or unreachable, int64 of shape (resources,)."""
    used: Amounts
    allocated: Amounts
    fixed: Amounts
    """The part of `allocated` that is used by gangs that cannot be evicted (`state.guards`)."""
    request: Amounts
    left: frozenset[tuple[str, str]] = frozenset()
    """Pairs of a claim and a queue, if all pods of the queue that use the claim are to be evicted."""
    committed: Amounts = field(init=False)
    versions: list[int] = field(init=False)
    """A version number for each queue, which grows with every change of the queue's resources."""

    def __post_init__(self) -> None:
        for table in (self.used, self.allocated, self.fixed, self.request):
            _sum_up(self.tree, table)
        self.versions = [0] * len(self.tree.names)
        self.committed = np.zeros_like(self.used)
        direct = self.used.copy()
        for row in range(len(self.tree.names) - 1, -1, -1):
            parent = self.tree.parent[row]
            self.committed[row] = np.maximum(self.committed[row] + direct[row], self.tree.guarantee[row])
            if parent >= 0:
                self.committed[parent] += self.committed[row]
                direct[parent] -= self.used[row]

    def place(
        self, row: int, amounts: Amounts, sign: int = 1, *, fixed: bool = False, others: Sharing | None = None
    ) -> None:
        """Add these resources to a queue and all queues above it; with sign -1, subtract them.

        With `others`, the amounts are the devices of a claim that the queues `others` also use. The devices are not
        added to common ancestors of these queues again, because the ancestors already include them.
        """
        chain = self._chain(row, others and others.used)
        for each in chain:
            self.used[each] += sign * amounts
        for each in self._chain(row, others and others.allocated):
            self.allocated[each] += sign * amounts
            self.versions[each] += 1
        for each in self._chain(row, others and others.fixed) if fixed else ():
            self.fixed[each] += sign * amounts
        if self.tree.guaranteed:
            for each in self.tree.chains[row]:
                self.committed[each] = np.maximum(self._inside(each), self.tree.guarantee[each])
        else:
            self.committed[list(chain)] += sign * amounts

    def _chain(self, row: int, others: Sequence[int] | None) -> Sequence[int]:
        if not others:
            return self.tree.chains[row]
        known = above(self.tree, others)
        return [each for each in self.tree.chains[row] if each not in known]

    def growth(self, row: int, amounts: Amounts, new: Iterable[Sharing] = ()) -> list[tuple[int, Amounts]]:
        """Return how much `committed` would grow, in the queue in `row` and each queue above, with these resources.

        The resources include the devices of `new` claims, which other queues may already use.
        """
        result = []
        delta, chains = amounts, [(sharing.devices, self._chain(row, sharing.used)) for sharing in new]
        for below, each in enumerate(self.tree.chains[row]):
            for devices in (devices for devices, chain in chains if len(chain) == below):
                delta = delta - devices
            inside = self._inside(each)
            delta = np.maximum(inside + delta, self.tree.guarantee[each]) - self.committed[each]
            result.append((each, delta))
            if not delta.any():
                break
        return result

    def _inside(self, row: int) -> Amounts:
        """Return the sum of the children's committed amounts and the usage of the queue's own pods."""
        children = list(self.tree.children[row])
        inside: Amounts = self.used[row] - self.used[children].sum(axis=0) + self.committed[children].sum(axis=0)
        return inside


def _sum_up(tree: QueueTree, table: Amounts) -> None:
    """Add to every queue's values the values of all its descendants."""
    for row in range(len(tree.names) - 1, 0, -1):
        parent = tree.parent[row]
        table[parent] = np.minimum(table[parent] + table[row], MAX_SUM)


_LOST = frozenset({"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"})


@dataclass(slots=True)
class _Waiting:
    """The resources for which one gang was waiting in the last snapshot."""

    view: GangView
    queue: str
    amounts: Shares
    """The gang's requests, as floats because the sum over all gangs may exceed 64 bits."""
    barred: bool
    """True if the gang's queue excludes the gang's namespace, so that the gang's demand does not count."""


def _awaited(snapshot: Snapshot, tree: QueueTree) -> tuple[list[tuple[int, Amounts]], set[tuple[str, str]]]:
    """Return the resources of pods that are to be evicted, each with the row of the pods' queue.

    The second result contains a pair of a claim and a queue if all of the queue's pods with this claim are to be
    evicted. Moved members are left out, because their new slots count for the queue after the eviction.
    """
    if not snapshot.awaited:
        return [], set()
    queues = {
        gang.key: gang.queue
        for gang in snapshot.gangs
        if not (gang.active and gang.placement is not None and own_victims(gang.placement))
    }
    found, left, users = list[tuple[int, Amounts]](), set[tuple[str, str]](), Counter[tuple[SharedClaim, str]]()
    for pod in snapshot.awaited.values():
        if pod.gang in queues and (column := snapshot.index.get(pod.node)) is not None:
            found.append((tree.row(queues[pod.gang]), snapshot.charged_on(pod.cls, column)))
            users.update((claim, queues[pod.gang]) for claim in pod.cls.needs.named)
    awaited = set(users)
    for pod in snapshot.leaving.values():
        if pod.gang in queues and pod.uid not in snapshot.awaited:
            users.update((claim, queues[pod.gang]) for claim in pod.cls.needs.named)
    for (claim, queue), pods in ((each, users[each]) for each in awaited):
        if pods == snapshot.claim_queues.get(claim.key, {}).get(queue):
            found.append((tree.row(queue), amounts_of_claims(snapshot, [claim])))
            left.add((claim.key, queue))
    return found, left


def _add_left_behind(snapshot: Snapshot, tree: QueueTree, fixed: Amounts) -> None:
    """Add the usage of gangs whose PodGroup has been deleted to the usage of their queues.

    The usage counts as fixed, because Muster cannot evict the pods of gangs without a PodGroup.
    """
    for key, queue in snapshot.left_behind.items():
        if (use := snapshot.gang_use.get(key)) is not None:
            fixed[tree.row(queue)] += sum_along(snapshot.axis, fixed.shape[1], use.staying)


_SUMS = 10
"""Number of sums that are cached in addition to one per existing queue; they may belong to deleted queues."""


class Accounts:
    """Computation of the allocations of snapshots, at a cost proportional to the number of changed gangs."""

    def __init__(self) -> None:
        self._tree: QueueTree | None = None
        self._specs: Mapping[str, object] = {}
        self._axis: Mapping[str, int] | None = None
        self._waiting: dict[str, _Waiting] = {}
        self._sums: dict[str, Shares] = {}
        self._usable: tuple[int, NDArray[np.bool_]] = (0, np.zeros(0, dtype=np.bool_))
        """Generation of the nodes, and the mask of usable nodes. Only nodes that have changed are checked again."""

    def allocations(self, snapshot: Snapshot) -> Allocations:
        """Return the allocations of a snapshot."""
        resources = snapshot.free.shape[0]
        if self._axis is None or self._axis != snapshot.axis or any(len(s) != resources for s in self._sums.values()):
            self._axis, self._tree = snapshot.axis, None
            self._waiting, self._sums = {}, {}
        specs = {
            name: (queue.metadata.creation_timestamp, queue.metadata.annotations.get(QUEUE_WEIGHTS), queue.spec)
            for name, queue in snapshot.queues.items()
        }
        if self._tree is None or specs != self._specs:
            self._tree, self._specs = tree_of(snapshot.queues, snapshot.axis, resources), specs
        tree = self._tree
        tables = [np.zeros((len(tree.names), resources), dtype=np.int64) for _ in range(4)]
        used, allocated, fixed, request = tables
        for name, use in snapshot.queue_use.items():
            row = tree.row(name)
            allocated[row] += sum_along(snapshot.axis, resources, use.staying)
            used[row] += sum_along(snapshot.axis, resources, use.leaving)
        used += allocated
        awaited, left = _awaited(snapshot, tree)
        for row, amounts in awaited:
            allocated[row] -= amounts
        self._follow(snapshot)
        using = (gang for gang in snapshot.gangs if gang.key in snapshot.gang_use)
        held = {gang.key: gang for gang in using if not snapshot.guards.can_be_taken_back(gang)}
        for gang in held.values():
            fixed[tree.row(gang.queue)] += snapshot.used_by(gang)
        _add_left_behind(snapshot, tree, fixed)
        for claim in snapshot.limited.claims.several:
            uses = snapshot.limited.claims.uses[claim]
            devices = sum_along(snapshot.axis, resources, snapshot.limited.claims.devices(claim))
            sharing = sharing_of(tree, claim, uses, devices, left, held.keys() | snapshot.left_behind.keys())
            for table, rows in ((used, sharing.used), (allocated, sharing.allocated), (fixed, sharing.fixed)):
                count_once(tree, table, devices, rows)
        for name, waiting in self._sums.items():
            row = tree.row(name)
            request[row] = np.minimum(request[row] + np.clip(waiting, 0, MAX_SUM).astype(np.int64), MAX_SUM)
        for name, asked in snapshot.queue_asked.items():
            row = tree.row(name)
            request[row] = np.minimum(request[row] + sum_along(snapshot.axis, resources, asked), MAX_SUM)
        request = np.minimum(request + allocated, MAX_SUM)
        taken = np.minimum(snapshot.allocatable - snapshot.free, snapshot.chargeable)
        of_others = taken.sum(axis=1) - used.sum(axis=0)
        total = np.maximum(self._total(snapshot) - np.maximum(of_others, 0), 0)
        return Allocations(tree, total, used, allocated, fixed, request, frozenset(left))

    def _follow(self, snapshot: Snapshot) -> None:
        before, self._waiting = self._waiting, {}
        for gang in snapshot.gangs:
            known = before.pop(gang.key, None)
            barred = gang.key in snapshot.barred
            if known is None or known.view is not gang or known.barred is not barred:
                if known is not None:
                    self._sums[known.queue] -= known.amounts
                known = _Waiting(gang, gang.queue, _waits_for(snapshot, gang), barred)
                self._sums[known.queue] = self._sums.get(known.queue, 0) + known.amounts
            self._waiting[gang.key] = known
        for gone in before.values():
            self._sums[gone.queue] -= gone.amounts
        if len(self._sums) > 2 * len(snapshot.queues) + _SUMS:  # users may name any queue
            there = {each.queue for each in self._waiting.values()}
            self._sums = {queue: amounts for queue, amounts in self._sums.items() if queue in there}

    def _total(self, snapshot: Snapshot) -> Amounts:
        generation, known = self._usable
        if generation > snapshot.generation:  # the snapshot is of another cluster
            generation, known = 0, known[:0]
        if generation != snapshot.generation:
            known = widened(known, len(snapshot.nodes) - len(known))
            for column in np.flatnonzero(snapshot.changed[: len(known)] > generation):
                known[column] = _usable(snapshot.nodes[column])
            self._usable = snapshot.generation, known
        return np.asarray(snapshot.allocatable[:, : len(known)][:, known].sum(axis=1))


def _usable(node: Node | None) -> bool:
    """Return True if the node is not cordoned, and has no taint for being not ready or unreachable."""
    return node is not None and not node.spec.unschedulable and not any(t.key in _LOST for t in node.spec.taints)


def _waits_for(snapshot: Snapshot, gang: GangView) -> Shares:
    """Return the requests of the gang's open slots; none if its queue excludes its namespace."""
    if gang.active or gang.key in snapshot.barred or gang.group.status.phase == "Completed":
        return np.zeros(snapshot.free.shape[0], dtype=np.float64)
    slots = gang.open_slots
    members = {pod_set.name: pod_set.classes_of(slots[pod_set.name]) for pod_set in gang.pod_sets}
    claims = amounts_of_claims(snapshot, named_claims(members))
    return (amounts_of_members(snapshot, gang, members) + claims).astype(np.float64)
