"""Annotations that limit a queue in addition to its capability: per user, by GPU model, by time, and by usage budget.

Another annotation sets the queue's weights for single resources, in addition to the weight in the queue's spec, as in
KAI-Scheduler. Admission, the planner and the command line all read the limits with this module. Pure. Admission rejects
an annotation with an error. If admission was bypassed, only the annotation with the error is ignored.

A window (`Mon-Fri 08:00-18:00 Europe/Berlin nvidia.com/gpu=32`) begins and ends at wall-clock times in its zone, also
on days when the clock changes. If the end time of a window is not after its start time, the window ends on the next
day.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any, Final, Literal, NamedTuple
from zoneinfo import ZoneInfo

from muster.api import names
from muster.api.fields import FieldError
from muster.api.limits import LIMIT_WINDOWS, RESOURCES
from muster.api.muster.usage import PERIODS, Period
from muster.api.volcano.scheduling import Queue
from muster.resources.quantity import parse
from muster.resources.vector import MILLI, Vector
from muster.volcano.schedule import ScheduleError, zone_of

Mode = Literal["enforce", "warn"]
MODES: Final[tuple[Mode, ...]] = ("enforce", "warn")
HOUR_S: Final = 3600
_EXAMPLE: Final = "nvidia.com/gpu=10000h/month,nvidia.com/gpu=500h/day"
_MODEL: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?", re.ASCII)
_RESOURCE: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._/-]{0,250}[A-Za-z0-9])?", re.ASCII)
_WORDS: Final = 4
"""Maximum number of words in a time window: days, hours, zone and quantities."""
_DAYS: Final = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_WINDOW_EXAMPLE: Final = "write it like Mon-Fri 08:00-18:00 Europe/Berlin nvidia.com/gpu=32"
_MINUTES: Final = 24 * 60
_HOURS: Final = re.compile(r"([01][0-9]|2[0-4]):([0-5][0-9])-([01][0-9]|2[0-4]):([0-5][0-9])", re.ASCII)
_WEEK: Final = 7


class UsageWindow(NamedTuple):
    """A time window, and the maximum amounts that the queue may use during the window."""

    days: frozenset[int]
    """Days on which the window begins; Monday is 0."""
    begin: int
    """Time at which the window begins, in minutes after midnight."""
    end: int
    """Time at which the window ends, in minutes after midnight of the day on which it begins; more than 24 hours mean
    the next day."""
    zone: ZoneInfo
    limits: Vector
    text: str
    """The window as its author wrote it, without the quantities."""

    def until(self, now_s: float) -> float | None:
        """Return the end of the window, in seconds since the epoch, if the window is active now; otherwise None."""
        return max((end for begin, end in self._near(now_s) if begin <= now_s < end), default=None)

    def _near(self, now_s: float) -> list[tuple[float, float]]:
        """Return the start and end times of the windows that begin yesterday, today and tomorrow."""
        try:
            today = datetime.fromtimestamp(now_s, self.zone).date()
            days = [today + timedelta(days=ahead) for ahead in (-1, 0, 1)]
        except (OverflowError, ValueError, OSError):
            return []
        midnights = [datetime(day.year, day.month, day.day) for day in days if day.weekday() in self.days]  # noqa: DTZ001
        return [(self._at(day, self.begin), self._at(day, self.end)) for day in midnights]

    def _at(self, midnight: datetime, minutes: int) -> float:
        """Return the time at which the zone's wall clock shows this number of minutes after midnight of this day."""
        return (midnight + timedelta(minutes=minutes)).replace(tzinfo=self.zone).astimezone(UTC).timestamp()


def read_window(days: str, hours: str, zone: str | None, limits: Vector) -> UsageWindow:
    """Return the window; raises ValueError that names the unreadable word and the correct format."""
    found = _HOURS.fullmatch(hours)
    begin, end = (int(found[each]) * 60 + int(found[each + 1]) for each in (1, 3)) if found else (0, 0)
    if max(begin, end) > _MINUTES or begin == end:
        raise ValueError(f"{hours!r} is not a time of day from 00:00 to 24:00; {_WINDOW_EXAMPLE}")
    try:
        known = zone_of(zone)
    except ScheduleError:
        raise ValueError(
            f"{zone!r} is not a name from the IANA time zone database, such as Europe/Berlin; {_WINDOW_EXAMPLE}"
        ) from None
    text = " ".join(filter(None, (days, hours, zone or "UTC")))
    return UsageWindow(_days(days), begin, end if end > begin else end + _MINUTES, known, limits, text)


def _days(text: str) -> frozenset[int]:
    found: set[int] = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        if first not in _DAYS or (last or first) not in _DAYS:
            raise ValueError(f"{part!r} is not a day or a range of days: {', '.join(_DAYS)}; {_WINDOW_EXAMPLE}")
        begin, end = _DAYS.index(first), _DAYS.index(last or first)
        found |= {day % _WEEK for day in range(begin, end + 1 if end >= begin else end + _WEEK + 1)}
    return frozenset(found)


class UsageBudget(NamedTuple):
    """The maximum usage of one resource in each period."""

    resource: str
    period: Period
    most: int
    """Maximum usage in unit-seconds, where units are thousandths of CPUs or base units."""


class QueueLimits(NamedTuple):
    """The limits of one queue, which apply to the queue and its descendants together."""

    per_user: Vector = {}  # noqa: RUF012 - never changed
    """Maximum amounts that one user may use, in thousandths of CPUs or base units."""
    by_model: Mapping[str, int] = {}
    """Maps a GPU model to the maximum number of its GPUs, in thousandths."""
    windows: tuple[UsageWindow, ...] = ()
    budgets: tuple[UsageBudget, ...] = ()
    """Usage budgets of the queue, each of which applies separately."""
    enforced: bool = False
    """True if budgets are enforced; False if an exceeded budget is only reported."""

    def __bool__(self) -> bool:
        """Return True if the queue has any limit."""
        return bool(self.per_user or self.by_model or self.windows or self.budgets)


NONE: Final = QueueLimits()


def limits_of(annotations: Mapping[str, str]) -> QueueLimits:
    """Return the limits in these annotations of a Queue, except for limits that cannot be parsed."""
    texts = tuple(annotations.get(key, "") for key in names.QUEUE_LIMIT_KEYS)
    return _limits(texts) if any(texts) else NONE


def has_limits(queue: Queue) -> bool:
    """Return True if a queue itself has a limit that can keep a gang from starting."""
    limits = limits_of(queue.metadata.annotations)
    return bool(queue.spec.capability or (limits if limits.enforced else limits._replace(budgets=())))


def mistakes(annotations: Mapping[str, str], path: str) -> Iterator[FieldError]:
    """Yield the errors in the limits of these annotations, at this field path."""
    for key in names.QUEUE_LIMIT_KEYS:
        text = annotations.get(key)
        if text is not None:
            try:
                _READERS[key][1](text)
            except ValueError as error:
                yield FieldError(f"{path}[{key}]", str(error), text)
    if names.BUDGET_MODE in annotations and names.BUDGET not in annotations:
        message = f"has no effect without {names.BUDGET}"
        yield FieldError(f"{path}[{names.BUDGET_MODE}]", message, annotations[names.BUDGET_MODE])


def limited_resources(annotations: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield a pair of annotation key and resource for each resource that these limits and weights name."""
    limits = limits_of(annotations)
    yield from ((names.MAX_PER_USER, each) for each in limits.per_user)
    yield from ((names.WINDOWS, each) for window in limits.windows for each in window.limits)
    yield from ((names.BUDGET, each.resource) for each in limits.budgets)
    with suppress(ValueError):
        yield from ((names.QUEUE_WEIGHTS, each) for each in read_weights(annotations.get(names.QUEUE_WEIGHTS, "")))


def is_model(model: str, product: str) -> bool:
    """Return True if a node with this product label has GPUs of this model.

    The model is the label or consecutive words of it, in upper or lower case: `H100`, `a100-sxm4` or
    `NVIDIA-A100-SXM4-80GB`.
    """
    words, wanted = product.lower().split("-"), model.lower().split("-")
    return any(words[at : at + len(wanted)] == wanted for at in range(len(words) - len(wanted) + 1))


@lru_cache(maxsize=4096)
def _limits(texts: tuple[str, ...]) -> QueueLimits:
    found: dict[str, Any] = {}
    for key, text in zip(names.QUEUE_LIMIT_KEYS, texts, strict=True):
        field, read = _READERS[key]
        with suppress(ValueError):
            if text:
                found[field] = read(text)
    return QueueLimits(**found)


def read_amounts(text: str) -> Vector:
    """Return the quantities of resources in a text; raises ValueError that describes an error in the text."""
    return _amounts(text, _RESOURCE, "nvidia.com/gpu=16,pods=100")


def _read_models(text: str) -> dict[str, int]:
    return _amounts(text, _MODEL, "H100=64,A100=128", "nvidia.com/gpu")


def _read_budgets(text: str) -> tuple[UsageBudget, ...]:
    found: dict[tuple[str, Period], UsageBudget] = {}
    for name, number in _pairs(text, _RESOURCE, _EXAMPLE):
        hours, _, of = number.partition("h/")
        period = next((each for each in PERIODS if each == of), None)
        if period is None:
            raise ValueError(
                f"{number[:100]!r} is not a number of hours per {', '.join(PERIODS)}; write it like {_EXAMPLE}"
            )
        if (name, period) in found:
            raise ValueError(f"{name!r} has two budgets per {period}; name it once")
        found[name, period] = UsageBudget(name, period, _amount(name, hours) * HOUR_S)
    return (*found.values(),)


def _is_enforced(text: str) -> bool:
    if text not in MODES:
        raise ValueError(f"{text!r} should be one of {', '.join(MODES)}")
    return text == "enforce"


def _read_windows(text: str) -> tuple[UsageWindow, ...]:
    parts = [part for part in (each.strip() for each in text.split(";", LIMIT_WINDOWS.value + 1)) if part]
    for error in LIMIT_WINDOWS.exceeded_by("it", len(parts)):
        raise ValueError(error.message)
    if not parts:
        raise ValueError(f"it names no window; {_WINDOW_EXAMPLE}")
    found = []
    for part in parts:
        words = part.split()
        if len(words) not in {_WORDS - 1, _WORDS}:
            raise ValueError(f"{part[:100]!r} is not a window: days, hours, time zone and amounts; {_WINDOW_EXAMPLE}")
        found.append(
            read_window(words[0], words[1], words[2] if len(words) == _WORDS else None, read_amounts(words[-1]))
        )
    return tuple(found)


def _pairs(text: str, name: re.Pattern[str], example: str) -> Iterator[tuple[str, str]]:
    parts = [part for part in (each.strip() for each in text.split(",", RESOURCES.value + 1)) if part]
    if not parts or len(parts) > RESOURCES.value:
        raise ValueError(f"it should name 1 to {RESOURCES.value} amounts; write it like {example}")
    for part in parts:
        key, _, number = (each.strip() for each in part.partition("="))
        if not name.fullmatch(key) or not number:
            raise ValueError(f"{part[:100]!r} is not a name with an amount; write it like {example}")
        yield key, number


def _amounts(text: str, name: re.Pattern[str], example: str, resource: str = "") -> dict[str, int]:
    """Return quantities by name; a name is a resource or, with `resource` set, something else such as a GPU model."""
    found: dict[str, int] = {}
    for key, number in _pairs(text, name, example):
        if key in found:
            raise ValueError(f"{key!r} has two amounts; name it once")
        found[key] = _amount(resource or key, number)
    return found


def _amount(resource: str, number: str) -> int:
    amount = parse(number, milli=resource in MILLI)
    if amount < 0:
        raise ValueError(f"{number!r} must not be negative")
    return amount


_READERS: Final[Mapping[str, tuple[str, Callable[[str], object]]]] = {
    names.MAX_PER_USER: ("per_user", read_amounts),
    names.MAX_BY_MODEL: ("by_model", _read_models),
    names.WINDOWS: ("windows", _read_windows),
    names.BUDGET: ("budgets", _read_budgets),
    names.BUDGET_MODE: ("enforced", _is_enforced),
}
"""Maps an annotation to the field of `QueueLimits` that it sets, and to its parser. The parser's ValueError describes
an error."""


UNNAMED = "*"
"""Placeholder in weights for all other resources that are in the quota of some queue."""
LARGEST_WEIGHT = 65_535.0
_WEIGHT = re.compile(r"[0-9]{1,5}(?:\.[0-9]{1,6})?")


def read_weights(text: str) -> dict[str, float]:
    """Return the weights (0 or more) in an annotation, keyed by resource; raises ValueError that describes an error.

    With weight 0, a queue gets no more of the resource than it deserves.
    """
    weights: dict[str, float] = {}
    for part in filter(None, (each.strip() for each in text.split(","))):
        resource, _, number = (each.strip() for each in part.partition("="))
        if not resource or not _WEIGHT.fullmatch(number) or float(number) > LARGEST_WEIGHT:
            example = "write it like nvidia.com/gpu=0,cpu=2.5, or *=0 for all resources that have quotas"
            raise ValueError(f"{part!r} is not a resource with a weight from 0 to {LARGEST_WEIGHT:.0f}; {example}")
        if resource in weights:
            raise ValueError(f"{resource!r} has two weights; name each resource once")
        weights[resource] = float(number)
    return weights
