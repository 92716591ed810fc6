"""Scores as kube-scheduler takes them from an extender: whole numbers from 0 to 10. Pure."""

import numpy as np
from numpy.typing import NDArray

from extender.state.nodes import NodeTable

Scores = NDArray[np.float64]
Ranks = NDArray[np.int64]
MAX_PRIORITY = 10


def collapse(scores: Scores) -> Ranks:
    """Scores of any magnitude as ranks 0-10 that keep their order: equal scores are equal, the best is 10.

    An extender has eleven values only, so that scores next to each other share one where there are more.
    """
    levels, position = np.unique(scores, return_inverse=True)
    if len(levels) == 1:
        return np.zeros(len(scores), dtype=np.int64)
    ranks: Ranks = position * MAX_PRIORITY // (len(levels) - 1)
    return ranks


def fullness(table: NodeTable, columns: Ranks) -> Scores:
    """Share of its scarcest resource that each node gives already, 0-1."""
    allocatable, used = table.allocatable[:, columns], table.used[:, columns]
    share: Scores = np.where(allocatable > 0, used / np.maximum(allocatable, 1), 0.0).max(axis=0, initial=0.0)
    return np.clip(share, 0.0, 1.0)
