"""Nodes by resources as integer arrays, kept by events.

`allocatable` and `used` are int64 of shape (resources, nodes): resource-major, so that one requested resource over all
nodes is one contiguous row. cpu is in milli-CPU, everything else in base units. What uses a node is a *charge*: a pod
bound to it, or a seat that a placement holds for a pod that is not bound yet.

Only what nodes offer has a row: a pod that asks for anything else fits nowhere, and its words for it cost nothing.
Rows and columns grow by doubling; those that are not used are all 0, and are the next to be given away.
"""

import re
from collections import Counter
from collections.abc import Collection, Hashable
from weakref import WeakKeyDictionary

import numpy as np
from msgspec import Struct

from extender.planner.dynamic.needs import SharedClaim
from extender.planner.state.amounts import CLIP, Amounts, clipped, row_along
from extender.planner.state.devices import Devices
from extender.planner.state.podclass import ClassTable, PodClass
from extender.planner.state.podcounts import PodCounts
from extender.planner.state.queries import Mark
from muster.api.kubernetes.core import Node
from muster.api.names import VOLCANO_GPU_NUMBER
from muster.resources.gpus import device_memory
from muster.resources.pods import node_allocatable
from muster.resources.vector import GPU, WHOLE, Vector

GROWTH = 64
ROWS = 4


class Charge(Struct, frozen=True, gc=False):
    """What one holder takes from one node. It is in no cycle, so no garbage collection has to look at it."""

    node: str
    cls: PodClass
    leaving: bool = False
    """It is a pod that is being deleted."""
    devices: tuple[int, ...] = ()
    """The GPUs that it shares, by number."""

    @property
    def marks(self) -> tuple[Mark, ...]:
        """What it is counted under."""
        charged = self.cls.charged
        return tuple(mark for mark in charged if mark[0] != "staying") if self.leaving and charged else charged


class NodeTable:
    """Every node's column and every charge; a node that is not known yet may be charged already."""

    def __init__(self, classes: ClassTable | None = None) -> None:
        self._classes = classes or ClassTable()
        self.axis: dict[str, int] = {}
        """Resource → row; like `index`, replaced by a copy once a snapshot has it (see `share`)."""
        self.index: dict[str, int] = {}
        """Name of a node → column."""
        self.nodes: list[Node | None] = []
        self.allocatable: Amounts = np.zeros((ROWS, 0), dtype=np.int64)
        self.used: Amounts = np.zeros((ROWS, 0), dtype=np.int64)
        self.changed: Amounts = np.zeros(0, dtype=np.int64)
        self.generation = 0
        self.version = 0
        """Grows with every change of any array."""
        self.pod_counts = PodCounts()
        self.claim_users: Counter[str] = Counter()
        """Key of a claim → pods that use it."""
        self.devices = Devices()
        self.shared_users: dict[str, Counter[str]] = {}
        """Key of a claim to devices that has none yet, and that several pods may use → node → pods there that do."""
        self._devices: dict[str, Vector] = {}
        """Node → what it offers of devices that are claimed; nodes without any are left out."""
        self._offered: Counter[str] = Counter()
        """Resource → nodes that offer it; each has a row."""
        self._offers: dict[str, tuple[str, ...]] = {}
        """Node → what it offers."""
        self._free_rows = list(range(ROWS - 1, -1, -1))
        self._free_columns: list[int] = []
        self._rows: WeakKeyDictionary[PodClass, Amounts] = WeakKeyDictionary()
        """What pods of a class take on any node, along the axis as it is now."""
        self._shared = False
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
        amounts = node_allocatable(node) | self._devices.get(name, {})  # may raise: before anything is changed
        self._own()
        self._offer(name, tuple(amounts))
        fresh = column is None
        if column is None:
            column = self._new_column(name)
        self.nodes[column] = node
        self.version += 1
        self.generation += 1
        self.changed[column] = self.generation
        self.allocatable[:, column] = np.minimum(self.row_of(amounts), CLIP - 1)
        self._put_devices(node, column, amounts, fresh=fresh)
        return True

    def equip(self, name: str, devices: Vector) -> None:
        """Notes what a node, which may not be known yet, offers of devices.

        What was found out by looking at the node alone stays right: `changed` is as it was.
        """
        if self._devices.get(name, {}) == devices:
            return
        if devices:
            self._devices[name] = devices
        else:
            del self._devices[name]
        column = self.index.get(name)
        node = self.nodes[column] if column is not None else None
        if column is None or node is None:
            return
        amounts = node_allocatable(node) | devices
        self._own()
        self._offer(name, tuple(amounts))
        self.version += 1
        self.allocatable[:, column] = np.minimum(self.row_of(amounts), CLIP - 1)

    @property
    def equipped(self) -> Collection[str]:
        """Nodes that offer devices."""
        return self._devices.keys()

    def remove(self, name: str) -> None:
        """Forgets a node; its charges stay until their holders go."""
        if name not in self.index:
            return
        self._own()
        column = self.index.pop(name)
        for holder in self._by_node.get(name, ()):
            self.pod_counts.add(self._charges[holder].marks, column, -1)
        self.nodes[column] = None
        self.allocatable[:, column] = 0
        self.used[:, column] = 0
        self.devices.clear(column)
        self._offer(name, ())
        self.version += 1
        self.generation += 1
        self.changed[column] = self.generation
        self._free_columns.append(column)
        self._order = None

    def charge(
        self, holder: Hashable, node: str, cls: PodClass, *, leaving: bool = False, devices: tuple[int, ...] = ()
    ) -> None:
        """Lets `holder` use what `cls` requests on `node`, in place of what it used before."""
        known = self._charges.get(holder)
        charge = Charge(node, cls, leaving, devices)
        if known is not None:
            if known.cls is cls and known == charge:
                return
            self.discharge(holder)
        self.version += 1
        self._charges[holder] = charge
        holders = self._by_node.get(node)
        if holders is None:
            holders = self._by_node[node] = set()
        holders.add(holder)
        self._count(charge, 1)

    def discharge(self, holder: Hashable) -> Charge | None:
        """Gives back what `holder` uses, and says what that was; nothing happens if it uses nothing."""
        charge = self._charges.pop(holder, None)
        if charge is None:
            return None
        self.version += 1
        holders = self._by_node[charge.node]
        holders.discard(holder)
        if not holders:
            del self._by_node[charge.node]
        self._count(charge, -1)
        return charge

    def _count(self, charge: Charge, pods: int) -> None:
        """Counts one pod (or minus one) more on the node of the charge."""
        for claim in charge.cls.claims:
            self.claim_users[claim.key] += pods
            if not self.claim_users[claim.key]:
                del self.claim_users[claim.key]
        column = self.index.get(charge.node)
        if column is not None:
            row = self._row(charge.cls, column)
            self.used[:, column] += row if pods > 0 else -row
            if charge.cls.gpu is not None:
                self.devices.take(charge.cls.gpu, column, charge.devices, pods)
            if charge.cls.charged:
                self.pod_counts.add(charge.marks, column, pods)
        for shared in charge.cls.needs.shared:
            self._count_shared(shared, charge.node, pods)

    def _count_shared(self, shared: SharedClaim, node: str, pods: int) -> None:
        """Counts one more user (or one less) of a claim without devices; the first has its node charged for it."""
        users = self.shared_users.setdefault(shared.key, Counter())
        users[node] += pods
        if not users[node]:
            del users[node]
        holder = ("claim", shared.key)
        if not users:
            del self.shared_users[shared.key]
            self.discharge(holder)
        elif pods > 0:
            known = self._charges.get(holder)
            at = known.node if known is not None and known.node in users else node
            self.charge(holder, at, self._classes.of_claim(shared.key, dict(shared.rows)))

    def _row(self, cls: PodClass, column: int) -> Amounts:
        """What one pod of this class takes on the node, int64 of shape (resources,); it may not be changed."""
        row = self._rows.get(cls)
        if row is None:
            row = self.row_of(self.taken(cls, column))
            if cls.gpu is None:  # else it depends on the node
                self._rows[cls] = row
        return row

    def taken(self, cls: PodClass, column: int) -> Vector:
        """What one pod of this class takes on the node: how much of a GPU an amount of memory is, depends on it."""
        return taken_on(cls, self.devices, column)

    def counted(self, cls: PodClass, node: str) -> Vector:
        """The same by name of a node, one that is not known yet included; it may not be changed."""
        column = self.index.get(node)
        return cls.requests if column is None else self.taken(cls, column)

    def charged(self, holder: Hashable) -> str | None:
        """The node that `holder` uses."""
        charge = self._charges.get(holder)
        return charge.node if charge else None

    def row_of(self, vector: Vector) -> Amounts:
        """A vector along the resource axis, each amount from 0 to the clip; what no node offers is left out."""
        return row_along(self.axis, self.used.shape[0], vector)

    def unknown(self, vector: Vector) -> bool:
        """Whether something of the vector is offered by no node."""
        return any(amount > 0 and resource not in self.axis for resource, amount in vector.items())

    def share(self) -> tuple[dict[str, int], dict[str, int]]:
        """`axis` and `index` as they are now; they are not changed afterwards and may not be changed."""
        self._shared = True
        return self.axis, self.index

    def order(self) -> Amounts:
        """Columns of the known nodes in natural order of their names (node-2 before node-10)."""
        if self._order is None:
            names = sorted(self.index, key=natural)
            self._order = np.fromiter((self.index[name] for name in names), dtype=np.int64, count=len(names))
        return self._order

    def _put_devices(self, node: Node, column: int, amounts: Vector, *, fresh: bool) -> None:
        """Notes what GPUs the node has. Where they are others than before, what its pods use counts anew."""
        devices, memory = self.devices, device_memory(node, amounts)
        volcano = amounts.get(VOLCANO_GPU_NUMBER, 0) > 0
        devices.widen(amounts.get(VOLCANO_GPU_NUMBER, 0) or amounts.get(GPU, 0) // WHOLE)
        if not fresh and devices.memory[column] == memory and devices.volcano[column] == volcano:
            return
        devices.memory[column], devices.volcano[column] = memory, volcano
        devices.clear(column)
        self.used[:, column] = 0
        for holder in self._by_node.get(node.metadata.name, ()):
            charge = self._charges[holder]
            self.used[:, column] += self._row(charge.cls, column)
            if charge.cls.gpu is not None:
                devices.take(charge.cls.gpu, column, charge.devices)

    def _own(self) -> None:
        """Leaves the maps that were shared as they are, and goes on with copies."""
        if self._shared:
            self.axis, self.index, self._shared = dict(self.axis), dict(self.index), False

    def _offer(self, name: str, resources: tuple[str, ...]) -> None:
        """Notes what a node offers: gives a row to what is new, and takes the row of what nobody offers any more."""
        before = self._offers.pop(name, ())
        if resources:
            self._offers[name] = resources
        if before == resources:
            return
        self._offered.update(resources)
        self._offered.subtract(before)
        for resource in before:
            if not self._offered[resource]:
                del self._offered[resource]
                row = self.axis.pop(resource)
                self.allocatable[row], self.used[row] = 0, 0
                self._free_rows.append(row)
        self._add_rows([resource for resource in resources if resource not in self.axis])
        self._rows.clear()

    def _add_rows(self, resources: list[str]) -> None:
        """Rows for resources that no node offered so far; who has asked for them already is charged for them now."""
        while len(self._free_rows) < len(resources):
            rows = self.used.shape[0]
            pad = ((0, rows), (0, 0))
            self.allocatable, self.used = np.pad(self.allocatable, pad), np.pad(self.used, pad)
            self._free_rows = [*range(2 * rows - 1, rows - 1, -1), *self._free_rows]
        self.axis.update({resource: self._free_rows.pop() for resource in resources})
        if not resources:
            return
        for charge in self._charges.values():
            column = self.index.get(charge.node)
            taken = self.taken(charge.cls, column) if column is not None else {}
            for resource in resources:
                if column is not None and resource in taken:
                    self.used[self.axis[resource], column] += clipped(taken[resource])

    def _new_column(self, name: str) -> int:
        if not self._free_columns:
            size = self.allocatable.shape[1]
            grown = max(GROWTH, size)
            self.allocatable = np.pad(self.allocatable, ((0, 0), (0, grown)))
            self.used = np.pad(self.used, ((0, 0), (0, grown)))
            self.changed = np.pad(self.changed, (0, grown))
            self.devices.grow(size + grown)
            self.pod_counts.grow(size + grown)
            self.nodes += [None] * grown
            self._free_columns = list(range(size + grown - 1, size - 1, -1))
        column = self._free_columns.pop()
        self.index[name] = column
        self._order = None
        for holder in self._by_node.get(name, ()):
            charge = self._charges[holder]
            self.pod_counts.add(charge.marks, column, 1)
        return column


def taken_on(cls: PodClass, devices: Devices, column: int) -> Vector:
    """What one pod of this class takes on the node in a column, by what its GPUs are."""
    if cls.gpu is None or not cls.gpu.memory or cls.gpu.by_resource:
        return cls.requests
    return cls.requests | {GPU: min(devices.portion(cls.gpu, column), WHOLE) * cls.gpu.devices}


def _same(old: Node, new: Node) -> bool:
    return (
        old.metadata.uid == new.metadata.uid
        and old.metadata.labels == new.metadata.labels
        and old.spec == new.spec
        and old.status.allocatable == new.status.allocatable
    )


def natural(name: str) -> tuple[tuple[int, int | str], ...]:
    """What names are sorted by so that node-2 comes before node-10."""
    return tuple((0, int(part)) if part.isdigit() else (1, part) for part in re.split(r"(\d+)", name) if part)
