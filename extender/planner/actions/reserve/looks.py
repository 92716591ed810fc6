"""When it is worth while to search for a reservation, which is a dozen trials of a whole gang."""

from dataclasses import dataclass

from extender.planner.framework.session import Session
from extender.planner.state.gangs import GangView
from muster.api.kubernetes.meta import readable_time

LOOKS = 4
"""Searches for a reservation in one cycle, at most: each is a dozen trials of a whole gang."""
LOOK_AGAIN_S = 5.0
"""Where a search found nothing (better), the next one for this gang comes so much later, and only if nodes changed."""


@dataclass(frozen=True, slots=True)
class Look:
    """A search that found nothing."""

    version: int
    """Of the snapshot's arrays."""
    at: float
    """When, in seconds since the epoch."""
    improving: bool
    """It looked for a better reservation than there was."""
    patient: bool
    """The gang had not waited for so long that nodes are kept for it without a known time."""


Looks = dict[str, Look]
"""By UID of the gang."""


def worth_it(look: Look, last: Look | None) -> bool:
    """Whether a search may find what the last one did not."""
    if last is None or last.improving != look.improving:
        return True
    changed = (last.version, last.patient) != (look.version, look.patient)
    return changed and look.at >= last.at + LOOK_AGAIN_S


def patience_is_over(session: Session, gang: GangView) -> bool:
    """Whether it has waited for so long that nodes are kept for it although nobody knows when it can start."""
    told = (each for each in gang.group.status.conditions if each.type == "Unschedulable" and each.status == "True")
    since = next((each.last_transition_time for each in told), None) or gang.created
    waited_since = readable_time(since)
    return waited_since is not None and session.now - waited_since >= session.reservations.patience_s
