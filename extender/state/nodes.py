"""Nodes by resources as integer arrays, kept by events.

`allocatable` and `used` are int64 of shape (resources, nodes): resource-major, so that one requested resource over all
nodes is one contiguous row. cpu is in milli-CPU, everything else in base units. What uses a node is a *charge*: a pod
bound to it, or a seat that a placement holds for a pod that is not bound yet.
"""

import re
from collections import Counter
from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from extender.state.podclass import PodClass
from extender.state.podcounts import PodCounts
from extender.state.queries import Mark
from muster.api.core import Node
from muster.resources.pods import node_allocatable
from muster.resources.vector import Vector

Amounts = NDArray[np.int64]
GROWTH = 64


@dataclass(slots=True)
class Charge:
    """What one holder takes from one node."""

    node: str
    cls: PodClass
    leaving: bool = False
    """It is a pod that is being deleted."""

    @property
    def marks(self) -> tuple[Mark, ...]:
        """What it is counted under."""
        charged = self.cls.charged
        return tuple(mark for mark in charged if mark[0] != "staying") if self.leaving and charged else charged


class NodeTable:
    """Every node's column and every charge; a node that is not known yet may be charged already."""

    def __init__(self) -> None:
        self.axis: dict[str, int] = {}
        self.index: dict[str, int] = {}
        self.nodes: list[Node | None] = []
        self.allocatable: Amounts = np.zeros((0, 0), dtype=np.int64)
        self.used: Amounts = np.zeros((0, 0), dtype=np.int64)
        self.changed: Amounts = np.zeros(0, dtype=np.int64)
        self.generation = 0
        self.version = 0
        """Grows with every change of any array."""
        self.pod_counts = PodCounts()
        self.claim_users: Counter[str] = Counter()
        """Key of a claim → pods that use it."""
        self._free_columns: list[int] = []
        self._charges: dict[Hashable, Charge] = {}
        self._by_node: dict[str, set[Hashable]] = {}
        self._order: Amounts | None = None

    def put(self, node: Node) -> bool:
        """Adds or updates a node; True if anything that scheduling looks at changed (heartbeats do not)."""
        name = node.metadata.name
        column = self.index.get(name)
        old = self.nodes[column] if column is not None else None
        if old is not None and _same(old, node):
            return False
        amounts = node_allocatable(node)
        for resource in amounts:
            self._row(resource)
        if column is None:
            column = self._new_column(name)
        self.nodes[column] = node
        self.version += 1
        self.generation += 1
        self.changed[column] = self.generation
        self.allocatable[:, column] = self.row_of(amounts)
        return True

    def remove(self, name: str) -> None:
        """Forgets a node; its charges stay until their holders go."""
        column = self.index.pop(name, None)
        if column is None:
            return
        for holder in self._by_node.get(name, ()):
            self.pod_counts.add(self._charges[holder].marks, column, -1)
        self.nodes[column] = None
        self.allocatable[:, column] = 0
        self.used[:, column] = 0
        self.version += 1
        self.generation += 1
        self.changed[column] = self.generation
        self._free_columns.append(column)
        self._order = None

    def charge(self, holder: Hashable, node: str, cls: PodClass, *, leaving: bool = False) -> None:
        """Lets `holder` use what `cls` requests on `node`, in place of what it used before."""
        known = self._charges.get(holder)
        if known is not None and known.node == node and known.cls is cls and known.leaving == leaving:
            return
        self.discharge(holder)
        self.version += 1
        charge = self._charges[holder] = Charge(node, cls, leaving)
        self._by_node.setdefault(node, set()).add(holder)
        self._count(charge, 1)

    def discharge(self, holder: Hashable) -> None:
        """Gives back what `holder` uses; nothing happens if it uses nothing."""
        charge = self._charges.pop(holder, None)
        if charge is None:
            return
        self.version += 1
        holders = self._by_node[charge.node]
        holders.discard(holder)
        if not holders:
            del self._by_node[charge.node]
        self._count(charge, -1)

    def _count(self, charge: Charge, pods: int) -> None:
        """Counts one pod (or minus one) more on the node of the charge."""
        for claim in charge.cls.claims:
            self.claim_users[claim.key] += pods
            if not self.claim_users[claim.key]:
                del self.claim_users[claim.key]
        column = self.index.get(charge.node)
        if column is not None:
            row = self.row_of(charge.cls.requests)  # may add rows, so it comes before the array is looked at
            self.used[:, column] += pods * row
            if charge.cls.charged:
                self.pod_counts.add(charge.marks, column, pods)

    def charged(self, holder: Hashable) -> str | None:
        """The node that `holder` uses."""
        charge = self._charges.get(holder)
        return charge.node if charge else None

    def charges(self) -> dict[Hashable, Charge]:
        """Every holder with what it uses; charges are replaced, never changed."""
        return dict(self._charges)

    def row_of(self, vector: Vector) -> Amounts:
        """A vector along the resource axis; resources that were never seen get a row of their own."""
        rows = [self._row(resource) for resource in vector]
        result = np.zeros(len(self.axis), dtype=np.int64)
        result[rows] = list(vector.values())
        return result

    def order(self) -> Amounts:
        """Columns of the known nodes in natural order of their names (node-2 before node-10)."""
        if self._order is None:
            names = sorted(self.index, key=_natural)
            self._order = np.fromiter((self.index[name] for name in names), dtype=np.int64, count=len(names))
        return self._order

    def recomputed_use(self) -> Amounts:
        """`used` made anew from the charges; equal to `used` unless there is a defect (the self-check compares)."""
        used = np.zeros_like(self.used)
        for charge in self._charges.values():
            if charge.node in self.index:
                used[:, self.index[charge.node]] += self.row_of(charge.cls.requests)
        return used

    def _row(self, resource: str) -> int:
        row = self.axis.get(resource)
        if row is None:
            row = self.axis[resource] = len(self.axis)
            pad = ((0, 1), (0, 0))
            self.allocatable, self.used = np.pad(self.allocatable, pad), np.pad(self.used, pad)
        return row

    def _new_column(self, name: str) -> int:
        if not self._free_columns:
            size = self.allocatable.shape[1]
            grown = max(GROWTH, size)
            self.allocatable = np.pad(self.allocatable, ((0, 0), (0, grown)))
            self.used = np.pad(self.used, ((0, 0), (0, grown)))
            self.changed = np.pad(self.changed, (0, grown))
            self.pod_counts.grow(size + grown)
            self.nodes += [None] * grown
            self._free_columns = list(range(size + grown - 1, size - 1, -1))
        column = self._free_columns.pop()
        self.index[name] = column
        self._order = None
        for holder in self._by_node.get(name, ()):
            charge = self._charges[holder]
            row = self.row_of(charge.cls.requests)
            self.used[:, column] += row
            self.pod_counts.add(charge.marks, column, 1)
        return column


def _same(old: Node, new: Node) -> bool:
    return (
        old.metadata.uid == new.metadata.uid
        and old.metadata.labels == new.metadata.labels
        and old.spec == new.spec
        and old.status.allocatable == new.status.allocatable
    )


def _natural(name: str) -> tuple[tuple[int, int | str], ...]:
    return tuple((0, int(part)) if part.isdigit() else (1, part) for part in re.split(r"(\d+)", name) if part)
