"""Amounts of resources as arrays of integers, and tables without empty entries.

Amounts are clipped at `CLIP`, 2^50 base units (a pebibyte), requests at it and allocatable just below. A request at the
clip fits nowhere, and no sum exceeds 64 bits before 8,192 pods are on one node. Requests below 0, which the API server
refuses, count as 0.
"""

from collections.abc import Hashable
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from muster.resources.vector import Vector

Amounts = NDArray[np.int64]
K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
CLIP = 2**50
MAX_SUM = 2**60
"""Clip of sums over many pods or queues: two of them still fit into 64 bits."""
_MAX_SHARE = 2**54
"""Clip of the sum of one queue: more (16 PiB) than any cluster has, and those of some queues can be added."""


def sum_along(axis: dict[str, int], rows: int, sums: Vector) -> Amounts:
    """Return sums, or bounds of sums, as int64 of shape (rows,); resources that are not on the axis are left out."""
    return row_along(axis, rows, sums, _MAX_SHARE)


def times(row: Amounts, count: int) -> Amounts:
    """Return the amounts of a number of pods that take `row` each, clipped to 64 bits."""
    if not count or int(row.max(initial=0)) < MAX_SUM // count:
        return row * count
    product: Amounts = np.minimum(row.astype(np.float64) * count, MAX_SUM).astype(np.int64)
    return product


def tally(counts: dict[K, int], key: K, change: int) -> None:
    """Add to a count; the table has no entries of 0."""
    counts[key] = counts.get(key, 0) + change
    if not counts[key]:
        del counts[key]


def discard(sets: dict[K, set[V]], key: K, member: V) -> None:
    """Remove a member of a set; the table has no empty sets."""
    members = sets.get(key, set())
    members.discard(member)
    if not members:
        sets.pop(key, None)


def put_entry(table: dict[K, V], key: K, new: V | None) -> V | None:
    """Put an object into a table, or (None) remove it; return the one that was there."""
    known = table.get(key)
    if new is not None:
        table[key] = new
    elif known is not None:
        del table[key]
    return known


def clipped(amount: int) -> int:
    """Return an amount that a pod requests, as the arrays hold it."""
    return max(0, min(amount, CLIP))


def row_along(axis: dict[str, int], rows: int, vector: Vector, clip: int = CLIP) -> Amounts:
    """Return a vector as int64 of shape (rows,), clipped; resources that are not on the axis are left out."""
    result = np.zeros(rows, dtype=np.int64)
    for resource, amount in vector.items():
        row = axis.get(resource)
        if row is not None:
            result[row] = max(0, min(amount, clip))
    return result
