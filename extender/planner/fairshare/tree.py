"""The tree of queues, with limits, quotas and guarantees for each resource.

As in Volcano, a queue without `capability` has no limit, and a queue without `guarantee` reserves nothing. A queue
without `deserved` has no quota, so its share depends only on its weight. An inner queue without `deserved` or
`guarantee` gets the sum of its children's values. Queues whose parent does not exist, or whose parents form a cycle,
are children of the root.

The allocation of a queue includes the devices of its claims. Devices that several children share count only once in
their common ancestors (`count_once`), because the sum of the children would contain them several times.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from math import inf
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from extender.planner.limits import ClaimUse
from extender.planner.state.access import parents_of
from extender.planner.state.amounts import MAX_SUM, Amounts, sum_along
from muster.api.names import QUEUE_WEIGHTS, ROOT_QUEUE
from muster.api.volcano.scheduling import Queue, QueueSpec
from muster.resources.vector import GPU, WHOLE, Vector, vector
from muster.volcano.queuelimits import UNNAMED, read_weights

Shares = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class QueueTree:
    """The tree of queues as arrays: one row per queue, parents first (row 0: the root), and one column per resource."""

    names: tuple[str, ...]
    index: Mapping[str, int]
    parent: tuple[int, ...]
    """Row of each queue's parent; -1 for the root."""
    children: tuple[tuple[int, ...], ...]
    """Rows of each queue's children, the oldest first."""
    chains: tuple[tuple[int, ...], ...]
    """Rows from each queue up to the root, beginning with the queue itself."""
    limit: Shares
    deserved: Shares
    """Quantities that each queue deserves; 0 if a queue deserves nothing."""
    guarantee: Amounts
    units: tuple[float, ...]
    """Unit in which a resource is divided among queues: whole GPUs, although pods may use fractions."""
    quoted: NDArray[np.bool_]
    """True for each resource of which at least one queue deserves an amount, bool of shape (resources,). Quotas apply
    only to resources of which a queue deserves an amount."""
    weight: Shares
    priority: tuple[int, ...]
    reclaimable: tuple[bool, ...]
    born: tuple[tuple[str, str], ...]
    """Creation time and name of each queue."""

    guaranteed: bool

    def row(self, queue: str) -> int:
        """Return the row of a queue; the root's row for an unknown queue."""
        return self.index.get(queue, 0)

    def fork(self, left: int, right: int) -> tuple[int, int]:
        """Return the two children of the queues' lowest common ancestor that lead to these queues.

        A queue that is itself the common ancestor is returned in place of its child.
        """
        lefts, rights = self.chains[left], self.chains[right]
        i, j = len(lefts) - 1, len(rights) - 1
        while i > 0 and j > 0 and lefts[i] == rights[j]:
            i, j = i - 1, j - 1
        return lefts[i], rights[j]

    @property
    def weighed(self) -> tuple[int, ...]:
        """Columns of the resources that order queues: resources with a deserved amount, or else all resources.

        Resources without quotas are left out because a queue's share of a plentiful resource equals its requests. The
        queue with the longer backlog would use a smaller fraction of its share and come first.
        """
        return tuple(map(int, np.flatnonzero(self.quoted if self.quoted.any() else ~self.quoted)))

    @property
    def quota(self) -> Shares:
        """Deserved amounts as limits; `inf` for resources of which no queue deserves an amount."""
        return np.where(self.quoted, self.deserved, inf)


def tree_of(queues: Mapping[str, Queue], axis: Mapping[str, int], resources: int) -> QueueTree:
    """Build the tree of these queues; the tree has a root even if no queue is named root."""
    parents = parents_of(queues)
    names = _ordered(parents, queues)
    index = {name: row for row, name in enumerate(names)}
    parent = tuple(index[parents[name]] if name != ROOT_QUEUE else -1 for name in names)
    specs = [queues[name].spec if name in queues else Queue().spec for name in names]
    born = tuple((_created(queues, name), name) for name in names)
    below: list[list[int]] = [[] for _ in names]
    chains: list[tuple[int, ...]] = []
    for row, above in enumerate(parent):
        if above >= 0:
            below[above].append(row)
        chains.append((row, *(chains[above] if above >= 0 else ())))
    limit = np.full((len(names), resources), inf)
    deserved = np.full((len(names), resources), -1.0)
    guarantee = np.full((len(names), resources), -1, dtype=np.int64)
    for row, spec in enumerate(specs):
        _put(limit[row], axis, spec.capability)
        _put(deserved[row], axis, spec.deserved)
        _put(guarantee[row], axis, spec.guarantee.resource)
    quoted: NDArray[np.bool_] = np.asarray((deserved > 0).any(axis=0))
    _sum_up(deserved, parent)
    _sum_up(guarantee, parent)
    return QueueTree(
        names=names,
        index=index,
        parent=parent,
        children=tuple(tuple(sorted(rows, key=lambda row: born[row])) for rows in below),
        chains=tuple(chains),
        limit=limit,
        deserved=np.maximum(deserved, guarantee),
        guarantee=guarantee,
        units=tuple(float(WHOLE) if column == axis.get(GPU) else 1.0 for column in range(resources)),
        quoted=quoted,
        weight=_weights(names, queues, specs, quoted, axis),
        priority=tuple(spec.priority for spec in specs),
        reclaimable=tuple(spec.reclaimable is not False for spec in specs),
        born=born,
        guaranteed=bool(guarantee.any()),
    )


def _weights(
    names: Sequence[str], queues: Mapping[str, Queue], specs: Sequence[QueueSpec], quoted: NDArray[np.bool_],
    axis: Mapping[str, int],
) -> Shares:  # fmt: skip
    """Return the weight of each queue for each resource.

    If the weight annotation of a queue cannot be parsed, the weight in its spec is used.
    """
    weights: Shares = np.repeat(np.array([[spec.weight] for spec in specs], dtype=np.float64), len(quoted), axis=1)
    for row, name in enumerate(names):
        found: dict[str, float] = {}
        with suppress(ValueError):  # admission refuses an unreadable annotation
            found = read_weights(queues[name].metadata.annotations.get(QUEUE_WEIGHTS, "")) if name in queues else {}
        if UNNAMED in found:
            weights[row, quoted if quoted.any() else slice(None)] = found[UNNAMED]
        for resource, weight in found.items():
            if resource in axis:
                weights[row, axis[resource]] = weight
    return weights


def _created(queues: Mapping[str, Queue], name: str) -> str:
    return (queues[name].metadata.creation_timestamp or "") if name in queues else ""


def _ordered(parents: Mapping[str, str], queues: Mapping[str, Queue]) -> tuple[str, ...]:
    """Return the names of queues, parents before their children."""
    below: dict[str, list[str]] = {}
    for name in sorted(parents, key=lambda name: (_created(queues, name), name)):
        if name != ROOT_QUEUE:
            below.setdefault(parents[name], []).append(name)
    names = [ROOT_QUEUE]
    for name in names:
        names.extend(below.get(name, ()))
    return tuple(names)


def _put(row: NDArray[np.float64] | Amounts, axis: Mapping[str, int], quantities: Mapping[str, object]) -> None:
    """Write quantities of resources into a row of an array.

    Quantities that cannot be parsed (because admission was bypassed) count as not set.
    """
    try:
        amounts: Vector = vector(quantities)  # type: ignore[arg-type]
    except ValueError:
        return
    values = sum_along(dict(axis), len(row), amounts)
    for resource in amounts:
        column = axis.get(resource)
        if column is not None:
            row[column] = values[column]


def _sum_up(rows: Shares | Amounts, parent: Sequence[int]) -> None:
    """Set queues without a value of their own (-1) to the sum of their children's values; leaves get 0."""
    sums = np.zeros_like(rows)
    for row in range(len(parent) - 1, -1, -1):
        rows[row] = np.where(rows[row] < 0, sums[row], rows[row])
        if parent[row] >= 0:
            sums[parent[row]] = np.minimum(sums[parent[row]] + rows[row], MAX_SUM)


class Sharing(NamedTuple):
    """The devices of one claim, and the rows of the queues with pods that use the claim."""

    claim: str
    devices: Amounts
    used: tuple[int, ...]
    """Rows of all queues with pods that use the claim; the devices count towards these queues' limits."""
    allocated: tuple[int, ...]
    """Rows of queues with a user of the claim that is not evicted; the devices count in their shares."""
    fixed: tuple[int, ...]
    """Rows of queues in which a non-preemptable gang still uses the claim."""


def sharing_of(
    tree: QueueTree, claim: str, uses: Mapping[str, ClaimUse], devices: Amounts, left: Collection[tuple[str, str]],
    held: Collection[str],
) -> Sharing:  # fmt: skip
    """Return the queues with pods that use a claim.

    `left` contains pairs of a claim and a queue in which no user of the claim remains. `held` contains the keys of
    non-preemptable gangs.
    """
    stays = {queue: use for queue, use in uses.items() if not use[0] and (claim, queue) not in left}
    fixed = [queue for queue, use in stays.items() if use[1] in held]
    return Sharing(claim, devices, *(tuple(map(tree.row, names)) for names in (uses, stays, fixed)))


def above(tree: QueueTree, rows: Iterable[int]) -> set[int]:
    """Return the rows of these queues and of all their ancestors."""
    return {each for row in rows for each in tree.chains[row]}


def count_once(tree: QueueTree, table: Amounts, devices: Amounts, rows: Iterable[int]) -> None:
    """Subtract devices that a queue counts more than once because several of its child queues use them."""
    known = set[int]()
    for row in rows:
        shared = next((each for each in tree.chains[row] if each in known), None)
        if shared is not None:
            table[shared] -= devices
        known.update(tree.chains[row])
