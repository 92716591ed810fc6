"""Shows what the last cycle saw: GET /plugins/snapshot. `muster snapshot` saves the objects themselves."""

from collections.abc import Mapping
from typing import Any

from extender.framework.registry import refuse_arguments
from extender.framework.session import Session
from extender.framework.snapshot import Snapshot as Seen


class Snapshot:
    """Nodes with what they have and what is free, and gangs with how far they are."""

    name = "snapshot"

    def __init__(self, arguments: Mapping[str, Any]) -> None:
        refuse_arguments(self.name, arguments)

    def on_session_open(self, session: Session) -> None:
        """Register the page."""
        session.add("http_handler", lambda: {"snapshot": lambda: page(session.snapshot)})

    def on_session_close(self, session: Session) -> None:
        """Nothing to clean up."""


def page(seen: Seen) -> dict[str, Any]:
    """The snapshot as plain data; amounts are (allocatable, free), cpu in milli-CPU. Decisions of the cycle are in."""
    axis = [(name, row) for name, row in seen.table.axis.items() if row < seen.free.shape[0]]
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
