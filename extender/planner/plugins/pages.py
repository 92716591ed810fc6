"""HTTP pages of the planner's snapshot (GET /plugins/snapshot) and scheduling order (/plugins/job-order)."""

from collections.abc import Mapping
from typing import Any

from extender.planner.framework.registry import PlainPlugin
from extender.planner.framework.session import Session
from extender.planner.framework.snapshot import Snapshot as Seen


class SnapshotPages(PlainPlugin):
    """Page that shows the last cycle's nodes and gangs; the command `muster snapshot` saves the objects themselves."""

    name = "snapshot"

    def on_session_open(self, session: Session) -> None:
        """Register the page of the snapshot, which is computed at each request."""
        session.hooks.http_handler.add(lambda: {"snapshot": lambda: page(session.snapshot)})


class ReflectJobOrder(PlainPlugin):
    """Page that shows the scheduling order of the last cycle, for gangs that have not started."""

    name = "reflectjoborder"

    def __init__(self, arguments: Mapping[str, Any]) -> None:
        super().__init__(arguments)
        self._order: list[dict[str, Any]] = []

    def on_session_open(self, session: Session) -> None:
        """Register the page of the scheduling order; during a cycle, it shows the previous cycle's order."""
        session.hooks.http_handler.add(lambda: {"job-order": lambda: self._order})

    def on_session_close(self, session: Session) -> None:
        """Store the scheduling order of this cycle."""
        waiting = [gang for gang in session.snapshot.gangs if not gang.started]
        self._order = [
            {"gang": gang.key, "queue": gang.queue, "priority": gang.priority}
            for gang in session.ordered_gangs(waiting)
        ]


def page(seen: Seen) -> dict[str, Any]:
    """Return the snapshot and the cycle's decisions as data; quantities are (allocatable, free), CPU in milli-CPU."""
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
