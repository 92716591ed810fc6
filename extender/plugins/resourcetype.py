"""Pods that need no GPU prefer nodes that have none."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from extender.framework.registry import refuse_arguments
from extender.framework.session import Session
from extender.plugins.scoring import GPU, RESOURCE_TYPE
from extender.state.podclass import PodClass


class ResourceType:
    """Adds a score to nodes without GPUs for pods without GPUs."""

    name = "resourcetype"

    def __init__(self, arguments: Mapping[str, Any]) -> None:
        refuse_arguments(self.name, arguments)

    def on_session_open(self, session: Session) -> None:
        """Register the score."""
        session.add("node_order", lambda cls: _scores(session, cls))

    def on_session_close(self, session: Session) -> None:
        """Nothing to clean up."""


def _scores(session: Session, cls: PodClass) -> NDArray[np.float64]:
    row = session.snapshot.table.axis.get(GPU)
    if cls.requests.get(GPU) or row is None or row >= session.snapshot.allocatable.shape[0]:
        return np.zeros(len(session.snapshot.nodes))
    scores: NDArray[np.float64] = np.where(session.snapshot.allocatable[row] == 0, RESOURCE_TYPE, 0.0)
    return scores
