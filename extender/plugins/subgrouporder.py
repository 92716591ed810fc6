"""Pod sets below their minimum first, then those that have the smallest share of it."""

from collections.abc import Mapping
from typing import Any

from extender.framework.registry import refuse_arguments
from extender.framework.session import Session
from extender.state.gangs import PodSetView


class SubGroupOrder:
    """Orders the pod sets of one gang."""

    name = "subgrouporder"

    def __init__(self, arguments: Mapping[str, Any]) -> None:
        refuse_arguments(self.name, arguments)

    def on_session_open(self, session: Session) -> None:
        """Register the order."""
        session.add("pod_set_order", compare)

    def on_session_close(self, session: Session) -> None:
        """Nothing to clean up."""


def compare(left: PodSetView, right: PodSetView) -> int:
    """Negative if `left` comes first."""
    lacks = int(len(right.taken) < right.minimum) - int(len(left.taken) < left.minimum)
    if lacks:
        return lacks
    shares = [len(pod_set.taken) / pod_set.minimum if pod_set.minimum else 0.0 for pod_set in (left, right)]
    return (shares[0] > shares[1]) - (shares[0] < shares[1])
