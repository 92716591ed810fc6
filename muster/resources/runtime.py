"""Durations in Go's format ("1h30m"), and the expected run time of pods, from annotations and deadlines."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import ceil

from muster.api.fields import FieldError
from muster.api.limits import NOTICE, RESTARTS, SECONDS, whole_number
from muster.api.names import EVICT_NOTICE, EXPECTED_RUNTIME, MAX_EVICT_NOTICE, RESTART_BUDGET

_NS = 10**9
_UNIT_NS = {"h": 3600 * _NS, "m": 60 * _NS, "s": _NS, "ms": 10**6, "us": 10**3, "µs": 10**3, "ns": 1}
_MAX_NS = 2**63 - 1  # Go's clients cannot read more than some 292 years
_MAX_CHARS = 256
_PART = re.compile(r"([0-9]*)(?:\.([0-9]*))?(ms|us|µs|ns|h|m|s)")
_DAY_S = 24 * 3600
_DAYS = re.compile(r"(?=[0-9]+[wd])(?:([0-9]+)w)?(?:([0-9]+)d)?(.*)", re.DOTALL)
_DURATION = re.compile(r"\+?(?:0|(?:(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:ms|us|µs|ns|h|m|s))+)")

_BUDGET = re.compile(r"([0-9]+) in (\S+)")


def parse_duration_ns(text: str) -> int:
    """Return a duration in whole nanoseconds, so that all spellings of it are equal; ValueError explains the format.

    Negative durations are errors too, although Go and the schema allow them.
    """
    if len(text) > _MAX_CHARS or not _DURATION.fullmatch(text):
        raise ValueError(f"{text!r} is not a duration; write it like 30s, 5m or 1h30m")
    total = 0
    for whole, part, unit in _PART.findall(text):
        total += int(whole or 0) * _UNIT_NS[unit] + int(part or 0) * _UNIT_NS[unit] // 10 ** len(part)
    if total > _MAX_NS:
        raise ValueError(f"{text!r} is too long for a duration; write it like 30s, 5m or 1h30m")
    return total


def parse_duration_s(text: str) -> float:
    """Return a duration in seconds, with the rules of `parse_duration_ns`."""
    return parse_duration_ns(text) / _NS


def readable_duration_s(text: str | None) -> float | None:
    """Return a duration in seconds; None without text, or if the text is not a duration."""
    try:
        return parse_duration_s(text) if text else None
    except ValueError:
        return None


def parse_days_s(text: str) -> float:
    """Return a duration in seconds that may begin with weeks and days, as in KAI-Scheduler's `5w4d12h`."""
    found = _DAYS.fullmatch(text) if len(text) <= _MAX_CHARS else None
    weeks, days, rest = found.groups() if found else (None, None, text)
    whole_s = (7 * int(weeks or 0) + int(days or 0)) * _DAY_S
    seconds = whole_s + (parse_duration_s(rest) if rest or not found else 0.0)
    if seconds * _NS > _MAX_NS:
        raise ValueError(f"{text!r} is too long for a duration; write it like 5m, 1h30m or 2d12h")
    return seconds


@dataclass(frozen=True, slots=True)
class Runtime:
    """Declared run time and deadline of a pod or template, each in seconds, or None if not set."""

    declared_s: float | None = None
    """The annotation `muster.dev/expected-runtime`."""
    deadline_s: float | None = None
    """The pod's activeDeadlineSeconds, after which the pod is ended."""

    def expected_s(self, otherwise: float | None) -> float | None:
        """Return the expected run time; `otherwise` is the workload's own value for a pod that declares none.

        Returns None if the pod may run forever.
        """
        declared = otherwise if self.declared_s is None else self.declared_s
        known = [seconds for seconds in (declared, self.deadline_s) if seconds is not None]
        return min(known, default=None)


UNKNOWN = Runtime()
"""Runtime of a pod that has neither annotation nor deadline, and may therefore run forever."""


def runtime_of(annotations: Mapping[str, str], active_deadline_seconds: int | None) -> Runtime:
    """Return the runtime that these annotations and this deadline declare; a deadline out of bounds is ignored."""
    declared = declared_s(annotations)
    deadline = active_deadline_seconds
    if deadline is None or not 0 < deadline <= SECONDS.value:
        return UNKNOWN if declared is None else Runtime(declared)
    return Runtime(declared, float(deadline))


def declared_s(annotations: Mapping[str, str]) -> float | None:
    """Return the seconds in the annotation `muster.dev/expected-runtime`; None without the annotation.

    An annotation that is no duration, is 0, or exceeds the limit is ignored.
    """
    seconds = readable_duration_s(annotations.get(EXPECTED_RUNTIME))
    return seconds if seconds and 0 < seconds <= SECONDS.value else None


def notice_s(text: str | None) -> float | None:
    """Return the length of an eviction notice in seconds (`muster.dev/evict-notice`, or a queue's maximum).

    The result is None without a valid annotation.

    A notice period longer than the limit is capped at the limit. With 0, a queue disables eviction notices.
    """
    seconds = readable_duration_s(text)
    return None if seconds is None else min(seconds, float(NOTICE.value))


def notice_mistakes(annotations: Mapping[str, str], path: str) -> Iterator[FieldError]:
    """Yield the errors in the eviction notice that these annotations (at this field path) request or allow."""
    for key in (EVICT_NOTICE, MAX_EVICT_NOTICE):
        text = annotations.get(key)
        if text is None:
            continue
        try:
            seconds = parse_duration_s(text)
        except ValueError as error:
            yield FieldError(f"{path}[{key}]", str(error), text)
        else:
            yield from NOTICE.exceeded(f"{path}[{key}]", ceil(seconds))


@dataclass(frozen=True, slots=True)
class RestartBudget:
    """A restart budget: the maximum number of restarts of a gang within a period."""

    restarts: int
    within_s: float
    text: str

    def __str__(self) -> str:
        return self.text


def restart_budget(annotations: Mapping[str, str]) -> RestartBudget | None:
    """Return the restart budget in the annotation `muster.dev/restart-budget` (`5 in 1h`); None without a valid one."""
    text = annotations.get(RESTART_BUDGET, "")
    found = _BUDGET.fullmatch(text.strip()) if len(text) <= _MAX_CHARS else None
    if found is None:
        return None
    try:
        within_s = parse_days_s(found[2])
    except ValueError:
        return None
    restarts = whole_number(found[1], RESTARTS.value)
    if restarts is None or not 0 < within_s <= SECONDS.value:
        return None
    return RestartBudget(restarts, within_s, f"{restarts} in {found[2]}")


def budget_mistakes(annotations: Mapping[str, str], path: str) -> Iterator[FieldError]:
    """Yield the error, if any, in the restart budget in these annotations, at this field path."""
    text = annotations.get(RESTART_BUDGET)
    if text is not None and restart_budget(annotations) is None:
        message = (
            f"{text!r} is not a number of restarts from 0 to {RESTARTS.value} (limit {RESTARTS.name!r}) in a period; "
            "write it like 5 in 1h"
        )
        yield FieldError(f"{path}[{RESTART_BUDGET}]", message, text)
