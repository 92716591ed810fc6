"""Usage of queues in each period, as the recorder publishes it in the ConfigMap `muster-usage`. Pure.

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
"""Maximum number of counted resources per queue, in addition to the resources of its budgets. Users can invent any
number of resource names."""
AHEAD_S: Final = 600.0
"""Maximum number of seconds by which a document's time may be in the future, because the clocks of machines differ."""
AGAIN_S: Final = 300.0
"""Maximum interval between two publications, in seconds."""
Period = Literal["month", "week", "day"]
PERIODS: Final[tuple[Period, ...]] = get_args(Period)
"""Periods to which usage budgets apply."""


class UsagePeriod(NamedTuple):
    """A period: its name, its start time and its end time (both in seconds since the epoch)."""

    name: str
    begin: float
    end: float


def period_of(period: Period, now_s: float) -> UsagePeriod:
    """Return the month, week or day of a time in UTC, named as 2026-11, 2026-W48 (an ISO 8601 week) or 2026-11-26."""
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
    """Name of the month in UTC, such as 2026-11."""
    seconds: dict[str, float] = {}
    """Maps a resource to its usage in this month in unit-seconds, where a unit is a GPU, a core, a byte or a pod."""
    week: PeriodUsage = _NOTHING
    day: PeriodUsage = _NOTHING

    def within(self, period: Period, name: str) -> Mapping[str, float]:
        """Return the usage in the period with this name; empty if the counted period has another name."""
        if period == "month":
            return self.seconds if self.month == name else {}
        usage = self.week if period == "week" else self.day
        return usage.seconds if usage.name == name else {}

    def amounts(self) -> Iterator[float]:
        """Yield the usage amounts of all resources and periods."""
        for each in (self.seconds, self.week.seconds, self.day.seconds):
            yield from each.values()


class PublishedUsage(msgspec.Struct, frozen=True):
    """The usage of all queues up to a time, in seconds since the epoch."""

    until: float
    queues: dict[str, QueueUsage] = {}
    periods: tuple[str, ...] = ("month",)
    """Kinds of periods in which usage is counted; a recorder of an earlier version counts only months."""
    left_out: tuple[str, ...] = ()
    """Queues whose usage is left out because the document would be too long; the empty name stands for all queues."""


_USAGE: Final = msgspec.json.Decoder(PublishedUsage)


def silent_s(usage: PublishedUsage, now: float) -> float:
    """Return the number of seconds by which the next publication is overdue; 0 if it is not overdue."""
    since = now - usage.until
    return since if since > 2 * AGAIN_S else 0.0


def read_usage(data: Mapping[str, Any]) -> PublishedUsage:
    """Return the usage in the data of a ConfigMap; raise ValueError with the reason if there is no usable document."""
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
