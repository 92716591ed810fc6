"""Limits of a queue beyond its capability, in its annotations: per user, by GPU model, by time window; and its budget.

One reading for admission, the planner and the command line. Pure. Admission refuses an annotation with a mistake in it;
where it was bypassed, that one has no effect, and the others count.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Final, Literal, NamedTuple, TypeVar

from muster.api import names
from muster.api.fields import FieldError
from muster.api.limits import LIMIT_WINDOWS, RESOURCES
from muster.api.muster.usage import PERIODS, Period
from muster.resources.quantity import parse
from muster.resources.vector import MILLI, Vector
from muster.volcano.windows import EXAMPLE, Window, read_window

T = TypeVar("T")
Mode = Literal["enforce", "warn"]
MODES: Final[tuple[Mode, ...]] = ("enforce", "warn")
HOUR_S: Final = 3600
_EXAMPLE: Final = "nvidia.com/gpu=10000h/month,nvidia.com/gpu=500h/day"
_MODEL: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?", re.ASCII)
_RESOURCE: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._/-]{0,250}[A-Za-z0-9])?", re.ASCII)
_WORDS: Final = 4
"""Words of a window at most: days, hours, zone, amounts."""


class Budget(NamedTuple):
    """The most that is held of one resource in each period."""

    resource: str
    period: Period
    most: int
    """Unit-seconds, in milli-CPU or base units."""


class QueueLimits(NamedTuple):
    """The limits of one queue, which count for it and those below it together."""

    per_user: Vector = {}  # noqa: RUF012 - never changed
    """The most that one user may use, in milli-CPU or base units."""
    by_model: Mapping[str, int] = {}
    """GPU model → the most of it, in thousandths of GPUs."""
    windows: tuple[Window, ...] = ()
    budgets: tuple[Budget, ...] = ()
    """Each counts for itself."""
    enforced: bool = False
    """False: the budgets are only told."""

    def __bool__(self) -> bool:
        """Return True if there is any limit."""
        return bool(self.per_user or self.by_model or self.windows or self.budgets)


NONE: Final = QueueLimits()


def limits_of(annotations: Mapping[str, str]) -> QueueLimits:
    """Return the limits in these annotations of a Queue, without those that cannot be read."""
    said = tuple(annotations.get(key, "") for key in names.QUEUE_LIMIT_KEYS)
    return _limits(said) if any(said) else NONE


def mistakes(annotations: Mapping[str, str], path: str) -> Iterator[FieldError]:
    """Yield what is wrong with the limits in these annotations, at this field path."""
    for key in names.QUEUE_LIMIT_KEYS:
        text = annotations.get(key)
        if text is not None:
            try:
                _READERS[key](text)
            except ValueError as error:
                yield FieldError(f"{path}[{key}]", str(error), text)
    if names.BUDGET_MODE in annotations and names.BUDGET not in annotations:
        message = f"has no effect without {names.BUDGET}"
        yield FieldError(f"{path}[{names.BUDGET_MODE}]", message, annotations[names.BUDGET_MODE])


def is_model(model: str, product: str) -> bool:
    """Return True if a node with this product label has GPUs of the model.

    The model is the label, or some of its words beside each other, in any case: `H100`, `a100-sxm4` or
    `NVIDIA-A100-SXM4-80GB`.
    """
    words, wanted = product.lower().split("-"), model.lower().split("-")
    return any(words[at : at + len(wanted)] == wanted for at in range(len(words) - len(wanted) + 1))


@lru_cache(maxsize=4096)
def _limits(said: tuple[str, ...]) -> QueueLimits:
    per_user, by_model, windows, budget, mode = said
    return QueueLimits(
        _or(read_amounts, per_user, {}),
        _or(_read_models, by_model, {}),
        _or(_read_windows, windows, ()),
        _or(_read_budgets, budget, ()),
        _or(_read_mode, mode, "warn") == "enforce",
    )


def _or(read: Callable[[str], T], text: str, otherwise: T) -> T:
    try:
        return read(text) if text else otherwise
    except ValueError:
        return otherwise


def read_amounts(text: str) -> Vector:
    """Return amounts of resources; ValueError says what is wrong with them."""
    return _amounts(text, _RESOURCE, "nvidia.com/gpu=16,pods=100")


def _read_models(text: str) -> dict[str, int]:
    return _amounts(text, _MODEL, "H100=64,A100=128", "nvidia.com/gpu")


def _read_budgets(text: str) -> tuple[Budget, ...]:
    found: dict[tuple[str, Period], Budget] = {}
    for name, number in _pairs(text, _RESOURCE, _EXAMPLE):
        hours, _, of = number.partition("h/")
        period = next((each for each in PERIODS if each == of), None)
        if period is None:
            raise ValueError(
                f"{number[:100]!r} is no budget: an amount of hours per {', '.join(PERIODS)}; write it like {_EXAMPLE}"
            )
        if (name, period) in found:
            raise ValueError(f"{name!r} has two budgets per {period}; name it once")
        found[name, period] = Budget(name, period, _amount(name, hours) * HOUR_S)
    return (*found.values(),)


def _read_mode(text: str) -> str:
    if text not in MODES:
        raise ValueError(f"{text!r} is none of {', '.join(MODES)}")
    return text


def _read_windows(text: str) -> tuple[Window, ...]:
    parts = [part for part in (each.strip() for each in text.split(";", LIMIT_WINDOWS.value + 1)) if part]
    for error in LIMIT_WINDOWS.exceeded_by("it", len(parts)):
        raise ValueError(error.message)
    if not parts:
        raise ValueError(f"it names no window; {EXAMPLE}")
    found = []
    for part in parts:
        words = part.split()
        if len(words) not in {_WORDS - 1, _WORDS}:
            raise ValueError(f"{part[:100]!r} is no window: days, hours, time zone and amounts; {EXAMPLE}")
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
            raise ValueError(f"{part[:100]!r} is no name with an amount; write it like {example}")
        yield key, number


def _amounts(text: str, name: re.Pattern[str], example: str, resource: str = "") -> dict[str, int]:
    """Return name → amount, of this resource, or of that which the name is."""
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


_READERS: Final[Mapping[str, Callable[[str], object]]] = {
    names.MAX_PER_USER: read_amounts,
    names.MAX_BY_MODEL: _read_models,
    names.WINDOWS: _read_windows,
    names.BUDGET: _read_budgets,
    names.BUDGET_MODE: _read_mode,
}
