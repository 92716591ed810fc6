"""Functions for resource quantities as arrays of integers, and for tables without empty entries.

Requests are limited to `CLIP`, 2^50 base units (a pebibyte), and allocatable quantities to one unit less. A clipped
request therefore fits nowhere, and sums stay within 64 bits for up to 8,192 pods on a node. Negative requests, which
the API server refuses, count as 0.
"""

from collections.abc import Hashable
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from muster.resources.vector import Vector

Amounts = NDArray[np.int64]
Mask = NDArray[np.bool_]
"""A boolean array with one flag per node or domain."""
K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
S = TypeVar("S", bound=np.generic)
CLIP = 2**50
MAX_SUM = 2**60
"""Maximum of a sum over many pods or queues; the total of two such sums still fits into 64 bits."""
_MAX_SHARE = 2**54
"""Maximum of one queue's sum: 16 PiB, more than any cluster has, but small enough to add the sums of several queues."""


def sum_along(axis: dict[str, int], rows: int, sums: Vector) -> Amounts:
    """Return sums of amounts, or limits of sums, as int64 of shape (rows,); resources outside the axis are left out."""
    return row_along(axis, rows, sums, _MAX_SHARE)


def times(row: Amounts, count: int) -> Amounts:
    """Return the resources of `count` pods, each of which uses `row`; the result is limited to 64 bits."""
    if not count or int(row.max(initial=0)) < MAX_SUM // count:
        return row * count
    product: Amounts = np.minimum(row.astype(np.float64) * count, MAX_SUM).astype(np.int64)
    return product


def widened(array: NDArray[S], more: int, axis: int = -1) -> NDArray[S]:
    """Return the array with more zeros appended along an axis (`np.pad` takes ten times as long for small arrays)."""
    shape = [*array.shape]
    shape[axis] = more
    return np.concatenate([array, np.zeros(shape, array.dtype)], axis)


def tally(counts: dict[K, int], key: K, change: int) -> None:
    """Change a count in a table; remove the entry if the count becomes 0."""
    counts[key] = counts.get(key, 0) + change
    if not counts[key]:
        del counts[key]


def discard(sets: dict[K, set[V]], key: K, member: V) -> None:
    """Remove a member from a set in a table; remove the set if it becomes empty."""
    members = sets.get(key, set())
    members.discard(member)
    if not members:
        sets.pop(key, None)


def put_member(members: set[K], key: K, *, present: bool) -> None:
    """Add a member to a set if `present` is true, otherwise remove the member from the set."""
    if present:
        members.add(key)
    else:
        members.discard(key)


def put_entry(table: dict[K, V], key: K, new: V | None) -> V | None:
    """Put an object into a table, or (with None) remove it; return the previous object."""
    known = table.get(key)
    if new is not None:
        table[key] = new
    elif known is not None:
        del table[key]
    return known


def clipped(amount: int) -> int:
    """Return a requested quantity, limited to the range that the arrays can store."""
    return max(0, min(amount, CLIP))


def row_along(axis: dict[str, int], rows: int, vector: Vector, clip: int = CLIP) -> Amounts:
    """Return amounts by resource as clipped int64 of shape (rows,); resources outside the axis are left out."""
    result = np.zeros(rows, dtype=np.int64)
    for resource, amount in vector.items():
        row = axis.get(resource)
        if row is not None:
            result[row] = max(0, min(amount, clip))
    return result
