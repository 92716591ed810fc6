"""Gangs below their minimum go before gangs that only want more than that."""

from collections.abc import Mapping
from typing import Any

from extender.framework.registry import refuse_arguments
from extender.framework.session import Session
from extender.state.gangs import GangView


class Elastic:
    """Orders gangs by how far they have come: below the minimum, at it, above it."""

    name = "elastic"

    def __init__(self, arguments: Mapping[str, Any]) -> None:
        refuse_arguments(self.name, arguments)

    def on_session_open(self, session: Session) -> None:
        """Register the order."""
        session.add("job_order", lambda left, right: _stage(left) - _stage(right))

    def on_session_close(self, session: Session) -> None:
        """Nothing to clean up."""


def _stage(gang: GangView) -> int:
    if not gang.started:
        return 0
    return 1 if gang.taken <= gang.min_member else 2
