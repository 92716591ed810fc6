"""Gangs of a higher priority class are tried first."""

from collections.abc import Mapping
from typing import Any

from extender.framework.registry import refuse_arguments
from extender.framework.session import Session
from extender.state.gangs import GangView


class Priority:
    """Orders gangs by the value of their PodGroup's priority class."""

    name = "priority"

    def __init__(self, arguments: Mapping[str, Any]) -> None:
        refuse_arguments(self.name, arguments)

    def on_session_open(self, session: Session) -> None:
        """Register the order."""
        session.add("job_order", _higher_first)

    def on_session_close(self, session: Session) -> None:
        """Nothing to clean up."""


def _higher_first(left: GangView, right: GangView) -> int:
    return right.priority - left.priority
