"""Schedules of CronJobs, given by five fields or an interval. The module does no I/O and reads no clock.

cronsim parses the five fields, and handles time zones like Debian's cron. If the start of daylight saving time skips a
scheduled time, the first time after the gap is used. A time that occurs twice at the end of daylight saving time is
used once, unless minutes or hours are `*`. If day of month or day of week is `*`, a day must match both of these
fields; otherwise, it must match one of them. This is Volcano's rule; Debian also counts `*/2` as `*`.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from cronsim import CronSim, CronSimError

from muster.resources.runtime import parse_duration_s

MOST_CHARS: Final = 256
SHORTEST_S: Final = 60
"""Minimum interval of `@every` in seconds, because the names of Jobs contain the minute."""
_MACROS: Final = {
    **dict.fromkeys(("@yearly", "@annually"), "0 0 1 1 *"),
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    **dict.fromkeys(("@daily", "@midnight"), "0 0 * * *"),
    "@hourly": "0 * * * *",
}
_FIELDS: Final = 5
_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_NAMES: Final = frozenset({*_MONTHS, "sun", "mon", "tue", "wed", "thu", "fri", "sat"})
_CHARS: Final = re.compile(r"[0-9a-z*/,-]+")
_DAYS: Final = {2: "1-31", 4: "0-6"}
"""Ranges of numbers for which `*` stands in the fields day of month and day of week."""
_ZONE: Final = re.compile(r"[A-Za-z0-9_+-]{1,14}(/[A-Za-z0-9_+-]{1,14}){0,3}")


class ScheduleError(ValueError):
    """Raised if a schedule or time zone is invalid; the message describes the correct format."""


@dataclass(frozen=True, slots=True)
class Every:
    """A schedule that repeats at a fixed interval, counted from its start; times are in seconds since the epoch."""

    seconds: float

    def after(self, time_s: float, start_s: float) -> float:
        """Return the first scheduled time after `time_s`; `start_s` is the start of the schedule."""
        return start_s + max(1, (time_s - start_s) // self.seconds + 1) * self.seconds

    def latest(self, time_s: float, since_s: float, start_s: float) -> float | None:
        """Return the last scheduled time up to `time_s` but after `since_s`; None without such a time."""
        found = start_s + ((time_s - start_s) // self.seconds) * self.seconds
        return found if found > max(since_s, start_s) else None


@dataclass(frozen=True, slots=True)
class Fields:
    """A schedule by the five fields of a cron expression, in a time zone."""

    text: str
    zone: ZoneInfo

    def after(self, time_s: float, start_s: float) -> float:  # noqa: ARG002 - for schedules of intervals
        """Return the first scheduled time after `time_s`, like `Every.after`."""
        # in the hour that is repeated at the end of daylight saving time, its first occurrence comes first
        return next(each for each in self._times(time_s) if each > time_s)

    def latest(self, time_s: float, since_s: float, start_s: float) -> float | None:
        """Return the last scheduled time in the range, like `Every.latest`."""
        before = next(each for each in self._times(time_s + 1, reverse=True) if each <= time_s)
        following = self.after(before, start_s)  # in the repeated hour, the step back may go too far
        found = following if following <= time_s else before
        return found if found > since_s else None

    def _times(self, time_s: float, *, reverse: bool = False) -> Iterator[float]:
        begin = datetime.fromtimestamp(time_s, self.zone)
        return (each.timestamp() for each in CronSim(self.text, begin, reverse=reverse))


Schedule = Every | Fields


@lru_cache(maxsize=4096)
def read_schedule(text: str, time_zone: str | None) -> Schedule:
    """Parse a schedule in this time zone; raises ScheduleError for an invalid one."""
    if len(text) > MOST_CHARS:
        raise ScheduleError(f"must have at most {MOST_CHARS} characters")
    if "TZ=" in text:
        raise ScheduleError("must not contain TZ or CRON_TZ; set timeZone")
    zone, words = zone_of(time_zone), text.lower().split()
    if words[:1] == ["@every"]:
        return Every(_interval_s(words[1:]))
    if words[:1] and words[0].startswith("@"):
        if len(words) > 1 or words[0] not in _MACROS:
            raise ScheduleError(f"must be five fields, @every with a duration, or one of {', '.join(_MACROS)}")
        words = _MACROS[words[0]].split()
    if len(words) != _FIELDS:
        raise ScheduleError(f"is not a valid cron expression: it has {len(words)} fields, and must have five")
    fields = " ".join(_field(index, word) for index, word in enumerate(words))
    try:
        CronSim(fields, datetime.fromtimestamp(0, zone))
    except CronSimError as error:
        raise ScheduleError(f"is not a valid cron expression: {str(error).lower()}") from error
    return Fields(fields, zone)


def zone_of(name: str | None) -> ZoneInfo:
    """Return the time zone with this name, or UTC without a name; raises ScheduleError for an unknown name."""
    if name is None:
        return ZoneInfo("UTC")
    if not _ZONE.fullmatch(name) or name.lower() in {"local", "localtime"}:
        raise ScheduleError("unknown timeZone: must be a name from the IANA time zone database, such as Europe/Berlin")
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:  # a folder of the database is an OSError
        raise ScheduleError(
            "invalid timeZone: must be a name from the IANA time zone database, such as Europe/Berlin"
        ) from error


def _interval_s(words: list[str]) -> float:
    try:
        seconds = parse_duration_s(words[0]) if len(words) == 1 else 0.0
    except ValueError as error:
        raise ScheduleError("@every requires a duration in Go's format, such as 1h30m") from error
    if seconds < SHORTEST_S:
        raise ScheduleError("@every requires a duration of at least a minute, such as 1h30m")
    return float(int(seconds))


def _field(index: int, word: str) -> str:
    """Return a field of a schedule in syntax that Volcano and cronsim interpret in the same way.

    Raises ScheduleError for other syntax.
    """
    plain = word.replace("?", "*")
    if not _CHARS.fullmatch(plain) or not _NAMES.issuperset(re.findall("[a-z]+", plain)):
        raise ScheduleError(
            f"is not a valid cron expression: {word!r} may contain only numbers, names, '*', '-', ',' and '/'"
        )
    if index in _DAYS and plain.startswith("*/") and plain != "*/1":
        return plain.replace("*/", f"{_DAYS[index]}/")
    return plain
