"""Preferred pod affinity and anti-affinity: nodes whose domain holds more of the pods that are wished for come first.

Scored by the pods that are there when the cycle begins; wishes of running pods about the new one are not counted.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from extender.framework.registry import refuse_arguments
from extender.framework.session import Session
from extender.plugins.pernode import Domains
from extender.plugins.scoring import KUBERNETES
from extender.state.podclass import PodClass


class PodAffinity:
    """Sums weight times pods per domain, and scales the sum so that the best node gets the full magnitude."""

    name = "podaffinity"

    def __init__(self, arguments: Mapping[str, Any]) -> None:
        refuse_arguments(self.name, arguments)
        self._domains = Domains()

    def on_session_open(self, session: Session) -> None:
        """Register the score."""
        session.add("node_order", lambda cls: self._scores(session, cls))

    def on_session_close(self, session: Session) -> None:
        """Nothing to clean up: what is known of domains stays for the next cycle."""

    def _scores(self, session: Session, cls: PodClass) -> NDArray[np.float64]:
        sums = np.zeros(len(session.snapshot.nodes))
        for wish in cls.neighbours.wishes:
            counts = session.snapshot.pod_counts.get(wish.query.mark)
            if counts is None:
                continue
            codes, number = self._domains.of(wish.topology_key, session.snapshot)
            pods = np.bincount(codes[codes >= 0], weights=counts[codes >= 0], minlength=number)
            sums += np.where(codes >= 0, np.append(pods, 0.0)[codes], 0.0) * wish.weight
        low, high = sums.min(initial=0.0), sums.max(initial=0.0)
        return (sums - low) / (high - low) * KUBERNETES if high > low else sums * 0.0
