"""Limits of queues by GPU model, in one session: nodes of a model that is used up are no candidates (docs/queues.md).

The label `nvidia.com/gpu.product` of a node says its model. Amounts are thousandths of nvidia.com/gpu; devices that are
claimed otherwise do not count.
"""

import numpy as np
from numpy.typing import NDArray

from extender.planner import reasons
from extender.planner.fairshare.tree import QueueTree
from extender.planner.framework.answers import Causes, Codes
from extender.planner.framework.snapshot import Snapshot
from extender.planner.state.podclass import PodClass
from muster.api.names import GPU_PRODUCT
from muster.resources.vector import GPU
from muster.volcano.queuelimits import is_model


class ModelLimits:
    """The limits by model of a session's queues; without any they cost nothing."""

    def __init__(self, tree: QueueTree, snapshot: Snapshot, causes: Causes) -> None:
        self._tree, self._causes, self._nodes = tree, causes, len(snapshot.nodes)
        self._column = snapshot.axis.get(GPU, -1)
        said = {name: bounds.annotated.by_model for name, bounds in snapshot.limited.limits.bounds.items()}
        self._said = {tree.row(name): by_model for name, by_model in said.items() if by_model}
        self._of: dict[str, NDArray[np.bool_]] = {}
        """Model → its nodes."""
        self._used: dict[tuple[int, str], int] = {}
        if not self._said:
            return
        products = [node.metadata.labels.get(GPU_PRODUCT, "") if node else "" for node in snapshot.nodes]
        for model in {model for by_model in self._said.values() for model in by_model}:
            meant = {product for product in set(products) if is_model(model, product)}
            self._of[model] = np.array([product in meant for product in products], dtype=np.bool_)
        for (queue, node), gpus in snapshot.gpu_use.items():
            if node in snapshot.index:
                self.place(tree.row(queue), snapshot.index[node], gpus)

    def __bool__(self) -> bool:
        """Return True if some queue has a limit."""
        return bool(self._said)

    def place(self, row: int, column: int, gpus: int) -> None:
        """Add so many GPUs of a node, in thousandths, to what a queue and those above it use."""
        for each in self._tree.chains[row] if self._said else ():
            for model in self._said.get(each, ()):
                if self._of[model][column]:
                    self._used[each, model] = self._used.get((each, model), 0) + gpus

    def gpus(self, amounts: NDArray[np.int64]) -> int:
        """Return the GPUs in amounts along the axis of the session."""
        return int(amounts[self._column]) if self._column >= 0 else 0

    def codes(self, row: int, cls: PodClass) -> Codes | None:
        """Return the code of refusal per node for one pod more; None if no limit is about it."""
        wanted = cls.requests.get(GPU, 0)
        rows = [each for each in self._tree.chains[row] if each in self._said]
        if not rows or not wanted:
            return None
        codes = np.zeros(self._nodes, dtype=np.int16)
        for each in rows:
            for model, most in self._said[each].items():
                if self._used.get((each, model), 0) + wanted > most:
                    queue = self._tree.names[each]
                    codes[self._of[model]] = self._causes.code(reasons.cause.over_model(model, queue, most))
        return codes
