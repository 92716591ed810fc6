"""gpupack and gpuspread: for whole GPUs, nodes with few (or many) free ones first, above all other densities.

Sharing one GPU among pods is not in here: it needs a device plugin, not a scheduler (docs/predicates.md).
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from extender.framework.registry import refuse_arguments
from extender.framework.session import Session
from extender.plugins.nodeplacement import binpack, spread
from extender.plugins.scoring import DENSITY, GPU, GPU_DENSITY
from extender.state.podclass import PodClass


class GpuPack:
    """Nodes with the fewest free GPUs first."""

    name = "gpupack"
    _score = staticmethod(binpack)

    def __init__(self, arguments: Mapping[str, Any]) -> None:
        refuse_arguments(self.name, arguments)

    def on_session_open(self, session: Session) -> None:
        """Register the score."""
        session.add("node_order", lambda cls: self._scores(session, cls))

    def on_session_close(self, session: Session) -> None:
        """Nothing to clean up."""

    def _scores(self, session: Session, cls: PodClass) -> NDArray[np.float64]:
        row = session.snapshot.table.axis.get(GPU)
        if not cls.requests.get(GPU) or row is None or row >= session.snapshot.free.shape[0]:
            return np.zeros(len(session.snapshot.nodes))
        return self._score(session.snapshot.free[row], session.snapshot.allocatable[row]) * (GPU_DENSITY / DENSITY)


class GpuSpread(GpuPack):
    """Nodes with the most free GPUs first."""

    name = "gpuspread"
    _score = staticmethod(spread)
