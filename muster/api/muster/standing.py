"""Queue position of a waiting gang, as roughly as it is written: its place, and its expected start.

Both change whenever another gang moves, and each change is a write of a PodGroup. So a place is exact up to ten, then
it is the first of ten, later of a hundred. One start moves a hundred gangs, and changes what is said of twenty.
"""

from math import ceil

from muster.api.kubernetes.meta import format_time, readable_time

EXACT = 10
"""The last place that is shown exactly."""
MINUTE_S = 60


def rough_place(place: int) -> int:
    """Return the first of the places that are shown as one: 7 of 7, 21 of 24, 101 of 150; 0 stays 0."""
    return 0 if place < 1 else (place - 1) // _step(place) * _step(place) + 1


def place_words(place: int, waiting: int = 0) -> str:
    """Return a rough place as text: `7`, `21-30`, and `21-24` where no more than 24 are `waiting`; 0: not known."""
    last = place + _step(place) - 1
    last = min(last, max(waiting, place)) if waiting else last
    return str(place) if last == place else f"{place}-{last}"


def rough_start(moment: str) -> str | None:
    """Return an expected start (RFC 3339) as the end of its minute; None if it is empty or cannot be read."""
    seconds = readable_time(moment)
    try:
        return None if seconds is None else format_time(ceil(seconds / MINUTE_S) * MINUTE_S)
    except ValueError:  # a minute before or after all that the calendar has
        return None


def _step(place: int) -> int:
    """Return the number of places that are shown as one."""
    return 1 if place <= EXACT else int(10 ** (len(str(place - 1)) - 1))
