"""Full nodes first (binpack) or empty nodes first (spread), chosen per kind of pod: with GPUs and without."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from extender.framework.registry import refuse_arguments
from extender.framework.session import Session
from extender.plugins.scoring import DENSITY, GPU
from extender.state.podclass import PodClass

STRATEGIES = ("binpack", "spread")
Scores = NDArray[np.float64]


class NodePlacement:
    """Arguments `cpu` and `gpu`: `binpack` (the default) or `spread`."""

    name = "nodeplacement"

    def __init__(self, arguments: Mapping[str, Any]) -> None:
        refuse_arguments(self.name, arguments, ("cpu", "gpu"))
        self._strategies = {"cpu": "binpack", "gpu": "binpack"} | dict(arguments)
        for resource, strategy in self._strategies.items():
            if strategy not in STRATEGIES:
                raise ValueError(f"plugin {self.name!r}: {resource} is {strategy!r}; valid: {', '.join(STRATEGIES)}")

    def on_session_open(self, session: Session) -> None:
        """Register the score."""
        session.add("node_order", lambda cls: self._scores(session, cls))

    def on_session_close(self, session: Session) -> None:
        """Nothing to clean up."""

    def _scores(self, session: Session, cls: PodClass) -> Scores:
        resource = GPU if cls.requests.get(GPU) else "cpu"
        row = session.snapshot.table.axis.get(resource)
        if row is None or row >= session.snapshot.free.shape[0]:
            return np.zeros(len(session.snapshot.nodes))
        free, total = session.snapshot.free[row], session.snapshot.allocatable[row]
        strategy = self._strategies["gpu" if resource == GPU else "cpu"]
        return binpack(free, total) if strategy == "binpack" else spread(free, total)


def binpack(free: NDArray[np.int64], total: NDArray[np.int64]) -> Scores:
    """9 for the node with the least free, 0 for the one with the most, in between by proportion."""
    known = free[total > 0]
    if not len(known) or known.max() == known.min():
        return np.zeros(len(free))
    low, high = int(known.min()), int(known.max())
    scores: Scores = np.where(total > 0, DENSITY * (1 - (free - low) / (high - low)), 0.0)
    return scores


def spread(free: NDArray[np.int64], total: NDArray[np.int64]) -> Scores:
    """9 for an empty node, 0 for a full one."""
    scores: Scores = np.where(total > 0, DENSITY * free / np.maximum(total, 1), 0.0)
    return scores
