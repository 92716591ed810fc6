"""Limits of queues by GPU model, in one session: nodes of a model that is used up are no candidates (docs/queues.md).

The label `nvidia.com/gpu.product` of a node says its model. Amounts are thousandths of nvidia.com/gpu; devices that are
claimed otherwise do not count.
"""

import numpy as np
from numpy.typing import NDArray

from extender.planner import reasons
from extender.planner.framework.answers import Causes, Codes
from extender.planner.framework.snapshot import Snapshot
from extender.planner.state.podclass import PodClass
from muster.api.names import GPU_PRODUCT
from muster.resources.vector import GPU
from muster.volcano.queuelimits import is_model


class ModelLimits:
    """The limits by model of a session's queues; without any they cost nothing."""

    def __init__(self, snapshot: Snapshot, causes: Causes) -> None:
        self._limits, self._causes, self._nodes = snapshot.limited.limits, causes, len(snapshot.nodes)
        self._column = snapshot.axis.get(GPU, -1)
        self._of: dict[str, NDArray[np.bool_]] = {}
        """Model → its nodes."""
        self._used: dict[tuple[str, str], int] = {}
        models = {model for bounds in self._limits.bounds.values() for model in bounds.annotated.by_model}
        if not models:
            return
        products = [node.metadata.labels.get(GPU_PRODUCT, "") if node else "" for node in snapshot.nodes]
        for model in models:
            meant = {product for product in set(products) if is_model(model, product)}
            self._of[model] = np.array([product in meant for product in products], dtype=np.bool_)
        for (queue, node), gpus in snapshot.gpu_use.items():
            if node in snapshot.index:
                self.place(queue, snapshot.index[node], gpus)

    def __bool__(self) -> bool:
        """Return True if some queue has a limit."""
        return bool(self._of)

    def place(self, queue: str, column: int, gpus: int) -> None:
        """Add so many GPUs of a node, in thousandths, to what a queue and those above it use."""
        for bounds in self._limits.above(queue):
            for model in bounds.annotated.by_model:
                if self._of[model][column]:
                    self._used[bounds.queue, model] = self._used.get((bounds.queue, model), 0) + gpus

    def gpus(self, amounts: NDArray[np.int64]) -> int:
        """Return the GPUs in amounts along the axis of the session."""
        return int(amounts[self._column]) if self._column >= 0 else 0

    def codes(self, queue: str, cls: PodClass) -> Codes | None:
        """Return the code of refusal per node for one pod more; None if no limit is about it."""
        wanted = cls.requests.get(GPU, 0)
        limited = [bounds for bounds in self._limits.above(queue) if bounds.annotated.by_model]
        if not limited or not wanted:
            return None
        codes = np.zeros(self._nodes, dtype=np.int16)
        for bounds in limited:
            for model, most in bounds.annotated.by_model.items():
                if self._used.get((bounds.queue, model), 0) + wanted > most:
                    codes[self._of[model]] = self._causes.code(reasons.cause.over_model(model, bounds.queue, most))
        return codes
