"""Nodes where the pod fits now go before nodes where it would only fit on what is being freed."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from extender.framework.registry import refuse_arguments
from extender.framework.session import Session
from extender.plugins.scoring import AVAILABILITY
from extender.state.podclass import PodClass


class NodeAvailability:
    """Adds a score to nodes with room."""

    name = "nodeavailability"

    def __init__(self, arguments: Mapping[str, Any]) -> None:
        refuse_arguments(self.name, arguments)

    def on_session_open(self, session: Session) -> None:
        """Register the score."""
        session.add("node_order", lambda cls: _scores(session, cls))

    def on_session_close(self, session: Session) -> None:
        """Nothing to clean up."""


def _scores(session: Session, cls: PodClass) -> NDArray[np.float64]:
    scores: NDArray[np.float64] = np.where(session.room(cls) > 0, AVAILABILITY, 0.0)
    return scores
