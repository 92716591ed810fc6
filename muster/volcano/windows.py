"""Times of the week in which a queue may use less: `Mon-Fri 08:00-18:00 Europe/Berlin nvidia.com/gpu=32`. Pure.

A window begins and ends at times of the wall clock in its zone, also on days on which the clock is changed. One that
ends at or before its beginning ends on the next day.
"""

import re
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple
from zoneinfo import ZoneInfo

from muster.resources.vector import Vector
from muster.volcano.schedule import ScheduleError, zone_of

DAYS: Final = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
EXAMPLE: Final = "write it like Mon-Fri 08:00-18:00 Europe/Berlin nvidia.com/gpu=32"
_MINUTES: Final = 24 * 60
_HOURS: Final = re.compile(r"([01][0-9]|2[0-4]):([0-5][0-9])-([01][0-9]|2[0-4]):([0-5][0-9])", re.ASCII)
_WEEK: Final = 7


class Window(NamedTuple):
    """One window, and the most that the queue may use within it."""

    days: frozenset[int]
    """Days on which it begins; Monday is 0."""
    begin: int
    """Minutes after midnight."""
    end: int
    """Minutes after midnight of the day on which it begins; beyond 24 hours on the next day."""
    zone: ZoneInfo
    limits: Vector
    text: str
    """As its author wrote it, without the amounts."""

    def until(self, now_s: float) -> float | None:
        """Return when the window that is open now ends, in seconds since the epoch; None if none is open."""
        return max((end for begin, end in self._near(now_s) if begin <= now_s < end), default=None)

    def next_change(self, now_s: float) -> float:
        """Return the next time after now at which it begins or ends, in seconds since the epoch."""
        return min(at for times in self._near(now_s) for at in times if at > now_s)

    def _near(self, now_s: float) -> list[tuple[float, float]]:
        """Return beginning and end on the days from yesterday to a week ahead."""
        try:
            today = datetime.fromtimestamp(now_s, self.zone).date()
            days = [today + timedelta(days=ahead) for ahead in range(-1, _WEEK + 2)]
        except (OverflowError, ValueError, OSError):
            return [(float("inf"), float("inf"))]
        midnights = [datetime(day.year, day.month, day.day) for day in days if day.weekday() in self.days]  # noqa: DTZ001
        return [(self._at(day, self.begin), self._at(day, self.end)) for day in midnights]

    def _at(self, midnight: datetime, minutes: int) -> float:
        """Return the moment at which the wall clock of the zone shows so many minutes after this midnight."""
        return (midnight + timedelta(minutes=minutes)).replace(tzinfo=self.zone).astimezone(UTC).timestamp()


def read_window(days: str, hours: str, zone: str | None, limits: Vector) -> Window:
    """Return the window; ValueError says which word cannot be read, and how to write it."""
    found = _HOURS.fullmatch(hours)
    if found is None:
        raise ValueError(f"{hours!r} is no time of day from 00:00-24:00; {EXAMPLE}")
    begin, end = (int(found[each]) * 60 + int(found[each + 1]) for each in (1, 3))
    if max(begin, end) > _MINUTES or begin == end:
        raise ValueError(f"{hours!r} is no time of day from 00:00-24:00; {EXAMPLE}")
    try:
        known = zone_of(zone)
    except ScheduleError:
        raise ValueError(f"{zone!r} is none of IANA's time zones, such as Europe/Berlin; {EXAMPLE}") from None
    text = " ".join(filter(None, (days, hours, zone or "UTC")))
    return Window(_days(days), begin, end if end > begin else end + _MINUTES, known, limits, text)


def _days(text: str) -> frozenset[int]:
    found: set[int] = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        if first not in DAYS or (last or first) not in DAYS:
            raise ValueError(f"{part!r} is no day or days; they are {', '.join(DAYS)}; {EXAMPLE}")
        begin, end = DAYS.index(first), DAYS.index(last or first)
        found |= {day % _WEEK for day in range(begin, end + 1 if end >= begin else end + _WEEK + 1)}
    return frozenset(found)
