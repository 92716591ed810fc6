"""Searches for a reservation that found nothing, so that they are not repeated before they may find more. Pure."""

from dataclasses import dataclass

LOOK_AGAIN_S = 5.0
"""Time after a search in vain until the next one for this gang, if nodes have changed."""


@dataclass(frozen=True, slots=True)
class Look:
    """A search that found nothing."""

    version: int
    """Of the snapshot's arrays."""
    at: float
    """Time in seconds since the epoch."""
    improving: bool
    """The gang had a reservation, and the search was for an earlier one."""
    patient: bool
    """The gang's `patience_s` was not over."""


Looks = dict[str, Look]
"""By UID of the gang."""


def worth_it(look: Look, last: Look | None) -> bool:
    """Return True if a search may find more than the last one."""
    if last is None or last.improving != look.improving:
        return True
    changed = (last.version, last.patient) != (look.version, look.patient)
    return changed and look.at >= last.at + LOOK_AGAIN_S
