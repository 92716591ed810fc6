"""The tree of queues along the resource axis: who is below whom, and what each of them is guaranteed and allowed.

What is not set means what Volcano's users expect: no `capability` is no limit, no `deserved` is no quota (the weight
decides), no `guarantee` is nothing kept. An inner queue that sets no deserved or guarantee has the sum of those below
it. Queues whose parent does not exist, or whose parents go in a circle, are below the root.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf

import numpy as np
from numpy.typing import NDArray

from extender.planner.framework.ordering import parents_of
from extender.planner.state.amounts import MAX_SUM, Amounts, sum_along
from muster.api.names import ROOT_QUEUE
from muster.api.volcano.scheduling import Queue
from muster.resources.vector import GPU, WHOLE, Vector, vector

Shares = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class QueueTree:
    """Arrays have a row per queue, parents before their children (row 0 is the root), and a column per resource."""

    names: tuple[str, ...]
    index: Mapping[str, int]
    parent: tuple[int, ...]
    """Row of the queue above; -1 for the root."""
    children: tuple[tuple[int, ...], ...]
    """Rows of the queues right below each, the oldest first."""
    chains: tuple[tuple[int, ...], ...]
    """Rows from each queue up to the root, itself first."""
    limit: Shares
    deserved: Shares
    """0 where nothing is deserved, which is how it is divided."""
    guarantee: Amounts
    units: tuple[float, ...]
    """Of each resource what is handed out at once: shares are made of whole GPUs, though pods may use parts of one."""
    quoted: NDArray[np.bool_]
    """Resources of which some queue deserves something: only these are held against quotas. Shape (resources,)."""
    weight: tuple[float, ...]
    priority: tuple[int, ...]
    reclaimable: tuple[bool, ...]
    born: tuple[tuple[str, str], ...]
    """Creation time and name."""

    guaranteed: bool
    """Whether any queue has a guarantee."""
    bounded: tuple[bool, ...]
    """Whether the queue, or one above it, has a limit at all."""

    def row(self, queue: str) -> int:
        """The row of a queue; the root's for one that does not exist."""
        return self.index.get(queue, 0)

    def fork(self, left: int, right: int) -> tuple[int, int]:
        """The queues right below the lowest common ancestor, on the ways to these two.

        Where one of the two is above the other, it stands for itself.
        """
        lefts, rights = self.chains[left], self.chains[right]
        i, j = len(lefts) - 1, len(rights) - 1
        while i > 0 and j > 0 and lefts[i] == rights[j]:
            i, j = i - 1, j - 1
        return lefts[i], rights[j]

    @property
    def quota(self) -> Shares:
        """What each deserves where that is asked as a limit: no limit for resources of which nobody deserves any."""
        return np.where(self.quoted, self.deserved, inf)


def tree_of(queues: Mapping[str, Queue], axis: Mapping[str, int], resources: int) -> QueueTree:
    """The tree of these queues; a root is there even without one."""
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
        units=_units(axis, resources),
        quoted=quoted,
        weight=tuple(float(spec.weight) for spec in specs),
        priority=tuple(spec.priority for spec in specs),
        reclaimable=tuple(spec.reclaimable is not False for spec in specs),
        born=born,
        guaranteed=bool(guarantee.any()),
        bounded=tuple(bool(np.isfinite(limit[list(chain)]).any()) for chain in chains),
    )


def _units(axis: Mapping[str, int], resources: int) -> tuple[float, ...]:
    whole = axis.get(GPU, -1)
    return tuple(float(WHOLE) if column == whole else 1.0 for column in range(resources))


def _created(queues: Mapping[str, Queue], name: str) -> str:
    return (queues[name].metadata.creation_timestamp or "") if name in queues else ""


def _ordered(parents: Mapping[str, str], queues: Mapping[str, Queue]) -> tuple[str, ...]:
    """Names, parents before their children."""
    below: dict[str, list[str]] = {}
    for name in sorted(parents, key=lambda name: (_created(queues, name), name)):
        if name != ROOT_QUEUE:
            below.setdefault(parents[name], []).append(name)
    names = [ROOT_QUEUE]
    for name in names:
        names.extend(below.get(name, ()))
    return tuple(names)


def _put(row: NDArray[np.float64] | Amounts, axis: Mapping[str, int], quantities: Mapping[str, object]) -> None:
    """Writes the resources that are named; what cannot be read counts as not set, as admission refuses it."""
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
    """Gives inner queues the sum of those below where they set nothing (-1); 0 where those set nothing either."""
    sums = np.zeros_like(rows)
    for row in range(len(parent) - 1, -1, -1):
        rows[row] = np.where(rows[row] < 0, sums[row], rows[row])
        if parent[row] >= 0:
            sums[parent[row]] = np.minimum(sums[parent[row]] + rows[row], MAX_SUM)
