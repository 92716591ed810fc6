"""Gangs start whole: which gangs can be tried, and which of them first."""

from collections.abc import Mapping
from typing import Any

from extender.framework.registry import refuse_arguments
from extender.framework.session import Session
from extender.state.gangs import GangView


class Gang:
    """A gang is tried only when it has enough members to start; one that was begun goes before one that was not."""

    name = "gang"

    def __init__(self, arguments: Mapping[str, Any]) -> None:
        refuse_arguments(self.name, arguments)

    def on_session_open(self, session: Session) -> None:
        """Register readiness and order."""
        session.add("job_ready", lambda gang: not missing_members(gang))
        session.add("job_order", _begun_first)

    def on_session_close(self, session: Session) -> None:
        """Nothing to clean up."""


def missing_members(gang: GangView) -> str:
    """Empty if enough members exist (or can be made from a template) to start; else a sentence for the user."""
    seats = gang.open_seats()
    counts = {pod_set.name: len(pod_set.taken) + len(seats[pod_set.name]) for pod_set in gang.pod_sets}
    if gang.started or gang.satisfied(counts):
        return ""
    return f"{sum(counts.values())} of the {gang.min_member} pods that start together exist"


def _begun_first(left: GangView, right: GangView) -> int:
    """A gang that has some members but not enough of them is completed before anything else is started."""
    return int(right.incomplete) - int(left.incomplete)
