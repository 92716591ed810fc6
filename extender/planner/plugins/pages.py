"""Pages over HTTP that show what the planner sees and does: GET /plugins/snapshot and /plugins/job-order."""

from collections.abc import Mapping
from typing import Any

from extender.planner.framework.registry import PlainPlugin
from extender.planner.framework.session import Session
from extender.planner.framework.snapshot import Snapshot as Seen


class Snapshot(PlainPlugin):
    """Shows what the last cycle saw: nodes with what they have and what is free, and gangs with how far they are.

    `muster snapshot` saves the objects themselves.
    """

    name = "snapshot"

    def on_session_open(self, session: Session) -> None:
        """Registers the page; it is made for each call."""
        session.hooks.http_handler.add(lambda: {"snapshot": lambda: page(session.snapshot)})


class ReflectJobOrder(PlainPlugin):
    """Shows the order in which gangs that have not started were tried in the last cycle."""

    name = "reflectjoborder"

    def __init__(self, arguments: Mapping[str, Any]) -> None:
        super().__init__(arguments)
        self._order: list[dict[str, Any]] = []

    def on_session_open(self, session: Session) -> None:
        """Registers the page; it shows the cycle before the one that is running."""
        session.hooks.http_handler.add(lambda: {"job-order": lambda: self._order})

    def on_session_close(self, session: Session) -> None:
        """Keeps the order of this cycle."""
        waiting = [gang for gang in session.snapshot.gangs if not gang.started]
        self._order = [
            {"gang": gang.key, "queue": gang.queue, "priority": gang.priority}
            for gang in session.ordered_gangs(waiting)
        ]


def page(seen: Seen) -> dict[str, Any]:
    """The snapshot as plain data; amounts are (allocatable, free), cpu in milli-CPU. Decisions of the cycle are in."""
    axis = list(seen.axis.items())
    nodes = {
        seen.name(column): {
            name: [int(seen.allocatable[row, column]), int(seen.free[row, column])] for name, row in axis
        }
        for column in seen.order
    }
    gangs = {
        gang.key: {
            "queue": gang.queue,
            "phase": gang.group.status.phase,
            "minMember": gang.min_member,
            "taken": gang.taken,
            "placement": gang.placement.status.phase if gang.placement else None,
        }
        for gang in seen.gangs
    }
    return {"nodes": nodes, "gangs": gangs}
