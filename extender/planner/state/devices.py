"""The individual GPUs of each node, with the fractions of each GPU that pods use.

`shared` is int64 of shape (nodes, devices): the thousandths of each GPU that pods with GPU fractions use. Pods that use
whole GPUs are not included, because the kubelet chooses their GPUs. The resource arrays contain the number of unused
GPUs. If another program has bound a pod, it is unknown which GPUs the pod shares. As many separate GPUs are then
counted for the pod.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace

import numpy as np
from numpy.typing import NDArray

from extender.planner.state.amounts import Amounts, widened
from muster.api.limits import GPU_DEVICES
from muster.api.names import VOLCANO_GPU_NUMBER
from muster.resources.gpus import GpuShare
from muster.resources.vector import GPU, WHOLE

Order = Callable[[Amounts], NDArray[np.float64] | float]
"""Maps the used thousandths of one node's GPUs to scores; GPUs with high scores are used first."""


def _none() -> Amounts:
    return np.zeros(0, dtype=np.int64)


@dataclass(slots=True)
class Devices:
    """The GPUs of all nodes, as arrays with one entry per node."""

    memory: Amounts = field(default_factory=_none)
    """Memory of each GPU of the node in MiB; 0 if unknown."""
    volcano: NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, dtype=np.bool_))
    """True if Volcano's device plugin counts the node's GPUs."""
    divided: NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, dtype=np.bool_))
    """True if the node has MIG devices. Pods cannot request fractions of MIG devices by annotation."""
    shared: Amounts = field(default_factory=lambda: np.zeros((0, 0), dtype=np.int64))
    touched: Amounts = field(default_factory=_none)
    """Number of each node's GPUs that pods share, int64 of shape (nodes,)."""
    unknown: Amounts = field(default_factory=_none)
    """Number of each node's GPUs that pods use without a record of which GPUs each pod shares."""
    counted: Amounts = field(default_factory=_none)
    """Total of the pods' GPU fractions, in thousandths of a GPU, that the row for GPUs of the resource arrays
    includes."""
    pods: Amounts = field(default_factory=_none)

    def grow(self, size: int) -> None:
        """Grow all arrays to this number of columns."""
        more = size - len(self.memory)
        for each in fields(self):
            amounts = getattr(self, each.name)
            setattr(self, each.name, widened(amounts, more, 0))

    def copy(self) -> "Devices":
        """Return a copy of the arrays."""
        return Devices(*(getattr(self, each.name).copy() for each in fields(self)))

    def at(self, columns: Amounts | list[int]) -> "Devices":
        """Return a copy with only the GPUs of some nodes."""
        return Devices(*(getattr(self, each.name)[columns] for each in fields(self)))

    def emptied(self) -> "Devices":
        """Return a copy of the same GPUs as if no pod shared a GPU."""
        shares = ("shared", "touched", "unknown", "counted", "pods")
        return replace(self, **{name: np.zeros_like(getattr(self, name)) for name in shares})

    def portion(self, share: GpuShare, column: int) -> int:
        """Return the thousandths of a GPU that the GPU fraction `share` takes on this node."""
        return min(share.on(int(self.memory[column])), WHOLE + 1)

    def widen(self, devices: int) -> None:
        """Widen the array `shared` for nodes with this number of GPUs."""
        more = min(devices, GPU_DEVICES.value) - self.shared.shape[1]
        if more > 0:
            self.shared = widened(self.shared, more)

    def add_share(self, share: GpuShare, column: int, devices: tuple[int, ...], sign: int = 1) -> None:
        """Add the fractions of these GPUs that a pod takes; with sign -1, subtract the fractions."""
        self.pods[column] += sign
        portion = min(self.portion(share, column), WHOLE)
        if not self.volcano[column]:
            self.counted[column] += sign * portion * share.devices
        if len(set(devices)) != share.devices or max(devices, default=0) >= GPU_DEVICES.value:
            self.unknown[column] += sign * share.devices
            return
        self.widen(max(devices) + 1)
        row = self.shared[column]
        for device in devices:
            row[device] += sign * portion
        self.touched[column] = np.count_nonzero(row)

    def unused(self, free: Amounts, axis: Mapping[str, int]) -> Amounts:
        """Return the number of unused GPUs of each node, int64 of shape (nodes,); `free` is along the resource axis."""
        left: Amounts = np.maximum(self._spare(free, axis), 0)
        return left

    def _spare(self, free: Amounts, axis: Mapping[str, int]) -> Amounts:
        """Return the number of unused GPUs of each node; negative if more GPUs are used than exist."""
        rows = np.zeros(free.shape[1], dtype=np.int64)
        if GPU in axis:
            rows += (free[axis[GPU]] + self.counted) // WHOLE
        if VOLCANO_GPU_NUMBER in axis:
            rows += np.where(self.volcano, free[axis[VOLCANO_GPU_NUMBER]], 0)
        spare: Amounts = rows - self.touched - self.unknown
        return spare

    def overfull(self, free: Amounts, axis: Mapping[str, int]) -> NDArray[np.bool_]:
        """Return the mask of nodes on which fractions exceed a whole GPU, or more GPUs are used than exist."""
        full: NDArray[np.bool_] = (self.shared > WHOLE).any(axis=1) | ((self.pods > 0) & (self._spare(free, axis) < 0))
        return full

    def unused_at(self, free: Amounts, axis: Mapping[str, int], column: int) -> int:
        """Return the number of unused GPUs of one node."""
        return int(self.at([column]).unused(free[:, [column]], axis)[0])

    def portions(self, share: GpuShare) -> Amounts:
        """Return, for each node, the thousandths of a GPU that the GPU fraction `share` takes there."""
        if share.portion:
            return np.where(self.volcano | self.divided, WHOLE + 1, share.portion)
        known = (self.memory > 0) & (self.volcano == share.by_resource) & (share.by_resource | ~self.divided)
        return np.where(known, -(-share.memory * WHOLE // np.maximum(self.memory, 1)), WHOLE + 1)

    def room(self, share: GpuShare, unused: Amounts) -> Amounts:
        """Return how many pods with this GPU fraction fit on each node's GPUs, int64 of shape (nodes,)."""
        portions, empty = self.portions(share), np.minimum(unused, GPU_DEVICES.value)
        fits = np.where(self.shared > 0, np.maximum(WHOLE - self.shared, 0) // portions[:, None], 0)
        fresh = WHOLE // portions
        if share.devices == 1:
            total: Amounts = fits.sum(axis=1) + fresh * empty
            return total
        low, high = np.zeros(len(portions), np.int64), np.full(len(portions), GPU_DEVICES.value * WHOLE, np.int64)
        while (low < high).any():  # the largest number of pods with different devices each
            middle = (low + high + 1) // 2
            places = np.minimum(fits, middle[:, None]).sum(axis=1) + np.minimum(fresh, middle) * empty
            enough = places >= middle * share.devices
            low, high = np.where(enough, middle, low), np.where(enough, high, middle - 1)
        return low

    def most(self, share: GpuShare, free: Amounts, axis: Mapping[str, int]) -> Amounts:
        """Return how many pods with this GPU fraction fit into each node's total free GPUs, int64 of shape (nodes,)."""
        room = np.maximum(free[axis[GPU]], 0) // (self.portions(share) * share.devices) if GPU in axis else 0
        return np.where(self.volcano, np.iinfo(np.int64).max, room)

    def choose(self, share: GpuShare, column: int, unused: int, order: Order | None = None) -> tuple[int, ...] | None:
        """Return the GPUs with the highest scores on which a pod fits; None if there are too few such GPUs.

        If a pod needs several GPUs, GPUs with capacity for the most such pods are used first, so that as many pods as
        possible fit.
        """
        if self.divided[column] and not share.by_resource:
            return None
        self.widen(min(self.wide(column) + unused, GPU_DEVICES.value))
        used, portion = self.shared[column], self.portion(share, column)
        fits = np.maximum(WHOLE - used, 0) // portion
        fresh = np.flatnonzero(used == 0)[:unused]
        possible = np.concatenate([np.flatnonzero((used > 0) & (fits > 0)), fresh[fits[fresh] > 0]])
        if len(possible) < share.devices:
            return None
        scores = np.broadcast_to(0.0 if order is None else order(used), used.shape)
        most = fits if share.devices > 1 else np.zeros_like(fits)
        best = np.lexsort((possible, -used[possible], -scores[possible], -most[possible]))
        return tuple(sorted(int(possible[place]) for place in best[: share.devices]))

    def wide(self, column: int) -> int:
        """Return one more than the highest number of a shared GPU of the node."""
        used = np.flatnonzero(self.shared[column])
        return int(used[-1]) + 1 if len(used) else 0
