"""Queue positions and expected starts of waiting gangs after a cycle."""

from collections import Counter
from typing import NamedTuple

from extender.planner.actions.allocate import wants_nodes
from extender.planner.framework.session import Session
from extender.planner.state.gangs import GangView
from muster.api.muster.queuepositions import rough_place, rough_start


class QueuePosition(NamedTuple):
    """Queue position of a gang, rounded as in the PodGroup's status (`muster.api.muster.queuepositions`)."""

    place: int = 0
    """Position of the gang among the waiting gangs of its queue, from 1; 0 if the gang does not wait."""
    expected_start: str | None = None
    """Expected start of the gang (RFC 3339); None if no nodes are reserved or their release time is unknown."""


def waits(session: Session, gang: GangView) -> bool:
    """Return True for a gang that has not started and has no placed slots."""
    if gang.started or gang.active or gang.group.status.phase == "Completed":
        return False
    return gang.pending or wants_nodes(session, gang)


def waiting(session: Session) -> list[GangView]:
    """Return the gangs that wait for nodes, in scheduling order."""
    return session.ordered_gangs([gang for gang in session.snapshot.gangs if waits(session, gang)])


def waiting_by_queue(session: Session) -> Counter[str]:
    """Return each queue's number of waiting gangs, without child queues; queues without waiting gangs are left out."""
    return Counter(gang.queue for gang in session.snapshot.gangs if waits(session, gang))


def queue_positions(session: Session) -> dict[str, QueuePosition]:
    """Return the queue position of each waiting gang, keyed by the gang's key."""
    places: Counter[str] = Counter()
    found = {}
    for gang in waiting(session):
        places[gang.queue] += 1
        found[gang.key] = QueuePosition(rough_place(places[gang.queue]), rough_start(_expected(gang)))
    return found


def _expected(gang: GangView) -> str:
    placement = gang.placement
    return placement.status.expected_at if placement and placement.status.phase == "Reserved" else ""
