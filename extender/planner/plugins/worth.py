"""Free GPUs of nodes that likely future pods can use: arithmetic over arrays, without state.

The value of a node is the amount of its free GPUs that the next pod can use on average, in thousandths of a GPU. A node
has partly used GPUs, described individually, and a number of unused GPUs. Pods of one kind request the same CPU and
memory, and the same number of whole GPUs or of equal fractions of GPUs.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from extender.planner.framework.hooks import Scores
from extender.planner.framework.snapshot import Snapshot
from extender.planner.state.amounts import Amounts, widened
from extender.planner.state.podclass import PodClass
from muster.api.names import VOLCANO_GPU_NUMBER
from muster.resources.vector import CPU, GPU, WHOLE

LARGE = 1e15
"""Larger than any loss of value of a node on which a pod fits; larger losses mean that it does not fit."""
NONE = -1e18
"""Value that stands for a node on which the pod does not fit."""


class PodKind(NamedTuple):
    """The demand of one pod: milli-CPU, bytes of memory, number of GPUs, and requested thousandths of each GPU."""

    cpu: int
    memory: int
    devices: int
    portion: int


def kind_of(cls: PodClass, snapshot: Snapshot) -> PodKind:
    """Return the kind of a pod class; GPU memory is converted to a fraction of the smallest GPU."""
    cpu, memory = cls.requests.get(CPU, 0), cls.requests.get("memory", 0)
    if cls.gpu is not None:
        known = snapshot.devices.memory[snapshot.devices.memory > 0] if cls.gpu.memory else ()
        least = int(min(known, default=0))
        return PodKind(cpu, memory, cls.gpu.devices, min(cls.gpu.on(least), WHOLE))
    return PodKind(cpu, memory, cls.whole_gpus, WHOLE)


@dataclass(slots=True)
class NodeState:
    """The free CPUs, memory and GPUs of nodes, which determine the nodes' values; one row per node."""

    cpu: Amounts
    memory: Amounts
    gpus: Amounts
    """Number of GPUs of each node."""
    unused: Amounts
    """Number of GPUs of each node that no pod uses."""
    partly: Amounts
    """Free thousandths of each partly used GPU, 0 for all other GPUs; int64 of shape (nodes, devices)."""

    @property
    def arrays(self) -> tuple[Amounts, Amounts, Amounts, Amounts, Amounts]:
        """All arrays of the state, in the order of the fields."""
        return self.cpu, self.memory, self.gpus, self.unused, self.partly

    def __len__(self) -> int:
        """Return the number of nodes."""
        return len(self.cpu)

    @classmethod
    def from_snapshot(cls, snapshot: Snapshot, columns: Amounts) -> "NodeState":
        """Return the state of these nodes of a snapshot."""
        axis, free, whole = snapshot.axis, snapshot.free[:, columns], snapshot.allocatable[:, columns]
        devices, none = snapshot.devices.at(columns), np.zeros(len(columns), dtype=np.int64)
        cpu = free[axis[CPU]] if CPU in axis else none
        memory = free[axis["memory"]] if "memory" in axis else none
        gpus = whole[axis[GPU]] // WHOLE if GPU in axis else none
        if VOLCANO_GPU_NUMBER in axis:
            gpus = gpus + whole[axis[VOLCANO_GPU_NUMBER]]
        return cls(cpu, memory, gpus, devices.unused(free, axis), _free_parts(devices.shared))

    def update(self, snapshot: Snapshot, columns: Amounts) -> None:
        """Update the state of these nodes from a snapshot."""
        now = NodeState.from_snapshot(snapshot, columns)
        wider = now.partly.shape[1] - self.partly.shape[1]
        if wider > 0:
            self.partly = widened(self.partly, wider)
        for known, fresh in zip(self.arrays, now.arrays, strict=True):
            known[columns] = fresh

    def at(self, columns: Amounts) -> "NodeState":
        """Return the state of only these nodes."""
        return NodeState(*(array[columns] for array in self.arrays))

    def unlike(self, other: "NodeState") -> Amounts:
        """Return the rows of the nodes whose state differs between this state and another state."""
        mine, theirs = np.column_stack(self.arrays), np.column_stack(other.arrays)
        return np.flatnonzero((mine != theirs).any(axis=1))


def _free_parts(used: Amounts) -> Amounts:
    """Return the free thousandths of each partly used GPU, and 0 for all other GPUs."""
    free: Amounts = np.where(used > 0, np.maximum(WHOLE - used, 0), 0)
    return free


@dataclass(frozen=True, slots=True)
class Mix:
    """Kinds of pods that request GPUs, and the probability of each kind; one column per kind."""

    cpu: Amounts
    memory: Amounts
    devices: Amounts
    portion: Amounts
    weight: Scores
    fill: float
    """Weight (0 to 1) of filling a node with pods of one kind, as opposed to placing a single next pod."""
    portions: Amounts
    """The distinct fractions of a GPU that kinds request."""
    which: Amounts
    """Index in `portions` of the GPU fraction that each kind requests."""

    @classmethod
    def most_frequent(cls, seen: Mapping[PodKind, int], coverage: float, most: int, fill: float) -> "Mix | None":
        """Return the most frequent kinds, which cover the fraction `coverage` of pods; None if none has GPUs."""
        ordered = sorted(seen.items(), key=lambda item: (-item[1], item[0]))
        total, sum_ = sum(seen.values()), 0
        kept: list[tuple[PodKind, int]] = []
        for kind, count in ordered:
            if sum_ >= coverage * total or len(kept) >= most:
                break
            sum_ += count
            if kind.devices:
                kept.append((kind, count))
        if not kept:
            return None
        table = np.array([kind for kind, _ in kept], dtype=np.int64)
        portions, which = np.unique(table[:, 3], return_inverse=True)
        weight = np.array([count for _, count in kept], dtype=np.float64)
        return cls(
            np.maximum(table[:, 0], 1), np.maximum(table[:, 1], 1), table[:, 2], table[:, 3], weight / weight.sum(),
            fill, portions, which.reshape(-1),
        )  # fmt: skip

    def worth(self, nodes: NodeState) -> Scores:
        """Return how much of each node's free GPUs the next pod can use on average, float64 of shape (nodes,)."""
        usable = np.empty((len(nodes), len(self.portions)), dtype=np.int64)
        places = np.empty_like(usable)
        for column, portion in enumerate(self.portions):
            fits = nodes.partly >= portion
            usable[:, column] = (nodes.partly * fits).sum(axis=1) + WHOLE * nodes.unused
            places[:, column] = fits.sum(axis=1) + nodes.unused
        by_kind = usable[:, self.which] * (places[:, self.which] >= self.devices)
        pods = np.minimum(nodes.cpu[:, None] // self.cpu, nodes.memory[:, None] // self.memory)
        filled = np.minimum(by_kind, pods * (self.devices * self.portion))
        worth: Scores = ((1 - self.fill) * by_kind * (pods > 0) + self.fill * filled) @ self.weight
        return worth

    def worth_after(self, nodes: NodeState, kind: PodKind) -> Scores:
        """Return each node's value once one more such pod uses its best GPUs; `NONE` where the pod does not fit."""
        left = replace(nodes, cpu=nodes.cpu - kind.cpu, memory=nodes.memory - kind.memory)
        fits = (left.cpu >= 0) & (left.memory >= 0)
        result = np.full(len(nodes), NONE)
        if not kind.devices or kind.portion >= WHOLE or kind.devices > 1:
            return self._after_whole(left, kind, fits, result)
        width = nodes.partly.shape[1]
        possible = (nodes.partly >= kind.portion) & fits[:, None]
        for device in range(1, width):  # equal devices are interchangeable
            possible[:, device] &= ~(nodes.partly[:, :device] == nodes.partly[:, device : device + 1]).any(axis=1)
        rows, devices = np.nonzero(possible)
        if len(rows):
            part = left.at(rows)
            part.partly[np.arange(len(rows)), devices] -= kind.portion
            np.maximum.at(result, rows, self.worth(part))
        rows = np.flatnonzero(fits & (nodes.unused > 0))
        if len(rows):
            part = left.at(rows)
            part.unused -= 1
            part.partly = widened(part.partly, 1)
            part.partly[:, -1] = WHOLE - kind.portion
            np.maximum.at(result, rows, self.worth(part))
        return result

    def _after_whole(self, left: NodeState, kind: PodKind, fits: NDArray[np.bool_], result: Scores) -> Scores:
        """Return each node's value after a pod with whole GPUs; parts of several GPUs count as whole GPUs."""
        rows = np.flatnonzero(fits & (left.unused >= kind.devices))
        part = left.at(rows)
        part.unused -= kind.devices
        result[rows] = self.worth(part)
        return result

    def worth_by_device(self, node: NodeState, kind: PodKind, used: Amounts) -> Scores:
        """Return the node's value after a pod is placed on its first, second, … device; float64 of shape (devices,)."""
        many = node.at(np.zeros(len(used), dtype=np.int64))
        many.cpu, many.memory = many.cpu - kind.cpu, many.memory - kind.memory
        free = _free_parts(used)
        many.partly = np.repeat(free[None, :], len(used), axis=0)
        fresh = used == 0
        many.unused = many.unused - fresh
        many.partly[np.arange(len(used)), np.arange(len(used))] = np.maximum(
            np.where(fresh, WHOLE, free) - kind.portion, 0
        )
        return self.worth(many)
