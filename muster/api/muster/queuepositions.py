"""Queue position and expected start of a waiting gang, rounded as in the gang's status.

Positions and starts change whenever another gang starts, and each change costs a write of a PodGroup. Therefore
positions are exact up to ten, and larger ones are rounded to tens, then to hundreds. If the start of one gang changes a
hundred positions, only about twenty PodGroups are written.
"""

from math import ceil

from muster.api.kubernetes.meta import format_time, readable_time

EXACT = 10
"""The last position that is shown exactly."""
MINUTE_S = 60


def rough_place(place: int) -> int:
    """Return the first position of the range that contains this position, such as 7 for 7, 21 for 24, 101 for 150."""
    return 0 if place < 1 else (place - 1) // _step(place) * _step(place) + 1


def place_text(place: int, waiting: int = 0) -> str:
    """Return a rounded position as text: `7`, `21-30`, or `21-24` if only 24 gangs wait.

    `waiting` is the number of waiting gangs, or 0 if unknown.
    """
    last = place + _step(place) - 1
    last = min(last, max(waiting, place)) if waiting else last
    return str(place) if last == place else f"{place}-{last}"


def rough_start(moment: str) -> str | None:
    """Return the end of the minute of an expected start (RFC 3339); None for an empty or unreadable time."""
    seconds = readable_time(moment)
    try:
        return None if seconds is None else format_time(ceil(seconds / MINUTE_S) * MINUTE_S)
    except ValueError:  # a minute before or after the range of the calendar
        return None


def _step(place: int) -> int:
    """Return the number of positions in the range that contains this position."""
    return 1 if place <= EXACT else int(10 ** (len(str(place - 1)) - 1))
