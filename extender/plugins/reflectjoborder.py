"""Shows the order in which gangs were tried in the last cycle: GET /plugins/job-order on the extender."""

from collections.abc import Mapping
from typing import Any

from extender.framework.registry import refuse_arguments
from extender.framework.session import Session


class ReflectJobOrder:
    """Keeps the last order."""

    name = "reflectjoborder"

    def __init__(self, arguments: Mapping[str, Any]) -> None:
        refuse_arguments(self.name, arguments)
        self._order: list[dict[str, Any]] = []

    def on_session_open(self, session: Session) -> None:
        """Register the page."""
        session.add("http_handler", lambda: {"job-order": lambda: self._order})

    def on_session_close(self, session: Session) -> None:
        """Keep the order of this cycle."""
        waiting = [gang for gang in session.snapshot.gangs if not gang.started]
        self._order = [
            {"gang": gang.key, "queue": gang.queue, "priority": gang.priority}
            for gang in session.ordered_gangs(waiting)
        ]
