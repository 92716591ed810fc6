"""Table of nodes, with resources as integer arrays, updated by watch events.

`allocatable` and `used` are int64 of shape (resources, nodes), so that one requested resource of all nodes is a
contiguous row. cpu is in milli-CPU, every other resource in base units. The ledger records the users of each node
(`extender.planner.ledger`); the table adds up the resources of these users.

Only resources that at least one node offers have a row. A pod that requests a resource that no node offers fits
nowhere. The numbers of rows and columns grow by doubling; unused rows and columns are all 0.
"""

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Callable, Collection, Iterable
from weakref import WeakKeyDictionary

import numpy as np

from extender.planner.state.amounts import CLIP, Amounts, clipped, put_entry, row_along, widened
from extender.planner.state.devices import Devices
from extender.planner.state.podclass import PodClass
from extender.planner.state.podcounts import PodCounts
from extender.planner.state.queries import Mark
from muster.api.kubernetes.core import Node
from muster.api.muster.node_faults import DEFAULT_RULES, Fault, fault_of
from muster.api.names import VOLCANO_GPU_NUMBER
from muster.api.ranges import NaturalKey, natural
from muster.resources.gpus import device_memory, is_divided
from muster.resources.pods import node_allocatable
from muster.resources.vector import GPU, WHOLE, Vector, maximum
from muster.workloads.charges import charged_amounts

GROWTH = 64
ROWS = 4


class NodeTable:
    """Table of nodes: one column per node in each array.

    The function `users` yields the node and the pod class of each ledger entry, even for unknown nodes.
    """

    def __init__(self, users: Callable[[], Iterable[tuple[str, PodClass]]]) -> None:
        self._users = users
        self.axis: dict[str, int] = {}
        """Maps a resource to its row in the arrays. Like `index`, the mapping is copied before a change if a snapshot
        shares it (see `share`)."""
        self.index: dict[str, int] = {}
        self.nodes: list[Node | None] = []
        self.allocatable: Amounts = np.zeros((ROWS, 0), dtype=np.int64)
        self.used: Amounts = np.zeros((ROWS, 0), dtype=np.int64)
        self.changed: Amounts = np.zeros(0, dtype=np.int64)
        self.generation = 0
        self.version = 0
        """Number that grows with every change of an array."""
        self.pod_counts = PodCounts()
        self.devices = Devices()
        self.rules = DEFAULT_RULES
        """Rules that determine which nodes are suspect, set before the first node is added."""
        self.faults: dict[str, Fault] = {}
        """Maps a node to its fault; healthy nodes are left out."""
        self._devices: dict[str, Vector] = {}
        """Maps a node to its claimable devices; nodes without devices are left out."""
        self._offered: Counter[str] = Counter()
        """Maps a resource to the number of nodes that offer the resource; each offered resource has a row."""
        self._offers: dict[str, Vector] = {}
        """Maps a node to its allocatable resources, including devices."""
        self._most: dict[str, Vector] = {}
        """Maps a node that offers less than before to its largest allocatable resources so far."""
        self._free_rows = list(range(ROWS - 1, -1, -1))
        self._free_columns: list[int] = []
        self._rows: WeakKeyDictionary[PodClass, Amounts] = WeakKeyDictionary()
        """Maps a pod class to a pod's resources along the axis, except where they depend on the node."""
        self._shared = False
        self._sorted: list[tuple[NaturalKey, int]] = []
        """Sort key (from the name) and column of each known node, sorted by this key."""
        self._order: Amounts | None = None

    def knows(self, node: Node) -> bool:
        """Return True if no field of the node that is relevant to scheduling has changed, as after a heartbeat."""
        column = self.index.get(node.metadata.name)
        old = self.nodes[column] if column is not None else None
        return old is not None and (
            old.metadata.uid == node.metadata.uid
            and old.metadata.labels == node.metadata.labels
            and old.spec == node.spec
            and old.status.allocatable == node.status.allocatable
            and self.faults.get(node.metadata.name) == fault_of(node, self.rules)
        )

    def put_node(self, node: Node) -> None:
        """Add or update a node while no pods are counted on the node (see `Ledger.put_node`)."""
        name = node.metadata.name
        amounts = node_allocatable(node) | self._devices.get(name, {})  # before any change, because this call may raise
        self._own()
        self._offer(name, amounts)
        column = self.index.get(name)
        if column is None:
            column = self._new_column(name)
        self.nodes[column] = node
        put_entry(self.faults, name, fault_of(node, self.rules))
        self._changed(column)
        self.allocatable[:, column] = np.minimum(self.row_of(amounts), CLIP - 1)
        self.devices.memory[column] = device_memory(node, amounts)
        self.devices.volcano[column] = amounts.get(VOLCANO_GPU_NUMBER, 0) > 0
        self.devices.divided[column] = is_divided(node, amounts)
        self.devices.widen(amounts.get(VOLCANO_GPU_NUMBER, 0) or amounts.get(GPU, 0) // WHOLE)

    def equip(self, name: str, devices: Vector) -> None:
        """Set the devices of a node while no pods are counted on it (see `Ledger.equip`); the node may be unknown.

        `changed` is not updated, because the Node itself did not change.
        """
        put_entry(self._devices, name, devices or None)
        column = self.index.get(name)
        node = self.nodes[column] if column is not None else None
        if column is None or node is None:
            return
        amounts = node_allocatable(node) | devices
        self._own()
        self._offer(name, amounts)
        self.version += 1
        self.allocatable[:, column] = np.minimum(self.row_of(amounts), CLIP - 1)

    def is_equipped(self, name: str, devices: Vector) -> bool:
        """Return True if a node has exactly these devices."""
        return self._devices.get(name, {}) == devices

    @property
    def equipped(self) -> Collection[str]:
        """Names of the nodes that offer devices."""
        return self._devices.keys()

    def remove(self, name: str) -> None:
        """Remove a node while no pods are counted on the node."""
        self._own()
        column = self.index.pop(name)
        self.faults.pop(name, None)
        self.nodes[column] = None
        self.allocatable[:, column] = 0
        self.devices.memory[column], self.devices.volcano[column] = 0, False
        self.devices.divided[column] = False
        self._offer(name, {})
        self._most.pop(name, None)
        self._changed(column)
        self._free_columns.append(column)
        del self._sorted[bisect_left(self._sorted, (natural(name), column))]
        self._order = None

    @property
    def suspects(self) -> Amounts:
        """Return the columns of suspect nodes, on which no new pods are placed."""
        suspects = [self.index[name] for name, fault in self.faults.items() if fault.kind == "suspect"]
        return np.array(suspects, dtype=np.int64)

    def count(self, node: str, cls: PodClass, devices: tuple[int, ...], marks: tuple[Mark, ...], sign: int) -> None:
        """Add the resources of one pod of this class to its node if the node is known; with sign -1, subtract them."""
        self.version += 1
        column = self.index.get(node)
        if column is None:
            return
        row = self.row_on(cls, column)
        self.used[:, column] += row if sign > 0 else -row
        if cls.gpu is not None:
            self.devices.add_share(cls.gpu, column, devices, sign)
        if marks:
            self.pod_counts.add(marks, column, sign)

    def part_of(self, node: str, cls: PodClass) -> tuple[int, Amounts] | None:
        """Return the column of a node, and the resources of one pod of this class there; None for an unknown node."""
        column = self.index.get(node)
        return None if column is None else (column, self.row_on(cls, column))

    def _changed(self, column: int) -> None:
        self.version += 1
        self.generation += 1
        self.changed[column] = self.generation

    def row_on(self, cls: PodClass, column: int) -> Amounts:
        """Return the resources of a pod of this class on the node, int64 of shape (resources,); read-only."""
        row = self._rows.get(cls)
        if row is None:
            row = self.row_of(self.taken(cls, column))
            if cls.gpu is None:  # all other classes depend on the node
                self._rows[cls] = row
        return row

    def taken(self, cls: PodClass, column: int | None) -> Vector:
        """Return the resources that a pod of this class takes on a node (None: an unknown node); read-only."""
        return cls.requests if column is None else taken_on(cls, self.devices, column)

    def charged(self, cls: PodClass, node: str) -> Vector:
        """Return what a queue is charged for a pod of this class on a node (`charged_amounts`); read-only.

        A queue is charged at most the largest amounts that the node has offered so far. While a device plugin restarts,
        the node offers no devices, but pods on the node still use devices.
        """
        taken = self.taken(cls, self.index.get(node))
        return charged_amounts(taken, self._most.get(node, self._offers.get(node)))

    def chargeable(self) -> Amounts:
        """Return the maximum that a queue is charged for a pod on each node, of shape (resources, nodes)."""
        result = self.allocatable.copy()
        for name, amounts in self._most.items():
            result[:, self.index[name]] = np.minimum(self.row_of(amounts), CLIP - 1)
        return result

    def row_of(self, vector: Vector) -> Amounts:
        """Return amounts by resource as a clipped array along the axis, without resources that no node offers."""
        return row_along(self.axis, self.used.shape[0], vector)

    def share(self) -> tuple[dict[str, int], dict[str, int]]:
        """Return the current `axis` and `index`.

        Callers must not change `axis` and `index`; the table makes later changes to copies.
        """
        self._shared = True
        return self.axis, self.index

    def order(self) -> Amounts:
        """Return the columns of the known nodes in natural order of their names (node-2 before node-10)."""
        if self._order is None:
            self._order = np.fromiter((column for _, column in self._sorted), np.int64, len(self._sorted))
        return self._order

    def _own(self) -> None:
        """Replace `axis` and `index` by copies before a change if a snapshot shares them."""
        if self._shared:
            self.axis, self.index, self._shared = dict(self.axis), dict(self.index), False

    def _offer(self, name: str, resources: Vector) -> None:
        """Set the resources that a node offers; add rows of new resources, and remove rows that no node offers."""
        before = self._offers.get(name, {})
        put_entry(self._offers, name, resources or None)
        most = maximum(self._most.get(name, before), resources)
        put_entry(self._most, name, most if most != resources else None)
        if [*before] == [*resources]:
            return
        self._offered.update([*resources])
        self._offered.subtract([*before])
        for resource in before:
            if not self._offered[resource]:
                del self._offered[resource]
                row = self.axis.pop(resource)
                self.allocatable[row], self.used[row] = 0, 0
                self._free_rows.append(row)
        self._add_rows([resource for resource in resources if resource not in self.axis])
        self._rows.clear()

    def _add_rows(self, resources: list[str]) -> None:
        """Add rows for resources that no node has offered so far, with the usage of ledger entries."""
        while len(self._free_rows) < len(resources):
            rows = self.used.shape[0]
            self.allocatable, self.used = widened(self.allocatable, rows, 0), widened(self.used, rows, 0)
            self._free_rows = [*range(2 * rows - 1, rows - 1, -1), *self._free_rows]
        self.axis.update({resource: self._free_rows.pop() for resource in resources})
        if not resources:
            return
        for node, cls in self._users():
            column = self.index.get(node)
            taken = self.taken(cls, column) if column is not None else {}
            for resource in resources:
                if column is not None and resource in taken:
                    self.used[self.axis[resource], column] += clipped(taken[resource])

    def _new_column(self, name: str) -> int:
        if not self._free_columns:
            size = self.allocatable.shape[1]
            grown = max(GROWTH, size)
            self.allocatable = widened(self.allocatable, grown)
            self.used = widened(self.used, grown)
            self.changed = widened(self.changed, grown)
            self.devices.grow(size + grown)
            self.pod_counts.grow(size + grown)
            self.nodes += [None] * grown
            self._free_columns = list(range(size + grown - 1, size - 1, -1))
        column = self._free_columns.pop()
        self.index[name] = column
        insort(self._sorted, (natural(name), column))
        self._order = None
        return column


def taken_on(cls: PodClass, devices: Devices, column: int) -> Vector:
    """Return the resources of a pod of this class on this node; the node's GPU memory may determine its fraction."""
    if cls.gpu is None or not cls.gpu.memory or cls.gpu.by_resource:
        return cls.requests
    return cls.requests | {GPU: min(devices.portion(cls.gpu, column), WHOLE) * cls.gpu.devices}
