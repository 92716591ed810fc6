"""Usage of queues by period, as the recorder publishes it in the ConfigMap `muster-usage`. Pure.

The published document is not trusted: if it is too long or invalid, it is ignored, and the reason is reported.
"""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Literal, NamedTuple, get_args

import msgspec

KEY: Final = "usage.json"
MOST_CHARS: Final = 900_000
"""Maximum length of the document; the API server accepts ConfigMaps of 1 MiB."""
RESOURCES_KEPT: Final = 16
"""Maximum number of resources counted per queue, besides the resources of its budgets, because users can invent any
number of names."""
AHEAD_S: Final = 600.0
"""Maximum number of seconds by which the time in a document may be in the future, because clocks differ."""
AGAIN_S: Final = 300.0
"""Maximum interval between two publications, in seconds."""
Period = Literal["month", "week", "day"]
PERIODS: Final[tuple[Period, ...]] = get_args(Period)
"""Periods to which usage budgets apply."""


class UsagePeriod(NamedTuple):
    """One period: its name, its beginning and its end, in seconds since the epoch."""

    name: str
    begin: float
    end: float


def period_of(period: Period, now_s: float) -> UsagePeriod:
    """Return the period of a time in UTC: 2026-11, 2026-W48 (which begins on Monday, as in ISO 8601) or 2026-11-26."""
    now = datetime.fromtimestamp(now_s, UTC)
    day = datetime(now.year, now.month, now.day, tzinfo=UTC)
    if period == "day":
        return UsagePeriod(f"{day:%Y-%m-%d}", day.timestamp(), (day + timedelta(days=1)).timestamp())
    if period == "week":
        year, week, weekday = day.isocalendar()
        monday = day - timedelta(days=weekday - 1)
        return UsagePeriod(f"{year}-W{week:02}", monday.timestamp(), (monday + timedelta(days=7)).timestamp())
    begin = day.replace(day=1)
    end = datetime(now.year + now.month // 12, now.month % 12 + 1, 1, tzinfo=UTC)
    return UsagePeriod(f"{now.year}-{now.month:02}", begin.timestamp(), end.timestamp())


class PeriodUsage(msgspec.Struct, frozen=True):
    """Usage of one queue's gangs in one period."""

    name: str = ""
    seconds: dict[str, float] = {}


_NOTHING: Final = PeriodUsage()


class QueueUsage(msgspec.Struct, frozen=True):
    """Usage by the gangs of one queue, without the queues below it."""

    month: str = ""
    """Name of the month in UTC, e.g. 2026-11."""
    seconds: dict[str, float] = {}
    """Maps a resource to its usage in this month in unit-seconds, where a unit is a GPU, a core, a byte or a pod."""
    week: PeriodUsage = _NOTHING
    day: PeriodUsage = _NOTHING

    def within(self, period: Period, name: str) -> Mapping[str, float]:
        """Return the usage in the period with this name; empty if another period was counted."""
        if period == "month":
            return self.seconds if self.month == name else {}
        usage = self.week if period == "week" else self.day
        return usage.seconds if usage.name == name else {}

    def amounts(self) -> Iterator[float]:
        """Yield all amounts, of all resources and periods."""
        for each in (self.seconds, self.week.seconds, self.day.seconds):
            yield from each.values()


class PublishedUsage(msgspec.Struct, frozen=True):
    """The usage of all queues up to a time, in seconds since the epoch."""

    until: float
    queues: dict[str, QueueUsage] = {}
    periods: tuple[str, ...] = ("month",)
    """Periods that are counted; a recorder of an earlier version counts only months."""
    left_out: tuple[str, ...] = ()
    """Queues whose usage is left out because the document would be too long; an empty name stands for all queues."""


_USAGE: Final = msgspec.json.Decoder(PublishedUsage)


def silent_s(usage: PublishedUsage, now: float) -> float:
    """Return the number of seconds by which the next publication is overdue; 0 if it is not overdue."""
    since = now - usage.until
    return since if since > 2 * AGAIN_S else 0.0


def read_usage(data: Mapping[str, Any]) -> PublishedUsage:
    """Return the usage in the data of a ConfigMap; if there is none, raise ValueError with the reason."""
    text = data.get(KEY)
    if not isinstance(text, str):
        raise ValueError(f"it has no key {KEY}")  # noqa: TRY004 - the data is wrong, not an argument's type
    if len(text) > MOST_CHARS:
        raise ValueError(f"its {KEY} has more than {MOST_CHARS} characters")
    try:
        usage = _USAGE.decode(text)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        raise ValueError(f"its {KEY} cannot be read: {error}") from error
    numbers = [usage.until, *(each for queue in usage.queues.values() for each in queue.amounts())]
    if not all(0 <= number < float("inf") for number in numbers):
        raise ValueError(f"its {KEY} has amounts below 0")
    return usage
