"""Schedules of CronJobs: the times that five fields name, as cron of Unix and Volcano read them. No I/O, no clock.

A day matches by day of month and day of week if one of the two is `*` (or `?`), and by either of them otherwise. Times
are those of the wall clock in the time zone: one that a change to summer time leaves out has no Job, one that the
change back brings twice has two. Looking for a time goes from day to day, so it takes a millisecond at most.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from typing import Final, Protocol
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from muster.resources.runtime import parse_duration_s

MOST_CHARS: Final = 256
SHORTEST_S: Final = 60
"""Of `@every`: Jobs are named by the minute."""
_YEARS: Final = 9
"""The longest time between two days that match: 29 February around a year such as 2100."""
_MACROS: Final = {
    **dict.fromkeys(("@yearly", "@annually"), "0 0 1 1 *"),
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    **dict.fromkeys(("@daily", "@midnight"), "0 0 * * *"),
    "@hourly": "0 * * * *",
}
_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS: Final = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_FIELDS: Final[tuple[tuple[str, int, int, dict[str, int]], ...]] = (
    ("minute", 0, 59, {}),
    ("hour", 0, 23, {}),
    ("day of the month", 1, 31, {}),
    ("month", 1, 12, {name: number for number, name in enumerate(_MONTHS, 1)}),
    ("day of the week", 0, 6, {name: number for number, name in enumerate(_DAYS)}),
)
_PART: Final = re.compile(
    r"(?P<first>\*|\?|[a-z]{3}|[0-9]{1,2})(-(?P<last>[a-z]{3}|[0-9]{1,2}))?(/(?P<step>[0-9]{1,3}))?"
)
_STARS: Final = frozenset({"*", "?", "*/1", "?/1"})
_ZONE: Final = re.compile(r"[A-Za-z0-9_+-]{1,14}(/[A-Za-z0-9_+-]{1,14}){0,3}")


class ScheduleError(ValueError):
    """A schedule or time zone that cannot be read; the message says what would be right."""


class Schedule(Protocol):
    """Times, in seconds since the epoch. `start_s` is when a schedule of intervals begins."""

    def after(self, time_s: float, start_s: float) -> float | None:
        """The first time later than that; None if there is none within years."""

    def latest(self, time_s: float, since_s: float, start_s: float) -> float | None:
        """The last time not later than `time_s`, but later than `since_s`; None if there is none."""


@dataclass(frozen=True, slots=True)
class Every:
    """A time each so many seconds after the start."""

    seconds: float

    def after(self, time_s: float, start_s: float) -> float | None:
        """See Schedule."""
        return start_s + max(1, (time_s - start_s) // self.seconds + 1) * self.seconds

    def latest(self, time_s: float, since_s: float, start_s: float) -> float | None:
        """See Schedule."""
        found = start_s + ((time_s - start_s) // self.seconds) * self.seconds
        return found if found > max(since_s, start_s) else None


@dataclass(frozen=True, slots=True)
class Fields:
    """The times that five fields name in a time zone; `either`: a day matches by month or by week."""

    minutes: tuple[int, ...]
    hours: tuple[int, ...]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    either: bool
    zone: ZoneInfo

    def after(self, time_s: float, start_s: float) -> float | None:  # noqa: ARG002 - for schedules of intervals
        """See Schedule."""
        day = self._date(time_s) - timedelta(days=1)
        for _ in range(366 * _YEARS):
            found = next((each for each in self._times(day) if each > time_s), None)
            if found is not None:
                return found
            day += timedelta(days=1)
        return None

    def latest(self, time_s: float, since_s: float, start_s: float) -> float | None:  # noqa: ARG002 - as above
        """See Schedule."""
        day, first = self._date(time_s) + timedelta(days=1), self._date(since_s) - timedelta(days=1)
        for _ in range(366 * _YEARS):
            if day < first:
                return None
            found = next((each for each in reversed(self._times(day)) if each <= time_s), None)
            if found is not None:
                return found if found > since_s else None
            day -= timedelta(days=1)
        return None

    def _date(self, time_s: float) -> date:
        return datetime.fromtimestamp(time_s, self.zone).date()

    def _times(self, day: date) -> list[float]:
        """The times on a day, in order."""
        if day.month not in self.months or not self._matches(day):
            return []
        minutes = [60 * hour + minute for hour in self.hours for minute in self.minutes]
        begin, end = self._midnight(day), self._midnight(day + timedelta(days=1))
        if begin.utcoffset() == end.utcoffset():
            begin_s = begin.timestamp()
            return [begin_s + 60.0 * each for each in minutes]
        return sorted({time_s for each in minutes for time_s in self._on_the_clock(begin, each)})

    def _midnight(self, day: date) -> datetime:
        return datetime(day.year, day.month, day.day, tzinfo=self.zone)

    def _on_the_clock(self, midnight: datetime, minutes: int) -> Iterator[float]:
        """The times when the clock shows that many minutes after midnight: one, two, or none."""
        wall = midnight + timedelta(minutes=minutes)  # of the wall clock: both are in one zone
        for fold in (0, 1):
            time = wall.replace(fold=fold).astimezone(UTC)
            if time.astimezone(self.zone).replace(tzinfo=None) == wall.replace(tzinfo=None, fold=0):
                yield time.timestamp()

    def _matches(self, day: date) -> bool:
        by_month, by_week = day.day in self.days, day.isoweekday() % 7 in self.weekdays
        return by_month or by_week if self.either else by_month and by_week


@lru_cache(maxsize=4096)
def read(text: str, time_zone: str | None) -> Schedule:
    """The schedule; raises ScheduleError."""
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
    if len(words) != len(_FIELDS):
        raise ScheduleError(f"is not a valid cron expression: it has {len(words)} fields, and must have five")
    minutes, hours, days, months, weekdays = (_field(word, *field) for word, field in zip(words, _FIELDS, strict=True))
    starred = any(part in _STARS for word in (words[2], words[4]) for part in word.split(","))
    result = Fields(tuple(sorted(minutes)), tuple(sorted(hours)), days, months, weekdays, either=not starred, zone=zone)
    if result.after(0.0, 0.0) is None:
        raise ScheduleError("names no day that exists, such as 31 February")
    return result


def zone_of(name: str | None) -> ZoneInfo:
    """The time zone of this name, UTC without one; raises ScheduleError."""
    if name is None:
        return ZoneInfo("UTC")
    if not _ZONE.fullmatch(name) or name.lower() in {"local", "localtime"}:
        raise ScheduleError("unknown timeZone: must be a name of IANA's time zones, such as Europe/Berlin")
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:  # a folder of the database is an OSError
        raise ScheduleError("invalid timeZone: must be a name of IANA's time zones, such as Europe/Berlin") from error


def _interval_s(words: list[str]) -> float:
    try:
        seconds = parse_duration_s(words[0]) if len(words) == 1 else 0.0
    except ValueError as error:
        raise ScheduleError("@every needs a duration as Go writes it, such as 1h30m") from error
    if seconds < SHORTEST_S:
        raise ScheduleError("@every needs a duration of at least a minute, as 1h30m")
    return float(int(seconds))


def _field(word: str, name: str, least: int, most: int, names: dict[str, int]) -> frozenset[int]:
    """The numbers of a field: numbers, names, ranges and steps, with commas between them."""
    found: set[int] = set()
    for part in word.split(","):
        match = _PART.fullmatch(part)
        if match is None:
            raise ScheduleError(f"is not a valid cron expression: {part!r} is no {name}")
        step = int(match["step"] or 1)
        if match["first"] in "*?":
            first, last = (least, most) if match["last"] is None else (most + 1, most)
        else:
            first = _number(match["first"], name, names)
            last = _number(match["last"], name, names) if match["last"] else (most if match["step"] else first)
        if not (least <= first <= last <= most and step > 0):
            raise ScheduleError(f"is not a valid cron expression: {part!r} is no {name} from {least} to {most}")
        found.update(range(first, last + 1, step))
    return frozenset(found)


def _number(text: str, name: str, names: dict[str, int]) -> int:
    if text in names:
        return names[text]
    if not text.isdecimal():
        raise ScheduleError(f"is not a valid cron expression: {text!r} is no {name}")
    return int(text)
